package main

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// message is one of the protocol: type, length, body.
func message(kind byte, body ...[]byte) []byte {
	var all []byte
	for _, b := range body {
		all = append(all, b...)
	}
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(all)+4)), all...)
}

func lsns(values ...uint64) []byte {
	var b []byte
	for _, v := range values {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

func status(write, flush, apply uint64) []byte {
	return message('d', []byte("r"), lsns(write, flush, apply, 0), []byte{0})
}

func keepalive(lsn uint64) []byte { return message('d', []byte("k"), lsns(lsn, 0), []byte{0}) }

func commit(end uint64) []byte {
	return message('d', []byte("w"), lsns(end, end, 0), []byte("C\x00"), lsns(end-10, end, 0))
}

// TestI5Recorder: what may be said passes, anything else is complained of.
func TestI5Recorder(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		server []byte
		client [][]byte
		want   string
	}{
		{"a commit's end", commit(200), [][]byte{status(200, 200, 200)}, ""},
		{"a keepalive", keepalive(300), [][]byte{status(300, 300, 300)}, ""},
		{"nothing to confirm", keepalive(300), [][]byte{status(300, 0, 0)}, ""},
		{"the start again", nil, [][]byte{status(256, 256, 256)}, ""},
		{"backwards", append(commit(300), commit(400)...), [][]byte{status(400, 400, 400), status(400, 300, 300)}, "went back"},
		{"zero with apply", keepalive(300), [][]byte{status(300, 0, 300)}, "with an apply position"},
		{"commit LSN", commit(310), [][]byte{status(310, 300, 300)}, "never gave"},
		{"apply left out", commit(310), [][]byte{status(310, 310, 0)}, "apply is not set"},
		{"ahead of the server", keepalive(300), [][]byte{status(900, 900, 900)}, "above all"},
		{"flushed, not written", commit(310), [][]byte{status(300, 310, 310)}, "more than written"},
		{"write zero", commit(310), [][]byte{status(0, 0, 0)}, "write position zero"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var complaints []string
			r := newRecorder("", func(format string, args ...any) {
				complaints = append(complaints, fmt.Sprintf(format, args...))
			}, func(string, ...any) {})
			s := &session{recorder: r, instance: "first"}
			client, server := s.fromClient(), s.fromServer()
			start := []byte("\x00\x03\x00\x00user\x00u\x00replication\x00database\x00\x00")
			feed(client, append(binary.BigEndian.AppendUint32(nil, uint32(len(start)+4)), start...))
			feed(client, message('Q', []byte("START_REPLICATION SLOT \"s\" LOGICAL 0/100 (a 'b')\x00")))
			feed(server, message('W', []byte{0, 0, 0}))
			if !r.streaming("first") {
				t.Error("the session does not count as streaming")
			}
			feed(server, test.server)
			for _, m := range test.client {
				feed(client, m)
			}
			got := strings.Join(complaints, "\n")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("complaints %q, want %q", got, test.want)
			}
		})
	}
}

// feed gives bytes one by one, as a network may.
func feed(see func([]byte), data []byte) {
	for i := range data {
		see(data[i : i+1])
	}
}
