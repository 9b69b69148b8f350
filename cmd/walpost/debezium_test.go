package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// connectorFile writes a connector that runs as it is, with more lines.
func connectorFile(t *testing.T, more ...string) string {
	t.Helper()
	lines := append([]string{
		`"connector.class": "io.debezium.connector.postgresql.PostgresConnector"`,
		`"topic.prefix": "app"`, `"plugin.name": "pgoutput"`, `"slot.name": "outbox"`,
		`"database.hostname": "db"`, `"database.user": "u"`, `"database.password": "${env:DB_PASSWORD}"`, `"database.dbname": "shop"`,
		`"publication.autocreate.mode": "disabled"`, `"snapshot.mode": "no_data"`, `"table.include.list": "public.outbox"`,
		`"transforms": "outbox"`, `"transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter"`,
	}, more...)
	file := filepath.Join(t.TempDir(), "connector.json")
	if err := os.WriteFile(file, []byte("{"+strings.Join(lines, ",\n")+"}"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func workerFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "worker.properties")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const stringConverters = "bootstrap.servers=kafka:9092\n" +
	"key.converter=org.apache.kafka.connect.storage.StringConverter\nvalue.converter=org.apache.kafka.connect.storage.StringConverter\n"

func TestExplainExitCodes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		more   []string
		args   []string
		code   int
		first  string // of the second line of the table
		stderr string
	}{
		"as it is": {code: 0, first: "note "},
		"differences": {
			more: []string{`"errors.max.retries": 5`},
			code: 3, first: "differs   errors.max.retries ", stderr: "error: it runs, with differences: 1 key\nhint: see the lines that begin with differs\n",
		},
		"refused": {
			more: []string{`"errors.tolerance": "all"`, `"slot.nam": "x"`},
			code: 2, first: "refused   errors.tolerance ", stderr: `hint: did you mean "slot.name"?`,
		},
		"another version": {
			more: []string{`"transforms.outbox.table.field.additional.missing": "ignore"`},
			args: []string{"--debezium-version", "3.1"},
			code: 2, first: "refused   transforms.outbox.table.field.additional.missing ", stderr: "Debezium 3.1 does not know it",
		},
		"debug text": {
			more: []string{`"transforms.outbox.table.expand.json.payload": true`},
			code: 2, first: "refused   transforms.outbox.table.expand.json.payload ", stderr: "Struct{…}",
		},
		"debug text is meant": {
			more: []string{`"transforms.outbox.table.expand.json.payload": true`},
			args: []string{"--debezium-reproduce-debug-text"},
			code: 0, first: "note ",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"debezium", "explain", connectorFile(t, test.more...), "--worker", workerFile(t, stringConverters)}, test.args...)
			got := execute(t, nil, args...)
			lines := strings.Split(got.stdout, "\n")
			if got.code != test.code || len(lines) < 2 || !strings.HasPrefix(lines[1], test.first) || !strings.Contains(got.stderr, test.stderr) {
				t.Errorf("got code %d, want %d; stderr\n%s\nstdout\n%s", got.code, test.code, got.stderr, got.stdout)
			}
			if test.stderr == "" && got.stderr != "" {
				t.Errorf("stderr: %s", got.stderr)
			}
		})
	}
}

func TestExplainJSON(t *testing.T) {
	t.Parallel()
	file := connectorFile(t, `"slot.drop.on.stop": false`)
	got := execute(t, nil, "debezium", "explain", file, "--worker", workerFile(t, stringConverters), "-o", "json")
	var e struct {
		File, Worker, Version, Result string
		Keys                          []struct {
			Key, Value, Origin, Decision, Severity, Does string
			Set                                          bool
		}
	}
	if err := json.Unmarshal([]byte(got.stdout), &e); err != nil || got.code != 0 {
		t.Fatal(err, got)
	}
	if e.File != file || e.Version != "3.6" || e.Result != "runs as it is" || len(e.Keys) < 15 {
		t.Errorf("got %+v", e)
	}
	for _, k := range e.Keys {
		if k.Key == "slot.drop.on.stop" && (k.Value != "false" || k.Origin != file+":14" || !k.Set || k.Decision != "honoured" || k.Severity != "same") {
			t.Errorf("got %+v", k)
		}
	}
}

func TestConvertedFileIsValid(t *testing.T) {
	t.Parallel()
	worker := workerFile(t, stringConverters)
	got := execute(t, []string{"DB_PASSWORD=hunter2"}, "debezium", "convert", connectorFile(t), "--worker", worker)
	if got.code != 0 || got.stderr != "" || strings.Contains(got.stdout, "hunter2") {
		t.Fatalf("got %+v", got)
	}
	_, text, _ := strings.Cut(got.stdout, "\n")
	want := `postgres:
  # The password is not written here: set PGPASSWORD, or put the whole DSN into a file and name it with dsn_file.
  dsn: "postgres://u@db:5432/shop?sslmode=prefer"
  slot: outbox
  publication: dbz_publication
  tables: [public.outbox]
kafka:
  brokers: [kafka:9092]
debezium:
  version: "3.6"
  properties:
    topic.prefix: app
    publication.autocreate.mode: disabled
    snapshot.mode: no_data
    transforms: outbox
    transforms.outbox.type: io.debezium.transforms.outbox.EventRouter
    key.converter: org.apache.kafka.connect.storage.StringConverter
    value.converter: org.apache.kafka.connect.storage.StringConverter
`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("file differs (-want +got):\n%s", diff)
	}
	file := filepath.Join(t.TempDir(), "walpost.yaml")
	if err := os.WriteFile(file, []byte(got.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := execute(t, nil, "config", "validate", "--config", file); got.code != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestDebeziumUsage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no file":     {[]string{"debezium", "explain"}, "error: walpost debezium explain takes one file, got 0 arguments\nhint: name the connector's file; see \"walpost debezium explain --help\"\n"},
		"two files":   {[]string{"debezium", "convert", "a", "b"}, "error: walpost debezium convert takes one file, got 2 arguments\nhint: name the connector's file; see \"walpost debezium convert --help\"\n"},
		"not there":   {[]string{"debezium", "explain", "no-such-file"}, "error: open no-such-file: no such file or directory\nhint: name a file that exists and can be read\n"},
		"subcommand":  {[]string{"debezium", "explian"}, "error: unknown command \"walpost debezium explian\"\nhint: did you mean \"walpost debezium explain\"?\n"},
		"the version": {[]string{"debezium", "explain", "main.go", "--debezium-version=9"}, "error: debezium.version: \"9\" is not a version\nhint: write the version that is to be reproduced, from 2.0 to 3.7, such as \"3.6\"\n"},
	} {
		got := execute(t, nil, test.args...)
		if diff := cmp.Diff(result{2, "", test.want}, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%s: result differs (-want +got):\n%s", name, diff)
		}
	}
}
