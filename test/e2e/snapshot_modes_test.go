package e2e

import (
	"testing"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/pgserver"
)

// connectorOutbox has a table and a publication for a connector, rows, a topic,
// and no slot.
func connectorOutbox(t *testing.T, rows int) *outbox {
	t.Helper()
	o := bareDebezium(t, testkit.Postgres(t, kafkaMajor).NewDB(t))
	o.exec(`select pg_drop_replication_slot($1)`, o.slot)
	o.createTopic("order")
	if rows > 0 {
		o.debeziumRows(1, rows, 97)
	}
	return o
}

// TestSnapshotModes: what a connector's snapshot.mode does to a slot that is
// there, used, in use or gone.
func TestSnapshotModes(t *testing.T) {
	t.Parallel()
	start := func(o *outbox, mode string) func(flags ...string) *relay {
		connector, worker := o.connectorFiles(map[string]string{"snapshot.mode": mode})
		return func(flags ...string) *relay { return o.runDebezium(connector, worker, flags...) }
	}
	t.Run("initial_only", func(t *testing.T) {
		t.Parallel()
		o := connectorOutbox(t, 100)
		run := start(o, "initial_only")
		for range 2 { // the second time there is nothing to do
			if code := run().wait(); code != 0 {
				t.Fatalf("exit code %d", code)
			}
		}
		if o.slots() != 0 {
			t.Error("it left a slot that nobody reads")
		}
		o.noRepeats("order", 100)
	})
	t.Run("initial, and a standby", func(t *testing.T) {
		t.Parallel()
		o := connectorOutbox(t, 20_000)
		run := start(o, "initial")
		relays := []*relay{run(), run(), run()}
		o.awaitCount("order", 20_000)
		o.debeziumRows(20_001, 100, 97)
		testkit.Await(t, "the slot", func() bool { return o.slots() == 1 })
		o.awaitConfirmed()
		for _, r := range relays {
			if !r.running() {
				t.Errorf("an instance has ended: %v", r.cmd.ProcessState)
				continue
			}
			r.stop()
		}
		o.noRepeats("order", 20_100)
	})
	t.Run("always, and a standby", func(t *testing.T) {
		t.Parallel()
		o := connectorOutbox(t, 100)
		run := start(o, "always")
		first := run()
		first.awaitStream()
		second := run()
		second.awaitReason("waiting_for_slot")
		o.debeziumRows(101, 10, 97)
		o.awaitConfirmed()
		o.noRepeats("order", 110)
		first.stop()
		second.awaitStream()
		second.stop()
		if n := len(o.read("order")); n != 220 {
			t.Errorf("%d records after the second snapshot, want 220", n)
		}
	})
	t.Run("initial on a slot that nobody has read", func(t *testing.T) {
		t.Parallel()
		o := connectorOutbox(t, 100)
		o.exec(`select pg_create_logical_replication_slot($1, 'pgoutput')`, o.slot)
		run := start(o, "initial")
		run().wantExit(4, "nothing tells whether the rows that were there before it are published", "--snapshot none")
		o.debeziumRows(101, 10, 97) // in the snapshot and in the stream
		r := run("--snapshot", "initial")
		r.awaitStream()
		o.awaitConfirmed()
		r.stop()
		r = run()
		r.awaitStream()
		r.stop()
		o.noRepeats("order", 110)
	})
	for _, mode := range []string{"no_data", "initial"} {
		t.Run(mode+" and the slot is gone", func(t *testing.T) {
			t.Parallel()
			o := connectorOutbox(t, 0)
			run := start(o, mode)
			r := run()
			r.awaitStream()
			o.debeziumRows(1, 10, 97)
			o.awaitConfirmed()
			r.stop()
			o.exec(`select pg_drop_replication_slot($1)`, o.slot)
			run().wantExit(4, "does not exist, and walpost has published from it up to", "delete from walpost.checkpoint")
			r = start(o, "when_needed")()
			o.debeziumRows(11, 10, 97)
			r.awaitStream()
			o.awaitConfirmed()
			r.stop()
			if repeats := checkNumbers(t, o.read("order"), 20); repeats > 10 {
				t.Errorf("%d repeats", repeats)
			}
		})
	}
	t.Run("when_needed and the slot is lost", func(t *testing.T) {
		t.Parallel()
		server := testkit.PrivatePostgres(t, pgserver.Options{Major: kafkaMajor, FsyncOff: true, Settings: map[string]string{"max_slot_wal_keep_size": "1MB"}})
		o := bareDebezium(t, server.DSN("postgres"))
		o.createTopic("order")
		o.debeziumRows(1, 100, 97)
		o.loseSlot()
		start(o, "always")().wantExit(4, "is lost", "drop the slot")
		r := start(o, "when_needed")()
		r.awaitStream()
		o.awaitConfirmed()
		r.stop()
		o.noRepeats("order", 100)
	})
}

// loseSlot writes WAL until the server has given the slot up.
func (o *outbox) loseSlot() {
	o.t.Helper()
	testkit.Await(o.t, "the loss of the slot", func() bool {
		o.exec(`select pg_logical_emit_message(false, 'filler', repeat('x', 1000000)) from generate_series(1, 20)`)
		o.exec(`select pg_switch_wal()`)
		o.exec(`checkpoint`)
		return query[bool](o, `select wal_status = 'lost' from pg_replication_slots where slot_name = $1`, o.slot)
	})
}
