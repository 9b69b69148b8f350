package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/topic"
)

// TestMillionRowTransaction: one transaction of a million rows over a hundred
// thousand aggregates passes through little memory. Every partition's count is
// what its keys must give, and one partition is read whole.
func TestMillionRowTransaction(t *testing.T) {
	t.Parallel()
	const rows, aggregates, partitions = 1_000_000, 100_000, 12
	o := newOutbox(t, 15)
	name := o.topic("bulk")
	testkit.CreateTopic(t, o.brokers, name, partitions)
	r := o.startBinary(binary(t, true), nil)
	r.awaitReady()
	o.insertMany("bulk", 1, rows, aggregates)
	testkit.AwaitWithin(t, 3*time.Minute, "the whole transaction", func() bool {
		s, ok := r.status()
		return ok && s.Published.Events == rows
	})
	o.awaitConfirmed()
	r.peak(fmt.Sprintf("a transaction of %d rows", rows), 120)
	r.stop()

	want := make([]int64, partitions)
	place := make([]int, aggregates)
	for a := range aggregates {
		place[a] = partitionOf(fmt.Sprint(a), partitions)
		want[place[a]] += rows / aggregates
	}
	ranges, err := topic.Ranges(t.Context(), o.brokers, name)
	need(t, err)
	skip := map[int]int64{}
	for p, has := range ranges {
		if has.Start != 0 || has.End != want[p] {
			t.Errorf("partition %d has offsets %d to %d, want %d records", p, has.Start, has.End, want[p])
		}
		if p != 5 {
			skip[p] = has.End
		}
	}
	records, err := topic.ReadFrom(t.Context(), o.brokers, name, skip)
	need(t, err)
	last := 0
	for _, rec := range records {
		n := number(t, rec)
		// In one transaction the partition has the order of the statement.
		if n <= last || place[n%aggregates] != 5 || string(rec.Key) != fmt.Sprint(n%aggregates) {
			t.Fatalf("offset %d: event %d with key %s behind event %d", rec.Offset, n, rec.Key, last)
		}
		last = n
	}
	if int64(len(records)) != want[5] {
		t.Errorf("%d records in partition 5, want %d", len(records), want[5])
	}
}

// TestHundredThousandAggregates: as many keys as events.
func TestHundredThousandAggregates(t *testing.T) {
	t.Parallel()
	const rows = 100_000
	o := newOutbox(t, kafkaMajor)
	o.createTopic("many")
	r := o.startBinary(binary(t, true), nil)
	r.awaitReady()
	for n := 1; n <= rows; n += 1000 {
		o.insertMany("many", n, 1000, rows)
	}
	r.awaitPublished(rows)
	o.awaitConfirmed()
	r.peak(fmt.Sprintf("%d aggregates", rows), 120)
	r.stop()
	o.noRepeats("many", rows)
}
