package pgframe

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
)

func TestFramer(t *testing.T) {
	t.Parallel()
	startup := binary.BigEndian.AppendUint32(nil, 8+5)
	startup = append(binary.BigEndian.AppendUint32(startup, 196608), "a\x00b\x00\x00"...)
	bytes := append(startup, 'Q', 0, 0, 0, 7, 'x', 'y', 0, 'S', 0, 0, 0, 4)
	for _, size := range []int{1, 3, len(bytes)} { // however the pieces fall
		var f Framer
		var got []string
		started := false
		for piece := range slices.Chunk(bytes, size) {
			f.Add(piece)
			if !started {
				packet, ok := f.Startup()
				if !ok {
					continue
				}
				started = true
				got = append(got, fmt.Sprintf("%q", packet))
			}
			for kind, body, ok := f.Message(); ok; kind, body, ok = f.Message() {
				got = append(got, fmt.Sprintf("%c %q", kind, body))
			}
		}
		if want := []string{`"\x00\x03\x00\x00a\x00b\x00\x00"`, `Q "xy\x00"`, `S ""`}; !slices.Equal(got, want) {
			t.Errorf("in pieces of %d: %q, want %q", size, got, want)
		}
	}
}

func TestAsksReplication(t *testing.T) {
	t.Parallel()
	for parameters, want := range map[string]bool{
		"user\x00a\x00replication\x00database\x00\x00": true,
		"replication\x00true\x00\x00":                  true,
		"replication\x00false\x00\x00":                 false,
		"replication\x00\x00\x00":                      false,
		"user\x00replication\x00database\x00x\x00\x00": false, // a user of that name
		"": false,
	} {
		if got := AsksReplication([]byte(parameters)); got != want {
			t.Errorf("%q: %v, want %v", parameters, got, want)
		}
	}
}
