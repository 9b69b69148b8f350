package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/walpost/walpost/internal/testkit/topic"
)

// judged is a judge of three events of one key, without servers.
func judged(t *testing.T) *judge {
	t.Helper()
	b := &bench{dir: t.TempDir()}
	b.sampler = newSampler(b)
	j := newJudge(b)
	j.truth.keys = []aggregate{{"order", "7"}}
	for n := 1; n <= 3; n++ {
		e := event{id: uuid.UUID{byte(n)}, version: n, commit: uint64(n * 100), value: hash([]byte{byte(n)}), partition: -1}
		j.truth.byID[e.id] = len(j.truth.events)
		j.truth.events = append(j.truth.events, e)
	}
	return j
}

func record(n byte, partition int, offset int64) *topic.Record {
	return &topic.Record{
		Topic: "chaos.order", Partition: partition, Offset: offset, Key: []byte("7"), Value: []byte{n},
		Headers: []topic.Header{{Key: "id", Value: []byte(uuid.UUID{n}.String())}},
	}
}

// The judge must be able to find fault, with each kind of it.
func TestJudge(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		records []*topic.Record
		grown   bool
		want    string // the counts that are not zero
	}{
		{"all well", []*topic.Record{record(1, 0, 0), record(2, 0, 1), record(3, 0, 2)}, false, ""},
		{"lost", []*topic.Record{record(1, 0, 0), record(3, 0, 2)}, false, "1 lost"},
		{"duplicated", []*topic.Record{record(1, 0, 0), record(2, 0, 1), record(3, 0, 2), record(2, 0, 3), record(3, 0, 4)}, false, "2 duplicated"},
		{"out of order", []*topic.Record{record(1, 0, 0), record(3, 0, 1), record(2, 0, 2)}, false, "1 out of order"},
		{"moved", []*topic.Record{record(1, 0, 0), record(2, 1, 0), record(3, 1, 1)}, false, "1 in a second partition"},
		{"moved by growth", []*topic.Record{record(1, 0, 0), record(2, 1, 0), record(3, 1, 1)}, true, ""},
		{"never committed", []*topic.Record{record(1, 0, 0), record(2, 0, 1), record(3, 0, 2), record(9, 0, 3)}, false, "1 never committed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			j := judged(t)
			if test.grown {
				j.grown("chaos.order")
			}
			for _, r := range test.records {
				j.record("order", r)
			}
			j.missing()
			var got []string
			_, counts, _ := strings.Cut(j.String(), ": ")
			for _, part := range strings.Split(counts, ", ") {
				if !strings.HasPrefix(part, "0 ") {
					text, _, _ := strings.Cut(part, " (")
					got = append(got, text)
				}
			}
			if found := strings.Join(got, ", "); found != test.want {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}

// A position that was confirmed before the event lay in Kafka is found, by the
// first sample that covers the event.
func TestI1TooEarly(t *testing.T) {
	t.Parallel()
	j := judged(t)
	for n := byte(1); n <= 3; n++ {
		j.record("order", record(n, 0, int64(n)-1))
	}
	ends := func(n int64) map[string][]int64 { return map[string][]int64{"chaos.order": {n}} }
	j.bench.sampler.samples = []sample{
		{time.Unix(1, 0), 100, ends(0)}, // the event that commits at 100 ends behind it
		{time.Unix(2, 0), 250, ends(1)}, // covers the second, which is not there
		{time.Unix(3, 0), 400, ends(3)},
	}
	j.confirmations()
	if len(j.unbacked) != 1 || !strings.Contains(j.unbacked[0], "version 2") {
		t.Errorf("found %q, want version 2 alone", j.unbacked)
	}
}
