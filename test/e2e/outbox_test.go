package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/topic"
)

// outbox is a database of its own with an outbox table, a publication, a slot
// and a topic prefix that no other test uses.
type outbox struct {
	t       *testing.T
	dsn     string // for the test; the relay's may differ
	brokers []string
	slot    string // and publication
	prefix  string // of the topics
	table   string
	db      *pgx.Conn
}

// newOutbox makes one on the shared servers, with the seed's table.
func newOutbox(t *testing.T, major int) *outbox {
	t.Helper()
	return newOutboxAt(t, testkit.Postgres(t, major).NewDB(t), testkit.Kafka(t).Addr())
}

// newOutboxAt makes one in a database that is there already.
func newOutboxAt(t *testing.T, dsn string, brokers []string) *outbox {
	t.Helper()
	o := bareOutbox(t, dsn, brokers)
	o.must("init", "--create-table")
	return o
}

// bareOutbox has nothing made yet.
func bareOutbox(t *testing.T, dsn string, brokers []string) *outbox {
	t.Helper()
	name := testkit.Unique("e2e")
	return &outbox{
		t: t, dsn: dsn, brokers: brokers, slot: name, prefix: name, table: "public.outbox_events",
		db: testkit.Connect(t, dsn),
	}
}

// flags are the ones that every command of the test gets.
func (o *outbox) flags() []string {
	flags := []string{
		"--dsn", o.dsn, "--slot", o.slot, "--publication", o.slot,
		"--brokers", strings.Join(o.brokers, ","), "--topic", o.prefix + ".<aggregate_type>",
	}
	if o.table != "" { // else a file names the tables
		flags = append(flags, "--table", o.table)
	}
	return flags
}

// run runs a command of the binary to its end.
func (o *outbox) run(args ...string) (stdout, stderr string, code int) {
	o.t.Helper()
	cmd := exec.CommandContext(testkit.Context(o.t), binary(o.t, false), append(args, o.flags()...)...)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		o.t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// must is run for what has to succeed.
func (o *outbox) must(args ...string) string {
	o.t.Helper()
	stdout, stderr, code := o.run(args...)
	if code != 0 {
		o.t.Fatalf("walpost %s: exit %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

func (o *outbox) exec(sql string, args ...any) {
	o.t.Helper()
	if _, err := o.db.Exec(o.t.Context(), sql, args...); err != nil {
		o.t.Fatalf("%s: %v", sql, err)
	}
}

// event is what a test writes and expects.
type event struct {
	id, aggregateType, aggregateID string
	n                              int // in the payload, ascending per aggregate
}

func (e event) payload() string { return fmt.Sprintf(`{"n": %d}`, e.n) }

func newEvent(aggregateType, aggregateID string, n int) event {
	return event{uuid.NewString(), aggregateType, aggregateID, n}
}

// querier is a connection or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// insert writes events in one transaction.
func (o *outbox) insert(events ...event) {
	o.t.Helper()
	tx, err := o.db.Begin(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	o.insertIn(tx, events...)
	if err := tx.Commit(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
}

func (o *outbox) insertIn(q querier, events ...event) {
	o.t.Helper()
	for _, e := range events {
		_, err := q.Exec(o.t.Context(), `insert into `+o.table+` (event_id, aggregate_type, aggregate_id, event_type, payload, occurred_at)
			values ($1, $2, $3, 'Created', $4, now())`, e.id, e.aggregateType, e.aggregateID, e.payload())
		if err != nil {
			o.t.Fatal(err)
		}
	}
}

// insertMany writes rows n0 … n0+count-1 of one aggregate type in one
// transaction, over so many aggregates; their payload is {"n": n, "pad": …}.
func (o *outbox) insertMany(aggregateType string, n0, count, aggregates int) {
	o.t.Helper()
	o.exec(`insert into `+o.table+` (event_id, aggregate_type, aggregate_id, event_type, payload, occurred_at)
		select gen_random_uuid(), $1, (n % $2)::text, 'Created', jsonb_build_object('n', n, 'pad', repeat('x', 100)), now()
		from generate_series($3::int, $4::int) n`, aggregateType, aggregates, n0, n0+count-1)
}

func (o *outbox) topic(aggregateType string) string { return o.prefix + "." + aggregateType }

// createTopic makes the topic of an aggregate type; the relay does not.
func (o *outbox) createTopic(aggregateType string) string {
	o.t.Helper()
	name := o.topic(aggregateType)
	testkit.CreateTopic(o.t, o.brokers, name, 0)
	return name
}

// read returns what has arrived for an aggregate type.
func (o *outbox) read(aggregateType string) []topic.Record {
	o.t.Helper()
	return testkit.ReadAll(o.t, o.brokers, o.topic(aggregateType))
}

// awaitCount waits until at least n records have arrived.
func (o *outbox) awaitCount(aggregateType string, n int) {
	o.t.Helper()
	testkit.Await(o.t, fmt.Sprintf("%d records in %s", n, o.topic(aggregateType)), func() bool {
		have, err := topic.Count(o.t.Context(), o.brokers, o.topic(aggregateType))
		return err == nil && have >= int64(n)
	})
}

// number is the n of a payload.
func number(t *testing.T, r topic.Record) int {
	t.Helper()
	var p struct{ N int }
	if err := json.Unmarshal(r.Value, &p); err != nil {
		t.Fatalf("payload %q: %v", r.Value, err)
	}
	return p.N
}

// check verifies that records are exactly events (first copies in order per
// aggregate), each key in one partition, and returns how many came more than
// once.
func check(t *testing.T, records []topic.Record, events []event) (repeats int) {
	t.Helper()
	want := make(map[string]event, len(events))
	for _, e := range events {
		want[e.id] = e
	}
	seen := make(map[string]bool, len(events))
	place := make(map[string]int)
	newest := make(map[string]int)
	for _, r := range records {
		id, _ := r.Header("id")
		e, ok := want[string(id)]
		if !ok {
			t.Errorf("record %s of %s was never committed", id, r.Topic)
			continue
		}
		if string(r.Key) != e.aggregateID || string(r.Value) != e.payload() {
			t.Errorf("event %s: key %q, value %q; want %q, %q", e.id, r.Key, r.Value, e.aggregateID, e.payload())
		}
		key := r.Topic + "/" + string(r.Key)
		if p, ok := place[key]; ok && p != r.Partition {
			t.Errorf("key %s is in partitions %d and %d", key, p, r.Partition)
		}
		place[key] = r.Partition
		if seen[e.id] {
			repeats++
			continue
		}
		seen[e.id] = true
		if last, ok := newest[key]; ok && last >= e.n {
			t.Errorf("key %s: event %d behind %d", key, e.n, last)
		}
		newest[key] = e.n
	}
	for _, e := range events {
		if !seen[e.id] {
			t.Errorf("event %s (%s %s n=%d) is missing", e.id, e.aggregateType, e.aggregateID, e.n)
		}
	}
	return repeats
}

// checkNumbers verifies n0 … n0+count-1 of insertMany the same way.
func checkNumbers(t *testing.T, records []topic.Record, count int) (repeats int) {
	t.Helper()
	seen := make([]bool, count+1)
	newest := make(map[string]int)
	place := make(map[string]int)
	missing := count
	for _, r := range records {
		n := number(t, r)
		if n < 1 || n > count {
			t.Errorf("n=%d was never written", n)
			continue
		}
		key := string(r.Key)
		if p, ok := place[key]; ok && p != r.Partition {
			t.Errorf("key %s is in partitions %d and %d", key, p, r.Partition)
		}
		place[key] = r.Partition
		if seen[n] {
			repeats++
			continue
		}
		seen[n] = true
		missing--
		if newest[key] >= n {
			t.Errorf("key %s: %d behind %d", key, n, newest[key])
		}
		newest[key] = n
	}
	if missing > 0 {
		t.Errorf("%d of %d events are missing", missing, count)
	}
	return repeats
}

// confirmed waits until the slot has confirmed everything that is in the WAL
// now.
func (o *outbox) awaitConfirmed() {
	o.t.Helper()
	var now string
	if err := o.db.QueryRow(o.t.Context(), `select pg_current_wal_insert_lsn()::text`).Scan(&now); err != nil {
		o.t.Fatal(err)
	}
	testkit.Await(o.t, "confirmation of "+now, func() bool {
		var ok bool
		err := o.db.QueryRow(o.t.Context(), `select confirmed_flush_lsn >= $1::pg_lsn from pg_replication_slots where slot_name = $2`, now, o.slot).Scan(&ok)
		return err == nil && ok
	})
}
