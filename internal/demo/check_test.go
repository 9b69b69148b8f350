package demo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/walpost/walpost/internal/testkit/topic"
)

// committed are three events of order a and two of order b, in the order in
// which an outbox holds them.
func committed() []Event {
	list := []Event{{Aggregate: "a", Version: 1}, {Aggregate: "b", Version: 1}, {Aggregate: "a", Version: 2}, {Aggregate: "b", Version: 2}, {Aggregate: "a", Version: 3}}
	for i := range list {
		e := &list[i]
		e.ID = fmt.Sprintf("%s%d", e.Aggregate, e.Version)
		e.Payload = fmt.Sprintf(`{"v": %d}`, e.Version)
	}
	return list
}

// record is what Kafka holds of an event; a is in partition 0, b in 1.
func record(id string) topic.Record {
	r := topic.Record{
		Key: []byte(id[:1]), Value: fmt.Appendf(nil, `{"v": %s}`, id[1:]),
		Headers: []topic.Header{{Key: "id", Value: []byte(id)}},
	}
	if id[0] == 'b' {
		r.Partition = 1
	}
	return r
}

func records(ids string) []topic.Record {
	var list []topic.Record
	for i, id := range strings.Fields(ids) {
		r := record(id)
		r.Offset = int64(i)
		list = append(list, r)
	}
	return list
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ids    string
		change func([]topic.Record)
		want   map[Fault]int
		first  string
	}{
		"all there":            {ids: "a1 a2 a3 b1 b2"},
		"partitions mingled":   {ids: "b1 a1 b2 a2 a3"},
		"missing":              {ids: "a1 a3 b1 b2", want: map[Fault]int{Missing: 1}, first: "event a2 (a, version 2)"},
		"the last missing":     {ids: "a1 a2 b1 b2", want: map[Fault]int{Missing: 1}, first: "event a3 (a, version 3)"},
		"nothing there":        {want: map[Fault]int{Missing: 5}, first: "event a1 (a, version 1)"},
		"doubled":              {ids: "a1 a2 a2 a3 b1 b2", want: map[Fault]int{Doubled: 1}, first: "event a2 (a, version 2), again at partition 0, offset 2"},
		"doubled later":        {ids: "a1 a2 a3 a1 a2 b1 b2", want: map[Fault]int{Doubled: 2}, first: "event a1 (a, version 1), again at partition 0, offset 3"},
		"out of order":         {ids: "a2 a1 a3 b1 b2", want: map[Fault]int{OutOfOrder: 1}, first: "event a1 (a, version 1) at partition 0, offset 1, behind version 2"},
		"the first comes last": {ids: "a2 a3 a1 b1 b2", want: map[Fault]int{OutOfOrder: 1}, first: "event a1 (a, version 1) at partition 0, offset 2, behind version 3"},
		"foreign":              {ids: "a1 a2 a3 x9 b1 b2", want: map[Fault]int{Foreign: 1}, first: `event "x9" with key "x" at partition 0, offset 3`},
		"no id": {
			ids: "a1 a2 a3 b1 b2", change: func(r []topic.Record) { r[0].Headers = nil },
			want: map[Fault]int{Foreign: 1, Missing: 1}, first: `event "" with key "a" at partition 0, offset 0`,
		},
		"never committed": {ids: "a1 a2 a3 u1 b1 b2", want: map[Fault]int{Uncommitted: 1}, first: "event u1 at partition 0, offset 3"},
		"another partition": {
			ids: "a1 a2 a3 b1 b2", change: func(r []topic.Record) { r[1].Partition = 1 },
			want: map[Fault]int{OutOfOrder: 1}, first: "event a2 (a, version 2) at partition 1, offset 1, others of it in partition 0",
		},
		"another key": {
			ids: "a1 a2 a3 b1 b2", change: func(r []topic.Record) { r[1].Key = []byte("b") },
			want: map[Fault]int{Altered: 1}, first: `event a2 (a, version 2) at partition 0, offset 1 has key "b" and payload "{\"v\": 2}", want "{\"v\": 2}"`,
		},
		"another payload": {
			ids: "a1 a2 a3 b1 b2", change: func(r []topic.Record) { r[0].Value = []byte(`{"v":1}`) },
			want: map[Fault]int{Altered: 1}, first: `event a1 (a, version 1) at partition 0, offset 0 has key "a" and payload "{\"v\":1}", want "{\"v\": 1}"`,
		},
		"no payload": {
			ids: "a1 a2 a3 b1 b2", change: func(r []topic.Record) { r[0].Value = nil },
			want: map[Fault]int{Altered: 1}, first: `event a1 (a, version 1) at partition 0, offset 0 has key "a" and payload "", want "{\"v\": 1}"`,
		},
	} {
		list := records(tc.ids)
		if tc.change != nil {
			tc.change(list)
		}
		r := Check(committed(), map[string]bool{"u1": true}, list)
		if tc.want == nil {
			tc.want = map[Fault]int{}
		}
		if diff := cmp.Diff(tc.want, r.Count); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if r.OK() != (len(tc.want) == 0) {
			t.Errorf("%s: OK is %v", name, r.OK())
		}
		found := false
		for _, first := range r.First {
			found = found || first == tc.first
		}
		if !found && tc.first != "" {
			t.Errorf("%s: got %q, want %q among them", name, r.First, tc.first)
		}
	}
}
