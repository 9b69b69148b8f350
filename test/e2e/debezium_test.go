package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/pgserver"
)

// emptyConnectorOutbox has a Debezium table with a topic, and neither publication
// nor slot; the connector is told to make them.
func emptyConnectorOutbox(t *testing.T, dsn string) *outbox {
	t.Helper()
	o := bareOutbox(t, dsn, testkit.Kafka(t).Addr())
	o.table = "public.out"
	o.debeziumTable("out", "json")
	o.createTopic("order")
	return o
}

// with is what a connector has that makes what is missing.
func with(more ...string) map[string]string {
	keys := map[string]string{"publication.autocreate.mode": "filtered"}
	for i := 0; i < len(more); i += 2 {
		keys[more[i]] = more[i+1]
	}
	return keys
}

// TestDebeziumStart: nothing but the table is there, and PostgreSQL is not up.
// Probes answer meanwhile; then publication and slot are made, and rows flow. The
// same file serves init, status and config print. No output has the password.
func TestDebeziumStart(t *testing.T) {
	t.Parallel()
	const password = "s3cr3t-of-the-connector"
	server := testkit.PrivatePostgres(t, pgserver.Options{Major: kafkaMajor, FsyncOff: true, Password: password})
	dsn := server.DSN("postgres")
	o := emptyConnectorOutbox(t, dsn)
	connector, worker := o.connectorFiles(with("database.password", password, "slot.failover", "true", "schema.include.list", "PUB.*", "table.include.list", "PUBLIC.Ou."))
	both := []string{"--debezium", connector, "--worker", worker}
	var said strings.Builder
	run := func(want int, args ...string) string {
		t.Helper()
		stdout, stderr, code := o.runPlain(append(args, both...)...)
		if code != want {
			t.Fatalf("%s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, stdout, stderr)
		}
		said.WriteString(stdout + stderr)
		return stdout
	}
	if text := run(0, "config", "print"); !strings.Contains(text, "connector.json") {
		t.Errorf("config print does not say where values are from:\n%s", text)
	}
	run(0, "config", "validate")
	ctx := testkit.Context(t)
	need(t, server.Stop(ctx, pgserver.Fast))
	r := o.runDebezium(connector, worker, "--log-level", "debug")
	r.awaitSaid("cannot start yet")
	r.awaitReason("postgres_unreachable")
	r.probesWhileHolding("postgres_unreachable")
	need(t, server.StartAgain(ctx))
	r.awaitSaid("streaming")
	o.reconnect()
	o.debeziumRows(1, 10, 3)
	o.awaitConfirmed()
	if text := run(0, "status", "--admin-listen", "off"); !strings.Contains(text, o.slot) || !strings.Contains(text, "public.out") {
		t.Errorf("status:\n%s", text)
	}
	if text := run(0, "init"); !strings.Contains(text, "public.out") || !strings.Contains(text, "checkpoint") {
		t.Errorf("init:\n%s", text)
	}
	if !query[bool](o, `select failover from pg_replication_slots where slot_name = $1`, o.slot) {
		t.Error("slot.failover=true, and the slot has not got it")
	}
	r.stop()
	o.noRepeats("order", 10)
	o.exec(`alter role postgres password 'another'`)
	r = o.runDebezium(connector, worker)
	testkit.Await(t, "the refusal", func() bool { return strings.Contains(r.logText(), "28P01") })
	said.WriteString(r.logText())
	if strings.Contains(said.String(), password) {
		t.Error("the password is in the output")
	}
}

// TestDebeziumPrecedence: a flag wins over the connector's file, and a converted
// file does the same as the connector's.
func TestDebeziumPrecedence(t *testing.T) {
	t.Parallel()
	o := emptyConnectorOutbox(t, testkit.Postgres(t, kafkaMajor).NewDB(t))
	connector, worker := o.connectorFiles(with("database.hostname", "nowhere.invalid", "slot.name", "of_the_file"))
	r := o.runDebezium(connector, worker, "--dsn", o.dsn, "--slot", o.slot, "--publication", o.slot)
	r.awaitStream()
	o.debeziumRows(1, 10, 3)
	o.awaitConfirmed()
	r.stop()
	stdout, stderr, code := o.runPlain("debezium", "convert", connector, "--worker", worker)
	if code != 0 {
		t.Fatalf("convert: exit code %d\n%s", code, stderr)
	}
	file := filepath.Join(t.TempDir(), "walpost.yaml")
	need(t, os.WriteFile(file, []byte(stdout), 0o600))
	r = o.startArgs(nil, "run", "--config", file, "--dsn", o.dsn, "--slot", o.slot, "--publication", o.slot, "--admin-listen", "127.0.0.1:0", "--log-format", "json")
	r.awaitStream()
	o.debeziumRows(11, 10, 3)
	o.awaitConfirmed()
	r.stop()
	o.noRepeats("order", 20)
}

// TestDebeziumRecords: what is not an insert makes records too: a changed key,
// logical messages in a transaction and outside, heartbeats with their query. A
// relay that is killed in between loses none of them.
func TestDebeziumRecords(t *testing.T) {
	t.Parallel()
	o := emptyConnectorOutbox(t, testkit.Postgres(t, kafkaMajor).NewDB(t))
	o.exec(`create table beat (at timestamptz)`)
	app := o.prefix
	for _, name := range []string{app + ".message", "__debezium-heartbeat." + app} {
		testkit.CreateTopic(t, o.brokers, name, 1)
	}
	connector, worker := o.connectorFiles(with("topic.prefix", app, "heartbeat.interval.ms", "200", "heartbeat.action.query", "insert into beat values (now())"))
	r := o.runDebezium(connector, worker)
	r.awaitStream()
	messages := func(n int) {
		o.exec(`select pg_logical_emit_message(false, 'p', 'alone ' || $1::int)`, n)
		o.exec(`with m as (select pg_logical_emit_message(true, 'p', 'inside ' || $1::int))
			insert into out (aggregatetype, aggregateid, type, payload) select 'order', 'a', 'x', json_build_object('n', $1::int) from m`, n)
	}
	messages(1)
	o.awaitCount("order", 1)
	r.kill()
	messages(2)
	r = o.runDebezium(connector, worker)
	messages(3)
	o.awaitCount("order", 3)
	r.kill() // some may not be confirmed
	r = o.runDebezium(connector, worker)
	o.exec(`update out set id = '00000000-0000-0000-0000-000000000001' where payload->>'n' = '3'`)
	o.awaitCount("order", 4)
	testkit.Await(t, "the action query", func() bool { return query[int](o, `select count(*) from beat`) >= 2 })
	r.awaitStream()
	o.awaitConfirmed()
	r.stop()
	var texts []string
	for _, rec := range testkit.ReadAll(t, o.brokers, app+".message") {
		texts = append(texts, string(rec.Value))
	}
	t.Log(texts)
	if len(texts) < 6 {
		t.Errorf("%d messages, want 6: %q", len(texts), texts)
	}
	if n := len(testkit.ReadAll(t, o.brokers, "__debezium-heartbeat."+app)); n < 2 {
		t.Errorf("%d heartbeats", n)
	}
	records := o.read("order")
	last := records[len(records)-1]
	id, _ := last.Header("id")
	if len(records) != 4 || string(id) != "00000000-0000-0000-0000-000000000001" {
		t.Errorf("%d records, the last with id %s", len(records), id)
	}
}

// TestDebeziumManualFlush: with lsn.flush.mode=manual the slot stays where it is,
// and a restart repeats nothing all the same.
func TestDebeziumManualFlush(t *testing.T) {
	t.Parallel()
	o := emptyConnectorOutbox(t, testkit.Postgres(t, kafkaMajor).NewDB(t))
	connector, worker := o.connectorFiles(with("lsn.flush.mode", "manual"))
	o.must("init", "--checkpoint")
	before := o.confirmed()
	for n := range 3 {
		r := o.runDebezium(connector, worker)
		r.awaitStream()
		o.debeziumRows(10*n+1, 10, 3)
		r.awaitPublished(10)
		r.stop()
	}
	if diff := cmp.Diff(before, o.confirmed()); diff != "" {
		t.Errorf("the slot moved: %s", diff)
	}
	o.noRepeats("order", 30)
}

// TestStdoutMovesNothing: what is printed is not delivered, so the slot stays
// where it is, and the publication is not made, also when the connection breaks
// and the stream begins again behind what was printed.
func TestStdoutMovesNothing(t *testing.T) {
	t.Parallel()
	o := emptyConnectorOutbox(t, testkit.Postgres(t, kafkaMajor).NewDB(t))
	connector, worker := o.connectorFiles(with("lsn.flush.mode", "connector"))
	r := o.runDebezium(connector, worker, "--sink", "stdout")
	if code := r.wait(); code == 0 || query[int](o, `select count(*) from pg_publication where pubname = $1`, o.slot) != 0 {
		t.Errorf("exit code %d, or the publication was made", code)
	}
	o.must("init")
	before := o.confirmed()
	r = o.runDebezium(connector, worker, "--sink", "stdout")
	for n := range 3 {
		o.debeziumRows(10*n+1, 10, 3)
		r.await("the rows", func(s admin.Status) bool { return s.Published.Events >= uint64(10*n+10) })
		o.exec(`select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1`, o.slot)
		r.awaitStream()
	}
	r.stop()
	if now := o.confirmed(); now != before {
		t.Errorf("the slot moved from %s to %s", before, now)
	}
}
