package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/testkit"
)

// connectorFiles writes the connector's and the worker's file for a Debezium
// that relays this outbox, and gives their paths.
func (o *outbox) connectorFiles(more map[string]string) (connector, worker string) {
	o.t.Helper()
	config, err := pgx.ParseConfig(o.dsn)
	if err != nil {
		o.t.Fatal(err)
	}
	keys := map[string]string{
		"name": "outbox", "connector.class": "io.debezium.connector.postgresql.PostgresConnector", "topic.prefix": "app",
		"plugin.name": "pgoutput", "slot.name": o.slot, "publication.name": o.slot, "publication.autocreate.mode": "disabled",
		"database.hostname": config.Host, "database.port": itoaAny(int(config.Port)), "database.user": config.User, "database.dbname": config.Database,
		"snapshot.mode": "no_data", "table.include.list": o.table, "transforms": "outbox",
		"transforms.outbox.type":                    "io.debezium.transforms.outbox.EventRouter",
		"transforms.outbox.route.topic.replacement": o.prefix + ".${routedByValue}",
	}
	for k, v := range more {
		keys[k] = v
	}
	data, err := json.Marshal(keys)
	if err != nil {
		o.t.Fatal(err)
	}
	dir := o.t.TempDir()
	connector, worker = filepath.Join(dir, "connector.json"), filepath.Join(dir, "worker.properties")
	const converter = "org.apache.kafka.connect.storage.StringConverter"
	properties := "bootstrap.servers=" + strings.Join(o.brokers, ",") + "\nkey.converter=" + converter + "\nvalue.converter=" + converter + "\n"
	for path, content := range map[string][]byte{connector: data, worker: []byte(properties)} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			o.t.Fatal(err)
		}
	}
	return connector, worker
}

func itoaAny(n int) string {
	data, _ := json.Marshal(n)
	return string(data)
}

// takeover starts "walpost debezium takeover", and debezium "run --debezium".
func (o *outbox) takeover(connector, worker string, flags ...string) *relay {
	o.t.Helper()
	return o.startDebezium([]string{"debezium", "takeover", connector, "--worker", worker}, flags)
}

func (o *outbox) runDebezium(connector, worker string, flags ...string) *relay {
	o.t.Helper()
	return o.startDebezium([]string{"run", "--debezium", connector, "--worker", worker}, flags)
}

func (o *outbox) startDebezium(args, flags []string) *relay {
	o.t.Helper()
	args = append(args, "--admin-listen", "127.0.0.1:0", "--log-format", "json")
	return o.startArgs(nil, append(args, flags...)...)
}

// runPlain runs a command of the binary, without the outbox's own flags.
func (o *outbox) runPlain(args ...string) (stdout, stderr string, code int) {
	o.t.Helper()
	cmd := exec.CommandContext(testkit.Context(o.t), binary(o.t, false), args...)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		o.t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// awaitSlotFree waits until the server has noticed that a session is over.
func (o *outbox) awaitSlotFree() {
	o.t.Helper()
	testkit.Await(o.t, "the free slot", func() bool {
		return query[bool](o, `select not active from pg_replication_slots where slot_name = $1`, o.slot)
	})
}

func (r *relay) awaitSaid(text string) {
	r.t.Helper()
	testkit.Await(r.t, "the message "+text, func() bool {
		if !r.running() {
			r.t.Fatalf("the relay has ended (%v) while waiting for: %s", r.cmd.ProcessState, text)
		}
		return strings.Contains(r.logText(), text)
	})
}

// holdSlot has the slot as Debezium has it; the function lets go of it.
func (o *outbox) holdSlot() (release func()) {
	o.t.Helper()
	config, err := pg.ParseDSN(o.dsn)
	if err != nil {
		o.t.Fatal(err)
	}
	conn, err := pg.ConnectReplication(o.t.Context(), pg.ReplicationConfig(config, "Debezium Streaming"))
	if err != nil {
		o.t.Fatal(err)
	}
	if err := pglogrepl.StartReplication(o.t.Context(), conn, o.slot, 0, pglogrepl.StartReplicationOptions{
		PluginArgs: []string{"proto_version '1'", "publication_names '" + o.slot + "'"},
	}); err != nil {
		o.t.Fatal(err)
	}
	release = func() { closeHard(conn) }
	o.t.Cleanup(release)
	return release
}

// closeHard ends a session that streams.
func closeHard(conn *pgconn.PgConn) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = conn.Close(ctx)
}

// debeziumRows writes rows n0 … n0+count-1, each with the next of the keys, in
// transactions of 100.
func (o *outbox) debeziumRows(n0, count, keys int) {
	o.t.Helper()
	for n := n0; n < n0+count; n += 100 {
		o.exec(`insert into `+o.table+` (aggregatetype, aggregateid, type, payload)
			select 'order', (n % $1)::text, 'Created', json_build_object('n', n, 'pad', repeat('x', 100)) from generate_series($2::int, $3::int) n`,
			keys, n, min(n+100, n0+count)-1)
	}
}

// publishAs writes what Debezium would write of an aggregate type's rows first
// … last.
func (o *outbox) publishAs(aggregateType string, first, last int) {
	o.t.Helper()
	found, err := o.db.Query(o.t.Context(), `select id::text, aggregateid, payload::text from `+o.table+`
		where aggregatetype = $1 and (payload->>'n')::int between $2 and $3 order by (payload->>'n')::int`, aggregateType, first, last)
	if err != nil {
		o.t.Fatal(err)
	}
	var messages []kafka.Message
	var id, key, payload string
	if _, err := pgx.ForEachRow(found, []any{&id, &key, &payload}, func() error {
		messages = append(messages, kafka.Message{Key: []byte(key), Value: []byte(payload), Headers: []kafka.Header{{Key: "id", Value: []byte(id)}}})
		return nil
	}); err != nil {
		o.t.Fatal(err)
	}
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	w := &kafka.Writer{
		Addr: kafka.TCP(o.brokers...), Topic: o.topic(aggregateType), Transport: transport,
		Balancer: kafka.Murmur2Balancer{}, RequiredAcks: kafka.RequireAll, BatchTimeout: 10 * time.Millisecond, BatchSize: 500,
	}
	if err := w.WriteMessages(o.t.Context(), messages...); err != nil {
		o.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		o.t.Fatal(err)
	}
}

// TestDebeziumTakeover: Debezium had published a part of what it had not confirmed. None
// of it comes twice, also when walpost is killed in the middle and begins again;
// without the checkpoint tables it is said that this cannot be promised.
func TestDebeziumTakeover(t *testing.T) {
	t.Parallel()
	for name, protected := range map[string]bool{"protected": true, "unprotected": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const published, backlog, rows = 5_000, 20_000, 21_000
			o := bareDebezium(t, testkit.Postgres(t, kafkaMajor).NewDB(t))
			if !protected {
				o.exec("drop schema walpost cascade")
			}
			o.createTopic("order")
			release := o.holdSlot()
			o.debeziumRows(1, backlog, 97)
			o.publishAs("order", 1, published)
			connector, worker := o.connectorFiles(nil)
			r := o.takeover(connector, worker, "--settle", "0s")
			r.awaitSaid("waiting until the slot is let go")
			r.awaitSaid("Debezium Streaming from 127.0.0.1")
			if got := len(o.read("order")); got != published {
				t.Errorf("%d records while Debezium has the slot, want %d", got, published)
			}
			release()
			o.awaitCount("order", published+(backlog-published)/3)
			r.kill()
			r = o.runDebezium(connector, worker)
			o.debeziumRows(backlog+1, rows-backlog, 97)
			o.awaitConfirmed()
			r.stop()
			repeats := checkNumbers(t, o.read("order"), rows)
			t.Logf("%d repeats", repeats)
			if repeats != 0 && protected {
				t.Errorf("%d repeats", repeats)
			}
			if said := strings.Contains(r.logText(), "no checkpoint: what is in flight when this process is killed comes again"); said == protected {
				t.Errorf("the missing checkpoint is said: %v", said)
			}
		})
	}
}

// TestDebeziumTakeoverTerminates: a session that has the slot is ended, and the exit code
// of a slot that is missing is that of a decision.
func TestDebeziumTakeoverTerminates(t *testing.T) {
	t.Parallel()
	o := bareDebezium(t, testkit.Postgres(t, kafkaMajor).NewDB(t))
	o.createTopic("order")
	o.holdSlot()
	o.debeziumRows(1, 100, 7)
	connector, worker := o.connectorFiles(map[string]string{"slot.drop.on.stop": "true"})
	r := o.takeover(connector, worker, "--settle", "0s", "--wait", "50ms")
	if code := r.wait(); code != 1 || !strings.Contains(r.logText(), "was not free for the taking within 50ms: PID ") {
		t.Errorf("exit code %d, want 1", code)
	}
	r = o.takeover(connector, worker, "--settle", "0s", "--terminate")
	o.awaitConfirmed()
	r.stop()
	if repeats := checkNumbers(t, o.read("order"), 100); repeats != 0 {
		t.Errorf("%d repeats", repeats)
	}
	if left := query[int](o, `select count(*)::int from pg_replication_slots where slot_name = $1`, o.slot); left != 0 {
		t.Error("slot.drop.on.stop=true, and the slot is there after a clean stop")
	}
	r = o.takeover(connector, worker)
	if code := r.wait(); code != 4 || !strings.Contains(r.logText(), "does not exist: slot.drop.on.stop=true") {
		t.Errorf("exit code %d, want 4", code)
	}
}

// TestDebeziumTakeoverAgain: walpost had the slot, Debezium had it in between, and
// walpost's checkpoint tells where to begin to look for what that has published.
func TestDebeziumTakeoverAgain(t *testing.T) {
	t.Parallel()
	o := bareDebezium(t, testkit.Postgres(t, kafkaMajor).NewDB(t))
	o.createTopic("order")
	connector, worker := o.connectorFiles(nil)
	for turn := range 2 {
		o.debeziumRows(1+500*turn, 500, 7)
		o.publishAs("order", 1+500*turn, 300+500*turn)
		if turn == 1 { // a topic that walpost has never seen
			o.createTopic("late")
			o.exec(`insert into ` + o.table + ` (aggregatetype, aggregateid, type, payload)
				select 'late', (n % 3)::text, 'Created', json_build_object('n', n) from generate_series(1, 50) n`)
			o.publishAs("late", 1, 20)
		}
		r := o.takeover(connector, worker, "--settle", "0s")
		o.awaitConfirmed()
		r.stop()
		o.awaitSlotFree()
	}
	if repeats := checkNumbers(t, o.read("order"), 1000); repeats != 0 {
		t.Errorf("%d repeats", repeats)
	}
	if repeats := checkNumbers(t, o.read("late"), 50); repeats != 0 {
		t.Errorf("%d repeats in the topic that came in between", repeats)
	}
}
