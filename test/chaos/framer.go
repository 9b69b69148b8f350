package main

import (
	"bytes"
	"encoding/binary"
)

// framer cuts a stream of bytes into messages of PostgreSQL's protocol.
type framer struct{ buf []byte }

func (f *framer) add(data []byte) { f.buf = append(f.buf, data...) }

func (f *framer) drop() { f.buf = nil }

// startup takes a packet without a type.
func (f *framer) startup() (packet []byte, ok bool) {
	if len(f.buf) < 8 {
		return nil, false
	}
	n := int(binary.BigEndian.Uint32(f.buf))
	if n < 8 || len(f.buf) < n {
		return nil, false
	}
	packet = f.buf[4:n]
	f.buf = f.buf[n:]
	return packet, true
}

// message takes one; its body is valid until the next call of add.
func (f *framer) message() (kind byte, body []byte, ok bool) {
	if len(f.buf) < 5 {
		f.compact()
		return 0, nil, false
	}
	n := int(binary.BigEndian.Uint32(f.buf[1:]))
	if n < 4 || len(f.buf) < n+1 {
		f.compact()
		return 0, nil, false
	}
	kind, body = f.buf[0], f.buf[5:n+1]
	f.buf = f.buf[n+1:]
	return kind, body, true
}

// compact keeps the rest from pinning what has been read.
func (f *framer) compact() { f.buf = bytes.Clone(f.buf) }

// hasReplication looks for the parameter in a start-up packet.
func hasReplication(parameters []byte) bool {
	fields := bytes.Split(parameters, []byte{0})
	for i := 0; i+1 < len(fields); i += 2 {
		if string(fields[i]) == "replication" {
			return len(fields[i+1]) > 0
		}
	}
	return false
}
