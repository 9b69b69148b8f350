package main

import (
	"bytes"
	"encoding/binary"
)

// stream cuts bytes into messages of PostgreSQL's protocol.
type stream struct{ rest []byte }

func (s *stream) add(data []byte) { s.rest = append(s.rest, data...) }

func (s *stream) drop() { s.rest = nil }

// startup takes a packet that has a length and no type.
func (s *stream) startup() (packet []byte, ok bool) {
	if len(s.rest) < 8 {
		return nil, false
	}
	n := int(binary.BigEndian.Uint32(s.rest))
	if n < 8 || len(s.rest) < n {
		return nil, false
	}
	packet, s.rest = s.rest[4:n], s.rest[n:]
	return packet, true
}

// message takes a message; its body is good until the next add.
func (s *stream) message() (kind byte, body []byte, ok bool) {
	if len(s.rest) >= 5 {
		if n := int(binary.BigEndian.Uint32(s.rest[1:])); n >= 4 && len(s.rest) > n {
			kind, body, s.rest = s.rest[0], s.rest[5:n+1], s.rest[n+1:]
			return kind, body, true
		}
	}
	s.rest = bytes.Clone(s.rest) // not to keep what was read
	return 0, nil, false
}

// asksReplication looks into the parameters of a start-up packet.
func asksReplication(parameters []byte) bool {
	fields := bytes.Split(parameters, []byte{0})
	for i := 0; i+1 < len(fields); i += 2 {
		if string(fields[i]) == "replication" {
			return len(fields[i+1]) > 0 && string(fields[i+1]) != "false"
		}
	}
	return false
}
