package e2e

import (
	"testing"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/testkit"
)

// TestSnapshot: rows that were there before the slot are published once, in the
// order of their key, and what is written meanwhile follows behind them.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	for _, major := range testkit.Majors(t) {
		o := bareOutbox(t, testkit.Postgres(t, major).NewDB(t), testkit.Kafka(t).Addr())
		o.createTopic("order")
		o.must("init", "--create-table", "--snapshot", "initial")
		if n := query[int](o, "select count(*) from pg_replication_slots where slot_name = $1", o.slot); n != 0 {
			t.Fatal("init made the slot, so that nothing before it would be published")
		}
		o.insertMany("order", 1, 20_000, 97)
		open := testkit.Connect(t, o.dsn)
		inFlight, err := open.Begin(t.Context()) // begun before the snapshot, committed behind it
		if err != nil {
			t.Fatal(err)
		}
		r := o.start("--snapshot", "initial")
		o.insertMany("order", 20_001, 500, 97)
		if err := inFlight.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.await("the stream", func(s admin.Status) bool { return s.Slot.Streaming })
		o.insertMany("order", 20_501, 500, 97)
		o.awaitCount("order", 21_000)
		o.awaitConfirmed()
		r.kill()
		r = o.start("--snapshot", "initial") // the slot says that it is done
		r.awaitReady()
		o.insertMany("order", 21_001, 10, 97)
		o.awaitConfirmed()
		r.stop()
		seen := map[int]int{}
		for _, rec := range o.read("order") {
			seen[number(t, rec)]++
		}
		for n := 1; n <= 21_010; n++ {
			if seen[n] != 1 {
				t.Fatalf("PostgreSQL %d: event %d came %d times", major, n, seen[n])
			}
		}
		if n := query[int](o, "select count(*) from pg_replication_slots where temporary and database = current_database()"); n != 0 {
			t.Errorf("%d temporary slots are left", n)
		}
	}
}

// TestSnapshotInterrupted: killed in the middle, it starts anew and sends
// nothing twice; there is no slot before everything is delivered.
func TestSnapshotInterrupted(t *testing.T) {
	t.Parallel()
	const rows = 60_000
	o := bareOutbox(t, testkit.Postgres(t, kafkaMajor).NewDB(t), testkit.Kafka(t).Addr())
	o.createTopic("order")
	o.must("init", "--create-table", "--snapshot", "initial")
	o.insertMany("order", 1, rows, 997)
	for _, at := range []int{rows / 5, rows / 2} {
		r := o.start("--snapshot", "initial")
		o.awaitCount("order", at)
		r.kill()
	}
	first, second := o.start("--snapshot", "initial"), o.start("--snapshot", "initial")
	o.insertMany("order", rows+1, 100, 997)
	o.awaitCount("order", rows+100)
	testkit.Await(t, "the slot", func() bool {
		return query[int](o, "select count(*) from pg_replication_slots where slot_name = $1", o.slot) == 1
	})
	o.awaitConfirmed()
	for _, r := range []*relay{first, second} {
		r.stop()
	}
	seen := map[int]int{}
	for _, rec := range o.read("order") {
		seen[number(t, rec)]++
	}
	for n := 1; n <= rows+100; n++ {
		if seen[n] != 1 {
			t.Fatalf("event %d came %d times", n, seen[n])
		}
	}
}
