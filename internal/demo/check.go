package demo

import (
	"fmt"

	"github.com/walpost/walpost/internal/testkit/topic"
)

// Event is one row of the outbox.
type Event struct {
	ID        string
	Aggregate string
	Version   int64
	Payload   string
}

// Fault is a kind of difference between the outbox and the topic.
type Fault string

// The faults.
const (
	Missing     Fault = "missing"      // committed, not in the topic
	Doubled     Fault = "doubled"      // more than once in the topic
	OutOfOrder  Fault = "out of order" // behind a later one of its aggregate, or in another partition
	Altered     Fault = "altered"      // another key or payload
	Uncommitted Fault = "uncommitted"  // in the topic, and was rolled back
	Foreign     Fault = "foreign"      // in the topic, and nobody knows it
)

// Faults lists all of them.
func Faults() []Fault { return []Fault{Missing, Doubled, OutOfOrder, Altered, Uncommitted, Foreign} }

// Report is the outcome of a check.
type Report struct {
	Committed, Records     int
	Aggregates, Partitions int // that have events
	Count                  map[Fault]int
	First                  map[Fault]string // describes the first one
}

// OK says that there is no fault.
func (r *Report) OK() bool { return len(r.Count) == 0 }

func (r *Report) fault(f Fault, format string, args ...any) {
	if r.Count[f]++; r.Count[f] == 1 {
		r.First[f] = fmt.Sprintf(format, args...)
	}
}

// last is where an aggregate has arrived.
type last struct {
	position  int // in the list of committed events
	partition int
}

// Check compares the committed events, in the order of their aggregates, with
// the records, in the order of offsets within each partition.
func Check(committed []Event, rolledBack map[string]bool, records []topic.Record) *Report {
	r := &Report{Committed: len(committed), Records: len(records), Count: map[Fault]int{}, First: map[Fault]string{}}
	position := make(map[string]int, len(committed))
	for i := range committed {
		position[committed[i].ID] = i
	}
	seen := make([]bool, len(committed))
	aggregates, partitions := map[string]last{}, map[int]bool{}
	for i := range records {
		rec := &records[i]
		partitions[rec.Partition] = true
		where := fmt.Sprintf("partition %d, offset %d", rec.Partition, rec.Offset)
		id, _ := rec.Header("id")
		at, known := position[string(id)]
		switch {
		case !known && rolledBack[string(id)]:
			r.fault(Uncommitted, "event %s at %s", id, where)
			continue
		case !known:
			r.fault(Foreign, "event %q with key %q at %s", id, rec.Key, where)
			continue
		case seen[at]:
			r.fault(Doubled, "%s, again at %s", &committed[at], where)
			continue
		}
		seen[at] = true
		event := &committed[at]
		if string(rec.Key) != event.Aggregate || rec.Value == nil || string(rec.Value) != event.Payload {
			r.fault(Altered, "%s at %s has key %q and payload %q, want %q", event, where, rec.Key, rec.Value, event.Payload)
		}
		before, begun := aggregates[event.Aggregate]
		switch {
		case begun && before.partition != rec.Partition:
			r.fault(OutOfOrder, "%s at %s, others of it in partition %d", event, where, before.partition)
		case begun && before.position > at:
			r.fault(OutOfOrder, "%s at %s, behind version %d", event, where, committed[before.position].Version)
		default:
			aggregates[event.Aggregate] = last{at, rec.Partition}
		}
	}
	for i := range committed {
		if !seen[i] {
			r.fault(Missing, "%s", &committed[i])
		}
	}
	r.Aggregates, r.Partitions = len(aggregates), len(partitions)
	return r
}

// String names the event.
func (e *Event) String() string {
	return fmt.Sprintf("event %s (%s, version %d)", e.ID, e.Aggregate, e.Version)
}
