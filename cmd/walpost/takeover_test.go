package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/checkpoint"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/testkit/pgserver"
)

var updatePlans = flag.Bool("update-plans", false, "write testdata/takeover/*.golden")

func TestTakeoverUsage(t *testing.T) {
	t.Parallel()
	file := takeoverFile(t)
	once := takeoverFile(t, "snapshot.mode", "initial_only")
	worker := workerFile(t, stringConverters)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no file":         {nil, "error: walpost debezium takeover takes one file, got 0 arguments\n"},
		"two places":      {[]string{file, "--offset-file=a", "--offset-topic=b"}, "error: --offset-file and --offset-topic are both set\n"},
		"a snapshot":      {[]string{file, "--snapshot=initial"}, "error: takeover goes on where Debezium stopped, and makes no snapshot\n"},
		"stdout":          {[]string{file, "--worker", worker, "--sink=stdout"}, "error: takeover takes the slot from Debezium, and only prints events with --sink stdout\n"},
		"a snapshot only": {[]string{once, "--worker", worker}, "error: " + once + ": snapshot.mode=initial_only: this connector does not stream, so there is nothing to take over\n"},
		"negative":        {[]string{file, "--wait=-1s"}, "error: a time to wait is not negative\n"},
		"no converter":    {[]string{file, "--plan"}, "key.converter: "},
	} {
		got := execute(t, []string{"DB_PASSWORD=x"}, append([]string{"debezium", "takeover"}, test.args...)...)
		if got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, test.want) || !strings.Contains(got.stderr, "\nhint: ") {
			t.Errorf("%s: got %+v, want 2, %q", name, got, test.want)
		}
	}
}

// javaOffsets is what a standalone worker writes: a serialized
// HashMap<byte[], byte[]>.
func javaOffsets(pairs ...string) []byte {
	b := []byte("\xac\xed\x00\x05sr\x00\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16\x60\xd1\x03\x00\x02F\x00\x0aloadFactorI\x00\x09thresholdxp" +
		"?@\x00\x00\x00\x00\x00\x0cw\x08\x00\x00\x00\x10")
	b = binary.BigEndian.AppendUint32(b, uint32(len(pairs)/2))
	class := "r\x00\x02[B\xac\xf3\x17\xf8\x06\x08\x54\xe0\x02\x00\x00xp"
	for _, text := range pairs {
		b = append(b, "u"+class...)
		b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
		b = append(b, text...)
		class = "q\x00\x7e\x00\x02" // a reference to it
	}
	return append(b, 'x')
}

// planRig is a server with a database in which Debezium relays.
type planRig struct {
	t    *testing.T
	conn *pgx.Conn
	cfg  *pgx.ConnConfig
}

func newPlanRig(t *testing.T) *planRig {
	t.Helper()
	if testing.Short() {
		t.Skip("needs servers: run without -short")
	}
	srv, err := pgserver.Start(t.Context(), pgserver.Options{Major: 17, FsyncOff: true, Log: t.Logf, Settings: map[string]string{"max_prepared_transactions": "2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	r := &planRig{t: t}
	if r.cfg, err = pg.ParseDSN(srv.DSN("postgres")); err != nil {
		t.Fatal(err)
	}
	if r.conn, err = pg.Connect(t.Context(), r.cfg, "test"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.conn.Close(context.Background()) })
	r.exec("create table outbox (id uuid primary key default gen_random_uuid(), aggregatetype text, aggregateid text, type text, payload text)",
		"create table other (id int primary key)")
	return r
}

func (r *planRig) exec(statements ...string) {
	r.t.Helper()
	for _, s := range statements {
		if _, err := r.conn.Exec(r.t.Context(), s); err != nil {
			r.t.Fatalf("%s: %v", s, err)
		}
	}
}

// slot makes a slot with a publication of the same name, and one row behind it.
func (r *planRig) slot(name, publication string) {
	r.t.Helper()
	r.exec(publication, "select pg_create_logical_replication_slot('"+name+"', 'pgoutput')",
		"insert into outbox (aggregatetype, aggregateid, payload) values ('order', '1', '{}')")
}

func (r *planRig) confirmed(name string) pglogrepl.LSN {
	r.t.Helper()
	var text string
	if err := r.conn.QueryRow(r.t.Context(), "select confirmed_flush_lsn::text from pg_replication_slots where slot_name = $1", name).Scan(&text); err != nil {
		r.t.Fatal(err)
	}
	at, err := pglogrepl.ParseLSN(text)
	if err != nil {
		r.t.Fatal(err)
	}
	return at
}

// hold streams from a slot as Debezium does.
func (r *planRig) hold(name string) {
	r.t.Helper()
	conn, err := pg.ConnectReplication(r.t.Context(), pg.ReplicationConfig(r.cfg, "Debezium Streaming"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if err := pglogrepl.StartReplication(r.t.Context(), conn, name, 0, pglogrepl.StartReplicationOptions{
		PluginArgs: []string{"proto_version '1'", "publication_names '" + name + "'"},
	}); err != nil {
		r.t.Fatal(err)
	}
}

// takeoverFile writes a connector's file; more is key, value, key, value….
func takeoverFile(t *testing.T, more ...string) string {
	t.Helper()
	connector := map[string]string{
		"name": "orders", "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
		"topic.prefix": "app", "plugin.name": "pgoutput", "slot.name": "outbox", "database.hostname": "db", "database.dbname": "shop",
		"database.user": "u", "publication.autocreate.mode": "disabled", "snapshot.mode": "no_data", "table.include.list": "public.outbox",
		"transforms": "outbox", "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
	}
	for i := 0; i < len(more); i += 2 {
		connector[more[i]] = more[i+1]
	}
	data, err := json.Marshal(connector)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "connector.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// connector writes a connector's file for the slot and gives the flags of
// takeover --plan.
func (r *planRig) connector(name string, more ...string) []string {
	r.t.Helper()
	file := takeoverFile(r.t, append([]string{
		"slot.name", name, "publication.name", name, "database.hostname", r.cfg.Host, "database.port", fmt.Sprint(r.cfg.Port),
		"database.user", r.cfg.User, "database.dbname", r.cfg.Database,
	}, more...)...)
	return []string{"debezium", "takeover", file, "--plan", "--worker", workerFile(r.t, stringConverters)}
}

var variablePlan = regexp.MustCompile(`\b0/[0-9A-F]+|PID \d+|from 127\.0\.0\.1|retained [0-9.]+ [KM]?B|[0-9.]+ [KM]?B of WAL|20\d\d-\d\d-\d\dT[\d:]+Z|/\S*/(connector\.json|worker\.properties|offsets\.dat)`)

// steady replaces what differs from run to run.
func steady(s string) string {
	return variablePlan.ReplaceAllStringFunc(s, func(m string) string {
		switch {
		case strings.HasPrefix(m, "0/"):
			return "0/N"
		case strings.HasPrefix(m, "PID"):
			return "PID N"
		case strings.HasPrefix(m, "from"):
			return "from ADDR"
		case strings.HasPrefix(m, "retained"):
			return "retained N"
		case strings.HasSuffix(m, "of WAL"):
			return "N of WAL"
		case strings.HasSuffix(m, "Z"):
			return "TIME"
		}
		return filepath.Base(m)
	})
}

func TestTakeoverPlan(t *testing.T) {
	t.Parallel()
	r := newPlanRig(t)
	const ofOutbox = " for table outbox with (publish = 'insert')"
	r.slot("held", "create publication held"+ofOutbox)
	r.hold("held")
	r.slot("free", "create publication free"+ofOutbox)
	r.slot("lacks", "create publication lacks for table other")
	r.slot("other_db", "create publication other_db"+ofOutbox)
	r.exec("create publication twophase"+ofOutbox, "select pg_create_logical_replication_slot('twophase', 'pgoutput', false, true)",
		"create publication missing"+ofOutbox, "select pg_create_logical_replication_slot('nopub', 'pgoutput')")

	at := uint64(r.confirmed("free"))
	offsets := func(value string) string {
		file := filepath.Join(t.TempDir(), "offsets.dat")
		if err := os.WriteFile(file, javaOffsets(`["orders",{"server":"app"}]`, value), 0o600); err != nil {
			t.Fatal(err)
		}
		return "--offset-file=" + file
	}
	ahead := offsets(fmt.Sprintf(`{"lsn_proc":%d,"lsn_commit":%d,"lsn":%d}`, at+64, at, at+64))
	behind := offsets(fmt.Sprintf(`{"lsn_proc":%d,"lsn_commit":%d,"lsn":%d}`, at-64, at-128, at-64))
	snapshot := offsets(fmt.Sprintf(`{"lsn_proc":%d,"snapshot":"INITIAL","snapshot_completed":false,"lsn":%d}`, at-64, at-64))

	tests := []struct {
		name string
		code int
		args []string
	}{
		{"held", 3, r.connector("held", "publication.autocreate.mode", "filtered")},
		{"held-terminate", 3, append(r.connector("held", "slot.drop.on.stop", "true"), "--terminate")},
		{"free-unprotected", 3, append(r.connector("free"), ahead)},
		{"missing", 4, r.connector("missing", "slot.drop.on.stop", "true")},
		{"twophase", 4, r.connector("twophase")},
		{"nopub", 4, r.connector("nopub")},
		{"lacks", 3, r.connector("lacks", "publication.autocreate.mode", "filtered")},
		{"snapshot", 4, append(r.connector("free"), snapshot)},
		// From here on with the checkpoint tables.
		{"free", 0, append(r.connector("free"), ahead)},
		{"behind", 3, append(r.connector("free"), behind)},
		{"unread", 0, append(r.connector("free"), "--offset-file=/nowhere/offsets.dat")},
		{"nothing-stored", 3, append(r.connector("free", "snapshot.mode", "initial", "name", "renamed", "topic.prefix", "other"), ahead)},
	}
	for _, test := range tests {
		if test.name == "free" {
			r.exec(`create schema walpost`)
			r.exec(checkpoint.Statements()...)
		}
		before := r.confirmed("free")
		got := execute(t, nil, test.args...)
		if got.code != test.code {
			t.Errorf("%s: exit code %d, want %d", test.name, got.code, test.code)
		}
		if now := r.confirmed("free"); now != before {
			t.Errorf("%s: the slot moved from %s to %s", test.name, before, now)
		}
		text := steady("exit code " + fmt.Sprint(got.code) + "\n" + got.stdout + "--- stderr\n" + got.stderr)
		golden := filepath.Join("testdata", "takeover", test.name+".golden")
		if *updatePlans {
			if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), text); diff != "" {
			t.Errorf("%s: the plan differs (-want +got):\n%s", test.name, diff)
		}
	}

	got := execute(t, nil, append(r.connector("held"), "-o", "json")...)
	var report map[string]any
	if err := json.NewDecoder(bytes.NewReader([]byte(got.stdout))).Decode(&report); err != nil {
		t.Fatal(err)
	}
	slot, stored := report["slot"].(map[string]any), report["stored_offset"].(map[string]any)
	if report["result"] != "possible" || slot["holder_application"] != "Debezium Streaming" || slot["active_pid"] == nil ||
		slot["first_unconfirmed_at"] != nil || stored["state"] != "unknown" || stored["place"] != nil || len(report["steps"].([]any)) < 5 {
		t.Errorf("got %s", got.stdout)
	}
}
