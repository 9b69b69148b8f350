package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// run is what came of a corpus, on either side.
type run struct {
	records []record
	began   int64 // milliseconds; clock times lie between the two
	ended   int64
	refused bool   // it did not start
	held    bool   // it is in front of an event that it does not publish
	lane    bool   // and that concerns one partition: the others go on
	reason  string // of either
	behind  int    // records behind the one that is held, which Debezium's producer does not send
	notes   []string
}

// difference is a place where the two sides differ; a side without a record is
// nil.
type difference struct {
	what      string
	want, got *record
}

func (d *difference) String() string {
	return fmt.Sprintf("%s\n    Debezium: %s\n    walpost:  %s", d.what, d.want.show(), d.got.show())
}

// verdict is the outcome of comparing a corpus with a run.
type verdict struct {
	pass  bool
	how   string
	diffs []difference
}

// judge compares what walpost did with what Debezium did.
func judge(c *corpus, r *run) verdict {
	fails := c.outcome.State != stateRunning
	diffs := compare(c, r, fails)
	v := verdict{pass: len(diffs) == 0, diffs: diffs}
	equal := fmt.Sprintf("%d records equal", len(r.records)-r.behind)
	switch {
	case fails && !r.refused && !r.held:
		v.pass, v.how = false, "Debezium fails and walpost goes on: "+cause(c.outcome.Message)
	case (r.refused || r.held) && r.reason == "":
		v.pass, v.how = false, "walpost stops and does not say why"
	case r.refused && !fails:
		v.pass, v.how = false, "walpost refuses what Debezium runs: "+r.reason
	case r.refused:
		v.how = fmt.Sprintf("refused at start, where Debezium fails after %d records: %s", len(c.records), r.reason)
	case r.held && fails:
		v.how = equal + ", then held where Debezium fails: " + r.reason
	case r.held:
		v.how = equal + ", then held where Debezium waits: " + r.reason
	default:
		v.how = equal
	}
	if len(diffs) > 0 && (v.pass || !strings.Contains(v.how, "walpost")) {
		v.pass = false
		v.how = fmt.Sprintf("%d differences in %d records, first: %s", len(diffs), max(len(c.records), len(r.records)), diffs[0].what)
		if r.held {
			v.how += "; held: " + r.reason
		}
	}
	if r.behind > 0 {
		v.how += fmt.Sprintf("; %d behind it in other partitions published, which do not wait for it", r.behind)
	}
	if len(r.notes) > 0 {
		v.how += " (" + strings.Join(r.notes, "; ") + ")"
	}
	return v
}

// cause is the last cause of a Java error.
func cause(message string) string {
	lines := strings.Split(strings.TrimSpace(message), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "Caused by: ")
}

// compare returns the differences between the records of a corpus and a run. If
// the connector failed, less may be there of what it published, and not more.
func compare(c *corpus, r *run, failed bool) []difference {
	want, got := lanes(c, c.records), lanes(c, r.records)
	var diffs []difference
	names := map[string]bool{}
	for name := range want {
		names[name] = true
	}
	for name := range got {
		names[name] = true
	}
	// A refusal publishes nothing. A producer that fails has sent later rows too;
	// a transform or converter has not.
	lessIsFine := failed && (r.refused || !strings.Contains(c.outcome.Message, "Tolerance exceeded"))
	for _, name := range sortedKeys(names) {
		w, g := want[name], got[name]
		for i := range max(len(w), len(g)) {
			switch {
			case i >= len(g):
				if !lessIsFine {
					diffs = append(diffs, difference{fmt.Sprintf("%s: record %d is missing", name, i), &w[i], nil})
				}
			case i >= len(w) && r.lane:
				r.behind++
			case i >= len(w):
				diffs = append(diffs, difference{fmt.Sprintf("%s: record %d is too many", name, i), nil, &g[i]})
			default:
				if what := differ(c, &w[i], &g[i], r); what != "" {
					diffs = append(diffs, difference{fmt.Sprintf("%s: record %d: %s", name, i, what), &w[i], &g[i]})
				}
			}
		}
	}
	return diffs
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// lanes are the records whose order counts: those of a partition, and those of a
// topic where the producer chose the partition.
func lanes(c *corpus, records []record) map[string][]record {
	lanes := map[string][]record{}
	free := map[string]bool{}
	for _, r := range records {
		name := fmt.Sprintf("%s/%d", r.Topic, r.Partition)
		if r.Key == nil && !c.partitioned() {
			name = r.Topic + "/any"
			free[name] = true
		}
		lanes[name] = append(lanes[name], r)
	}
	for name := range free {
		slices.SortStableFunc(lanes[name], func(a, b record) int { return strings.Compare(a.id(), b.id()) })
	}
	return lanes
}

// differ says what differs, "" if nothing does.
func differ(c *corpus, want, got *record, r *run) string {
	var what []string
	if !sameBytes(want.Key, got.Key) {
		what = append(what, "key")
	}
	if h := differHeaders(want.Headers, got.Headers); h != "" {
		what = append(what, h)
	}
	wantValue, gotValue := want.Value, got.Value
	if isMessage(c, want) {
		wantValue, gotValue = scrub(wantValue), scrub(gotValue)
	}
	if !sameBytes(wantValue, gotValue) {
		what = append(what, "value")
	}
	const slack = 5000 // of clocks, in milliseconds
	switch {
	case want.Timestamp == clockTime:
		if got.Timestamp < r.began-slack || got.Timestamp > r.ended+slack {
			what = append(what, fmt.Sprintf("timestamp %d is not of the run", got.Timestamp))
		}
	case want.Timestamp != got.Timestamp:
		what = append(what, fmt.Sprintf("timestamp %d, not %d", got.Timestamp, want.Timestamp))
	}
	return strings.Join(what, ", ")
}

// sameBytes tells null from empty.
func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func differHeaders(want, got []header) string {
	for i := range min(len(want), len(got)) {
		w, g := want[i], got[i]
		if w.name != g.name {
			return fmt.Sprintf("header %d is %s, not %s", i, g.name, w.name)
		}
		if w.name == runID {
			if _, ok := runTime(&record{Headers: []header{g}}); !ok {
				return fmt.Sprintf("header %s is no UUID of version 7", runID)
			}
			if len(w.value) != len(g.value) {
				return fmt.Sprintf("header %s has %d bytes, not %d", runID, len(g.value), len(w.value))
			}
			continue
		}
		if !sameBytes(w.value, g.value) {
			return "header " + w.name
		}
	}
	if len(want) != len(got) {
		return fmt.Sprintf("%d headers, not %d", len(got), len(want))
	}
	return ""
}

// unquoted takes the UUID out of what a JSON converter makes of it.
func unquoted(value []byte) []byte {
	var wrapped struct {
		Payload *string `json:"payload"`
	}
	var plain string
	switch {
	case json.Unmarshal(value, &plain) == nil:
		return []byte(plain)
	case json.Unmarshal(value, &wrapped) == nil && wrapped.Payload != nil:
		return []byte(*wrapped.Payload)
	}
	return value
}

// isMessage says that the record is a logical message that passed through.
func isMessage(c *corpus, r *record) bool {
	return r.Topic == c.connector.Config["topic.prefix"]+".message"
}

// ofTheRun are the members of a logical message's value that hold positions, times
// and the database of the run.
var ofTheRun = []string{"ts_ms", "ts_us", "ts_ns", "lsn", "txId", "sequence", "db", "xmin"}

// scrub blanks them, in place, so that everything else, order too, is compared as
// it is.
func scrub(value []byte) []byte {
	if value == nil {
		return nil
	}
	out := value
	for _, name := range ofTheRun {
		marker := []byte(`"` + name + `":`)
		var next []byte
		for {
			i := bytes.Index(out, marker)
			if i < 0 {
				next = append(next, out...)
				break
			}
			i += len(marker)
			next = append(next, out[:i]...)
			out = out[i:]
			d := json.NewDecoder(bytes.NewReader(out))
			var v json.RawMessage
			if d.Decode(&v) != nil {
				continue
			}
			switch v[0] {
			case 'n', '{': // null stays, and so does a schema
				next = append(next, v...)
			default:
				next = append(next, '?')
			}
			out = out[d.InputOffset():]
		}
		out = next
	}
	return out
}
