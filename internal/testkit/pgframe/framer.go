package pgframe

import (
	"bytes"
	"encoding/binary"
)

// Framer cuts one direction of a connection into messages. The zero value is
// ready for use, by one goroutine.
type Framer struct{ rest []byte }

// Add appends what was read.
func (f *Framer) Add(data []byte) { f.rest = append(f.rest, data...) }

// Drop forgets what is there.
func (f *Framer) Drop() { f.rest = nil }

// Startup takes a packet that has a length and no type, as a client's first ones.
func (f *Framer) Startup() (packet []byte, ok bool) {
	if len(f.rest) < 8 {
		return nil, false
	}
	n := int(binary.BigEndian.Uint32(f.rest))
	if n < 8 || len(f.rest) < n {
		return nil, false
	}
	packet, f.rest = f.rest[4:n], f.rest[n:]
	return packet, true
}

// Message takes a message; its body is good until the next Add.
func (f *Framer) Message() (kind byte, body []byte, ok bool) {
	if len(f.rest) >= 5 {
		if n := int(binary.BigEndian.Uint32(f.rest[1:])); n >= 4 && len(f.rest) > n {
			kind, body, f.rest = f.rest[0], f.rest[5:n+1], f.rest[n+1:]
			return kind, body, true
		}
	}
	f.rest = bytes.Clone(f.rest) // not to keep what was read
	return 0, nil, false
}

// AsksReplication looks into the parameters of a start-up packet.
func AsksReplication(parameters []byte) bool {
	fields := bytes.Split(parameters, []byte{0})
	for i := 0; i+1 < len(fields); i += 2 {
		if string(fields[i]) == "replication" {
			return len(fields[i+1]) > 0 && string(fields[i+1]) != "false"
		}
	}
	return false
}
