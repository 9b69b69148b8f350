package sim

import (
	"bytes"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestSequences has the answers that were measured at a real broker.
func TestSequences(t *testing.T) {
	t.Parallel()
	type sent struct {
		epoch  int16
		seq, n int32
	}
	for _, test := range []struct {
		name   string
		before []sent
		marker int16 // epoch of a marker behind them; 0: none
		now    sent
		repeat bool
		code   int16
	}{
		{name: "a first batch begins anywhere", now: sent{0, 17, 1}},
		{name: "the next one", before: []sent{{0, 0, 3}}, now: sent{0, 3, 1}},
		{name: "a repeat", before: []sent{{0, 0, 3}, {0, 3, 1}}, now: sent{0, 0, 3}, repeat: true},
		{name: "the fifth last", before: []sent{{0, 0, 1}, {0, 1, 1}, {0, 2, 1}, {0, 3, 1}, {0, 4, 1}}, now: sent{0, 0, 1}, repeat: true},
		{name: "the sixth last", before: []sent{{0, 0, 1}, {0, 1, 1}, {0, 2, 1}, {0, 3, 1}, {0, 4, 1}, {0, 5, 1}}, now: sent{0, 0, 1}, code: codeSequence},
		{name: "a gap", before: []sent{{0, 0, 3}}, now: sent{0, 4, 1}, code: codeSequence},
		{name: "a part of a known one", before: []sent{{0, 0, 3}}, now: sent{0, 0, 2}, code: codeSequence},
		{name: "a higher epoch", before: []sent{{0, 0, 3}}, now: sent{1, 0, 1}},
		{name: "a higher epoch in the middle", before: []sent{{0, 0, 3}}, now: sent{1, 3, 1}, code: codeSequence},
		{name: "a lower epoch", before: []sent{{1, 0, 3}}, now: sent{0, 3, 1}, code: codeEpoch},
		{name: "an older epoch behind a marker", before: []sent{{0, 0, 3}}, marker: 1, now: sent{0, 3, 1}, code: codeEpoch},
		{name: "a marker without a batch before", marker: 1, now: sent{0, 0, 1}, code: codeEpoch},
		{name: "the marker's epoch from zero", before: []sent{{0, 0, 3}}, marker: 1, now: sent{1, 0, 1}},
		{name: "the marker's epoch in the middle", before: []sent{{0, 0, 3}}, marker: 1, now: sent{1, 5, 1}, code: codeSequence},
		{name: "a wrap", before: []sent{{0, 2147483647, 3}}, now: sent{0, 2, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPartition("t", 0, 0)
			for _, s := range test.before {
				p.append(&batch{pid: 1, epoch: s.epoch, seq: s.seq, n: s.n})
			}
			if test.marker > 0 {
				p.append(marker(1, test.marker, true))
			}
			repeat, code := p.admit(&batch{pid: 1, epoch: test.now.epoch, seq: test.now.seq, n: test.now.n})
			if (repeat != nil) != test.repeat || code != test.code {
				t.Errorf("repeat=%v code=%d, want %v and %d", repeat != nil, code, test.repeat, test.code)
			}
		})
	}
}

func TestLeaderWithoutTheBatchLosesIt(t *testing.T) {
	t.Parallel()
	p := newPartition("t", 0, 0)
	p.append(&batch{pid: 1, seq: 0, n: 2})
	p.stalled++
	lost := &batch{pid: 1, seq: 2, n: 1}
	p.append(lost)
	if p.hw != 2 || p.end != 3 {
		t.Fatalf("high watermark %d of %d, want 2 of 3", p.hw, p.end)
	}
	p.truncate()
	if p.end != 2 || p.has(lost) {
		t.Errorf("the log ends at %d, want 2", p.end)
	}
	if repeat, code := p.admit(&batch{pid: 1, seq: 2, n: 1}); repeat != nil || code != 0 {
		t.Errorf("the batch that was lost: repeat=%v code=%d, want it as new", repeat != nil, code)
	}
}

// TestMarkerBytes: the marker is a control batch that a client can read.
func TestMarkerBytes(t *testing.T) {
	t.Parallel()
	m := marker(7, 3, true)
	m.base = 41
	m.seal()
	var rb kmsg.RecordBatch
	if err := rb.ReadFrom(m.raw); err != nil {
		t.Fatal(err)
	}
	if rb.FirstOffset != 41 || rb.Attributes != 0x30 || rb.ProducerID != 7 || rb.ProducerEpoch != 3 || int(rb.Length) != len(m.raw)-12 {
		t.Errorf("marker %+v", rb)
	}
	var r kmsg.Record
	if err := r.ReadFrom(rb.Records); err != nil || !bytes.Equal(r.Key, []byte{0, 0, 0, 1}) {
		t.Errorf("its record %+v: %v", r, err)
	}
}

func TestPipe(t *testing.T) {
	t.Parallel()
	client, server := pipe("b0:9092")
	if _, err := client.Write([]byte("request")); err != nil {
		t.Fatal(err)
	}
	_ = client.Close()
	buf := make([]byte, 16)
	if n, err := server.Read(buf); err != nil || string(buf[:n]) != "request" {
		t.Errorf("what was sent before the end: %q, %v", buf[:n], err)
	}
	if _, err := client.Read(buf); err == nil {
		t.Error("a closed end reads")
	}
	client, server = pipe("b0:9092")
	if _, err := client.Write([]byte("request")); err != nil {
		t.Fatal(err)
	}
	client.cut(true)
	if n, err := server.Read(buf); err == nil {
		t.Errorf("the server still got %q", buf[:n])
	}
	client, _ = pipe("b0:9092")
	_ = client.SetReadDeadline(time.Now().Add(-time.Second))
	if _, err := client.Read(buf); err == nil {
		t.Error("no error behind the deadline")
	}
}
