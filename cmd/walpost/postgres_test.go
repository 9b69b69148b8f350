package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/outbox"
)

func TestInitPrint(t *testing.T) {
	t.Parallel()
	got := execute(t, nil, "init", "--print", "--create-table", "--payload=json", "--slot=orders", "--publication=Pub-1",
		"--table=public.outbox_events", `--table=My-App."Out.Box"`)
	want, err := os.ReadFile(filepath.Join("testdata", "init.sql"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(result{0, string(want), ""}, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("result differs (-want +got):\n%s", diff)
	}
	got = execute(t, nil, "init", "--print", "-o", "json")
	var decoded struct{ SQL string }
	if err := json.Unmarshal([]byte(got.stdout), &decoded); err != nil || !strings.Contains(decoded.SQL, `create publication "walpost"`) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A consumer's tables are printed on demand, and made by nobody but the consumer.
func TestInitPrintConsumer(t *testing.T) {
	t.Parallel()
	without := execute(t, nil, "init", "--print")
	got := execute(t, nil, "init", "--print", "--consumer")
	tables, found := strings.CutPrefix(got.stdout, without.stdout)
	if got.code != 0 || !found {
		t.Fatalf("code %d, and stdout does not begin with that of --print alone:\n%s", got.code, got.stdout)
	}
	statements, err := outbox.Statements(outbox.SchemaOptions{Parts: outbox.Consumption})
	if err != nil {
		t.Fatal(err)
	}
	if len(statements) == 0 {
		t.Fatal("a consumer keeps nothing")
	}
	for _, statement := range statements {
		if strings.Contains(without.stdout, statement) || !strings.Contains(tables, "\n"+statement+";\n") {
			t.Errorf("not with --consumer alone:\n%s", statement)
		}
	}
	got = execute(t, nil, "init", "--consumer")
	want := result{2, "", "error: --consumer goes with --print: a consumer's tables belong to its own database\n" +
		"hint: add --print and run the SQL there, or call outbox.Migrate in the consumer\n"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("result differs (-want +got):\n%s", diff)
	}
}

func TestPostgresUnreachable(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"init", "status"} {
		got := execute(t, nil, command, "--dsn=postgres://u:hunter2@127.0.0.1:1/app")
		want := result{1, "", "error: connect to PostgreSQL at 127.0.0.1:1: connection refused\n" +
			"hint: start the server, or check host and port in --dsn and listen_addresses of the server\n"}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("result differs (-want +got):\n%s", diff)
		}
		got = execute(t, nil, command)
		want = result{2, "", "error: postgres.dsn: no PostgreSQL server is named\n" +
			"hint: set --dsn-file, WALPOST_DSN or --dsn; or libpq's PGHOST or PGSERVICE\n"}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("result differs (-want +got):\n%s", diff)
		}
	}
}

// columns are as wide as their widest cell, which may differ.
var columns = regexp.MustCompile(`(?m)([^\n ])? {2,}(\S)`)

// variable is what differs from run to run.
var variable = regexp.MustCompile(`0/[0-9A-F]+|PID \d+|127\.0\.0\.1:\d+|(lag|retained) [0-9.]+ [KM]?B`)

func TestInitAndStatus(t *testing.T) {
	if testing.Short() {
		t.Skip("needs servers: run without -short")
	}
	t.Parallel()
	srv, err := pgserver.Start(t.Context(), pgserver.Options{Major: 17, FsyncOff: true, Password: "hunter2", Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	cfg, err := pg.ParseDSN(srv.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pg.Connect(t.Context(), cfg, "walpost/test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	exec := func(statement string) {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	env := []string{"WALPOST_DSN=" + srv.DSN("postgres")}
	for _, step := range []struct {
		name, sql string
		env       []string
		args      []string
		want      result
	}{
		{
			name: "status before init", args: []string{"status"},
			want: result{
				3, "relay  unknown  from PostgreSQL only: no running instance answered at :8642\n" +
					"slot  walpost  does not exist\n" +
					"publication  walpost  missing, or not as it must be: see below\n",
				"error: slot \"walpost\" does not exist\n" +
					`hint: if it never did, run "walpost init"; if it was dropped, events since then are not in Kafka: see the recovery section of the README before making it anew` + "\n" +
					"error: publication \"walpost\" does not exist\n" +
					`hint: if it never did, run "walpost init"; if it was dropped, rows written since then are not in the stream: find them in the table before making publication and slot anew` + "\n",
			},
		},
		{
			name: "init without a table", args: []string{"init"},
			want: result{2, "", "error: table public.outbox_events does not exist\n" +
				"hint: add --create-table, or name the outbox table with --table; names are case sensitive\n"},
		},
		{
			name: "init", args: []string{"init", "--create-table", "--slot=walpost"},
			want: result{0, "created  table  public.outbox_events\n" +
				"created  publication  walpost\n" +
				"created  checkpoint  walpost.checkpoint\n" +
				"created  slot  walpost\n" +
				"next: walpost run --slot walpost --brokers HOST:9092\n", ""},
		},
		{
			name: "init again", args: []string{"init", "-o", "json"},
			want: result{0, `{
  "steps": [
    {
      "name": "table",
      "object": "public.outbox_events",
      "state": "unchanged"
    },
    {
      "name": "publication",
      "object": "walpost",
      "state": "unchanged"
    },
    {
      "name": "checkpoint",
      "object": "walpost.checkpoint",
      "state": "unchanged"
    },
    {
      "name": "slot",
      "object": "walpost",
      "state": "unchanged"
    }
  ],
  "start_lsn": null,
  "next": "walpost run --brokers HOST:9092"
}
`, ""},
		},
		{
			name: "not active", args: []string{"status", "--admin-listen=off"},
			want: result{
				3, "relay  unknown  from PostgreSQL only: admin.listen is off\n" +
					"slot  walpost  not active\n" +
					"  wal_status reserved, retained N of unlimited\n" +
					"watermark  0/N  lag N, seconds unknown\n" +
					"publication  walpost  publishes public.outbox_events\n",
				"error: slot \"walpost\" is not active: nothing is relayed, and the WAL it holds grows\n" +
					"hint: start \"walpost run\"; if it runs, its log says why it does not stream\n",
			},
		},
		{
			name: "a table that is no outbox", args: []string{"init", "--table=public.misfit", "--publication=misfit", "--slot=misfit"},
			sql: "create table misfit (event_id uuid, aggregate_type text, payload jsonb)",
			want: result{2, "", "error: table public.misfit: not recognised as an outbox: no column aggregate_id, event_type\n" +
				"hint: map the columns in the configuration: {name: public.misfit, columns: {id: …, aggregate_type: …, aggregate_id: …, type: …, payload: …}}\n"},
		},
		{
			name: "a publication that publishes more", args: []string{"init"},
			sql: "alter publication walpost set (publish = 'insert, update')",
			want: result{4, "", "error: publication \"walpost\" publishes insert, update: only an insert is an event\n" +
				"hint: alter publication \"walpost\" set (publish = 'insert'), or choose another name with --publication\n"},
		},
		{
			name: "wrong password", args: []string{"init"}, env: []string{"WALPOST_DSN=" + srv.DSNAs("postgres", "postgres", "wrong-one")},
			want: result{2, "", "error: connect to PostgreSQL at ADDR: password authentication failed for user \"postgres\" (SQLSTATE 28P01)\n" +
				"hint: check the password of role \"postgres\" in --dsn, WALPOST_DSN (or _FILE), PGPASSWORD or the password file\n"},
		},
	} {
		if step.sql != "" {
			exec(step.sql)
		}
		if step.env == nil {
			step.env = env
		}
		got := execute(t, step.env, step.args...)
		got.stdout, got.stderr = same(got.stdout), same(got.stderr)
		if !strings.HasPrefix(got.stdout, "{") {
			got.stdout = columns.ReplaceAllString(got.stdout, "$1  $2")
		}
		if diff := cmp.Diff(step.want, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%s: result differs (-want +got):\n%s", step.name, diff)
		}
	}

	got := execute(t, env, "status", "-o", "json")
	var report map[string]any
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil {
		t.Fatal(err)
	}
	slot := report["slot"].(map[string]any)
	if report["healthy"] != false || report["source"] != "postgres" || slot["lag_seconds"] != nil || slot["limit_bytes"] != nil ||
		slot["exists"] != true || slot["wal_status"] != "reserved" || slot["active_pid"] != nil {
		t.Errorf("got %s", got.stdout)
	}
	if _, ok := slot["retained_bytes"].(float64); !ok {
		t.Errorf("retained_bytes in %s", got.stdout)
	}
	if strings.Contains(got.stdout, "hunter2") {
		t.Error("the password is in the output")
	}
}

func same(s string) string {
	return variable.ReplaceAllStringFunc(s, func(m string) string {
		switch {
		case strings.HasPrefix(m, "0/"):
			return "0/N"
		case strings.HasPrefix(m, "PID"):
			return "PID N"
		case strings.HasPrefix(m, "127"):
			return "ADDR"
		default:
			return m[:strings.IndexByte(m, ' ')] + " N"
		}
	})
}
