package main

import (
	"encoding/binary"
	"maps"
	"testing"
)

// packet is a message of the protocol; kind 0 is a start-up packet.
func packet(kind byte, body ...byte) []byte {
	var out []byte
	if kind != 0 {
		out = append(out, kind)
	}
	return append(binary.BigEndian.AppendUint32(out, uint32(len(body)+4)), body...)
}

func position(parts ...uint64) (out []byte) {
	for _, p := range parts {
		out = binary.BigEndian.AppendUint64(out, p)
	}
	return out
}

func startup(parameters string) []byte {
	return packet(0, append([]byte{0, 3, 0, 0}, parameters...)...)
}

func statusUpdate(write, flush uint64) []byte {
	return packet('d', append(append([]byte{'r'}, position(write, flush, flush, 0)...), 0)...)
}

func keepaliveAt(end uint64) []byte {
	return packet('d', append(append([]byte{'k'}, position(end, 0)...), 0)...)
}

func commitAt(commit, end uint64) []byte {
	header := append([]byte{'w'}, position(commit, end, 0)...)
	return packet('d', append(append(header, 'C', 0), position(commit, end, 0)...)...)
}

func TestRecorderReadsAlong(t *testing.T) {
	t.Parallel()
	const replication = "user\x00u\x00replication\x00database\x00\x00"
	encryption := packet(0, 0x04, 0xd2, 0x16, 0x2f) // refused by the server with 'N'
	for name, c := range map[string]struct {
		startup []byte
		server  [][]byte
		client  [][]byte
		flush   uint64
		walEnd  uint64
		updates int
		odd     map[string]int
	}{
		"ends and keepalives": {
			startup(replication), [][]byte{commitAt(10, 20), keepaliveAt(30)},
			[][]byte{statusUpdate(20, 20), statusUpdate(30, 30)}, 30, 30, 2, map[string]int{},
		},
		"behind a refused request for encryption": {
			append(encryption, startup(replication)...), [][]byte{keepaliveAt(30)},
			[][]byte{statusUpdate(30, 30)}, 30, 30, 1, map[string]int{},
		},
		"flush zero confirms nothing": {
			startup(replication), [][]byte{keepaliveAt(30)}, [][]byte{statusUpdate(30, 0)}, 0, 30, 1, map[string]int{},
		},
		"the start of a commit record": {
			startup(replication), [][]byte{commitAt(10, 20)}, [][]byte{statusUpdate(20, 10)}, 10, 0, 1,
			map[string]int{"the start of a commit record": 1},
		},
		"a position of nobody": {
			startup(replication), [][]byte{commitAt(10, 20)}, [][]byte{statusUpdate(20, 17)}, 17, 0, 1,
			map[string]int{"a position that the server did not name": 1},
		},
		"a plain connection": {
			startup("user\x00u\x00\x00"), [][]byte{keepaliveAt(30)}, [][]byte{statusUpdate(30, 30)}, 0, 0, 0, map[string]int{},
		},
	} {
		for _, size := range []int{1, 7, 1 << 10} { // bytes that come at once
			r := &recorder{seen: seen{commits: map[uint64]string{}, odd: map[uint64]string{}}}
			s := &session{recorder: r}
			inPieces(c.startup, size, s.fromClient)
			for _, m := range c.server {
				inPieces(m, size, s.fromServer)
			}
			for _, m := range c.client {
				inPieces(m, size, s.fromClient)
			}
			walEnd, updates := r.progress()
			if r.confirmed() != c.flush || walEnd != c.walEnd || updates != c.updates || !maps.Equal(r.oddities(), c.odd) {
				t.Errorf("%s, by %d: confirmed %d, keepalive %d, %d updates, odd %v; want %d, %d, %d, %v",
					name, size, r.confirmed(), walEnd, updates, r.oddities(), c.flush, c.walEnd, c.updates, c.odd)
			}
		}
	}
}

func inPieces(data []byte, size int, see func([]byte)) {
	for len(data) > 0 {
		n := min(size, len(data))
		see(data[:n])
		data = data[n:]
	}
}
