package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/topic"
)

// insertLarge writes one event with a payload of about size bytes.
func (o *outbox) insertLarge(aggregateType, key string, n, size int) (id string) {
	o.t.Helper()
	err := o.db.QueryRow(o.t.Context(), `insert into `+o.table+` (event_id, aggregate_type, aggregate_id, event_type, payload, occurred_at)
		values (gen_random_uuid(), $1, $2, 'Created', jsonb_build_object('n', $3::int, 'pad', repeat('x', $4)), now())
		returning event_id::text`, aggregateType, key, n, size).Scan(&id)
	need(o.t, err)
	return id
}

// TestLargePayloads: 1 MB passes where the topic allows it; 10 MB above the
// broker's limit is poison, holds only its partition, and flows by itself when
// the limit has been raised.
func TestLargePayloads(t *testing.T) {
	t.Parallel()
	const partitions = 12
	o := newOutbox(t, kafkaMajor)
	testkit.CreateTopicSpec(t, o.brokers, topic.Spec{Name: o.topic("wide"), Config: map[string]string{"max.message.bytes": "2000000"}})
	name := o.topic("doc")
	testkit.CreateTopic(t, o.brokers, name, partitions)
	r := o.start()
	r.awaitReady()

	o.insertLarge("wide", "a", 1, 1_000_000)
	r.awaitPublished(1)
	if got := o.read("wide"); len(got) != 1 || len(got[0].Value) < 1_000_000 || number(t, got[0]) != 1 {
		t.Fatalf("%d records of 1 MB arrived, want 1", len(got))
	}

	stuck, free := keysIn(3, partitions, 1)[0], keysIn(4, partitions, 5)
	o.insertLarge("doc", stuck, 1, 10)
	r.awaitPublished(2)
	before := o.walNow()
	poison := o.insertLarge("doc", stuck, 2, 10_000_000)
	after := o.walNow()
	o.insertLarge("doc", stuck, 3, 10)
	for n, key := range free {
		o.insertLarge("doc", key, 10+n, 10)
	}
	s := r.awaitReason("poison")
	r.probesWhileHolding("poison")
	if s.State != "holding" || s.Poison == nil {
		t.Fatalf("state %s, poison %v", s.State, s.Poison)
	}
	if p := s.Poison; p.EventID != poison || p.Table != o.table || value(p.Topic) != name ||
		p.Partition == nil || *p.Partition != 3 || !strings.Contains(p.Reason, "MESSAGE_TOO_LARGE") || p.Ordinal != 1 {
		t.Errorf("poison %+v, want event %s of %s in %s", p, poison, o.table, name)
	}
	if !strings.Contains(value(s.Hint), "max.message.bytes") {
		t.Errorf("hint %q does not name max.message.bytes", value(s.Hint))
	}
	stdout, stderr, _ := o.run("status", "--admin-listen", r.admin)
	out := stdout + stderr
	for _, want := range []string{poison, o.table, name, "MESSAGE_TOO_LARGE", s.Poison.CommitLSN} {
		if !strings.Contains(out, want) {
			t.Errorf("walpost status does not name %s:\n%s", want, out)
		}
	}

	r.await("the other partitions' events", func(s admin.Status) bool { return s.Published.Events == uint64(2+len(free)) })
	got := o.read("doc")
	if len(got) != 1+len(free) {
		t.Errorf("%d records beside the poison, want %d", len(got), 1+len(free))
	}
	o.confirmedBelow(s.Poison.CommitLSN)
	var ok bool
	need(t, o.db.QueryRow(t.Context(), `select $1::pg_lsn < $2 and $2::pg_lsn < $3`, before, s.Poison.CommitLSN, after).Scan(&ok))
	if !ok {
		t.Errorf("the poison's commit is given as %s, but it was between %s and %s", s.Poison.CommitLSN, before, after)
	}

	alterTopic(t, o.brokers, name, "max.message.bytes", "20000000")
	r.awaitPublished(uint64(4 + len(free)))
	o.awaitConfirmed()
	r.awaitReady()
	last := -1
	for _, rec := range o.read("doc") {
		if string(rec.Key) == stuck {
			if n := number(t, rec); n != last+1 && last >= 0 {
				t.Errorf("event %d behind %d", n, last)
			} else {
				last = n
			}
		}
	}
	if last != 3 {
		t.Errorf("the last event of the partition is %d, want 3", last)
	}
	r.stop()
}

// TestRecordTimeRefused: a record whose time the broker does not take is poison;
// those before it in the batch are delivered, and those behind it wait.
func TestRecordTimeRefused(t *testing.T) {
	t.Parallel()
	o := newOutbox(t, 15)
	name := o.topic("clock")
	testkit.CreateTopic(t, o.brokers, name, 1)
	var ids []string
	tx, err := o.db.Begin(t.Context())
	need(t, err)
	for n := range 20 {
		ahead := "0"
		if n == 12 {
			ahead = "3 hours"
		}
		var id string
		need(t, tx.QueryRow(t.Context(), `insert into `+o.table+` (event_id, aggregate_type, aggregate_id, event_type, payload, occurred_at)
			values (gen_random_uuid(), 'clock', 'a', 'Created', jsonb_build_object('n', $1::int), now() + $2::text::interval) returning event_id::text`, n, ahead).Scan(&id))
		ids = append(ids, id)
	}
	need(t, tx.Commit(t.Context()))
	r := o.startMapped("{timestamp: occurred_at}")
	s := r.awaitReason("poison")
	if s.Poison == nil || s.Poison.EventID != ids[12] || s.Poison.Ordinal != 13 || !strings.Contains(s.Poison.Reason, "INVALID_TIMESTAMP") {
		t.Fatalf("poison %+v, want event %s", s.Poison, ids[12])
	}
	if !strings.Contains(value(s.Hint), "message.timestamp") {
		t.Errorf("hint %q does not name the setting", value(s.Hint))
	}
	r.await("the events before it", func(s admin.Status) bool { return s.Published.Events == 12 })
	got := o.read("clock")
	if len(got) != 12 {
		t.Fatalf("%d records before the poison, want 12", len(got))
	}
	for i, rec := range got {
		if id, _ := rec.Header("id"); string(id) != ids[i] {
			t.Errorf("record %d is event %s, want %s", i, id, ids[i])
		}
	}
	o.confirmedBelow(s.Poison.CommitLSN)

	alterTopic(t, o.brokers, name, "message.timestamp.after.max.ms", fmt.Sprint(24*3600*1000))
	r.awaitPublished(20)
	got = o.read("clock")
	if len(got) != 20 {
		t.Fatalf("%d records, want 20", len(got))
	}
	for i, rec := range got {
		if number(t, rec) != i {
			t.Errorf("record %d has n=%d", i, number(t, rec))
		}
	}
	var ahead int64
	need(t, o.db.QueryRow(t.Context(), `select (extract(epoch from occurred_at) * 1000)::bigint from `+o.table+` where event_id = $1`, ids[12]).Scan(&ahead))
	if diff := got[12].Time.UnixMilli() - ahead; diff < -1 || diff > 1 {
		t.Errorf("record time %s is not the column's", got[12].Time)
	}
	r.stop()
}

// TestPartitionColumn: the column decides where an event goes; a number that the
// topic does not have is poison until it has.
func TestPartitionColumn(t *testing.T) {
	t.Parallel()
	o := newOutbox(t, kafkaMajor)
	o.exec(`alter table ` + o.table + ` add column shard int`)
	name := o.topic("sharded")
	testkit.CreateTopic(t, o.brokers, name, 4)
	write := func(n int, shard any) (id string) {
		t.Helper()
		need(t, o.db.QueryRow(t.Context(), `insert into `+o.table+` (event_id, aggregate_type, aggregate_id, event_type, payload, occurred_at, shard)
			values (gen_random_uuid(), 'sharded', 'a', 'Created', jsonb_build_object('n', $1::int), now(), $2) returning event_id::text`, n, shard).Scan(&id))
		return id
	}
	r := o.startMapped("{partition: shard}")
	for n := range 8 {
		write(n, n%4)
	}
	write(8, nil) // by its key
	r.awaitPublished(9)
	poison := write(9, 5)
	write(10, 2)
	s := r.awaitReason("poison")
	if s.Poison == nil || s.Poison.EventID != poison || s.Poison.Partition == nil || *s.Poison.Partition != 5 ||
		!strings.Contains(s.Poison.Reason, "no_such_partition") || !strings.Contains(s.Poison.Reason, "4 partitions") {
		t.Fatalf("poison %+v, want event %s", s.Poison, poison)
	}
	r.probesWhileHolding("poison")
	r.await("the event behind it, of another partition", func(s admin.Status) bool { return s.Published.Events == 10 })
	o.confirmedBelow(s.Poison.CommitLSN)

	addPartitions(t, o.brokers, name, 6)
	r.awaitPublished(11)
	want := map[int]int{0: 0, 1: 1, 2: 2, 3: 3, 4: 0, 5: 1, 6: 2, 7: 3, 8: partitionOf("a", 4), 9: 5, 10: 2}
	got := o.read("sharded")
	if len(got) != len(want) {
		t.Errorf("%d records, want %d", len(got), len(want))
	}
	for _, rec := range got {
		if n := number(t, rec); want[n] != rec.Partition {
			t.Errorf("event %d is in partition %d, want %d", n, rec.Partition, want[n])
		}
	}
	r.stop()
}
