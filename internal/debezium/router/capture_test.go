package router_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/debezium/catalog"
	"github.com/walpost/walpost/internal/debezium/column"
	"github.com/walpost/walpost/internal/testkit"
)

var capture = flag.String("capture", "", "write testdata/golden.jsonl anew from the corpora in this folder; needs psql")

func TestMain(m *testing.M) { testkit.Main(m) }

// corpus is a line of testdata/golden.jsonl: a table with its rows as a server's
// WAL has them, a connector's configuration, and what Debezium made of the two.
type corpus struct {
	Name    string            `json:"name"`
	Config  map[string]string `json:"config"`
	Table   string            `json:"table"`
	Columns []column.Info     `json:"columns"`
	// Snapshot are the rows that were there before the slot.
	Snapshot [][]*string `json:"snapshot,omitempty"`
	WAL      [][]byte    `json:"wal"`
	Outcome  struct {
		State   string `json:"state"`
		Message string `json:"message,omitempty"`
	} `json:"outcome"`
	Records []goldenRecord `json:"records"`
}

// goldenRecord is a record as Kafka had it.
type goldenRecord struct {
	Topic     string       `json:"topic"`
	Partition int32        `json:"partition"`
	Timestamp int64        `json:"timestamp"`
	Key       []byte       `json:"key"`
	Headers   [][2]*[]byte `json:"headers"`
	Value     []byte       `json:"value"`
}

// TestCapture makes the corpora that TestGolden reads.
func TestCapture(t *testing.T) {
	t.Parallel()
	if *capture == "" {
		t.Skip("with -capture only: it writes the test data")
	}
	pg := testkit.Postgres(t, 0)
	dirs, err := filepath.Glob(filepath.Join(*capture, "*", "connector.json"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no corpora in %s: %v", *capture, err)
	}
	var out bytes.Buffer
	for _, file := range dirs {
		c := captureCorpus(t, pg, filepath.Dir(file))
		line, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if len(line) > 100_000 {
			t.Logf("%s is left out: %d bytes", c.Name, len(line))
			continue
		}
		out.Write(append(line, '\n'))
	}
	if err := os.WriteFile("testdata/golden.jsonl", out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(file, err)
	}
}

func captureCorpus(t *testing.T, pg *testkit.PG, dir string) *corpus {
	t.Helper()
	c := &corpus{}
	var connector struct {
		Name   string
		Config map[string]string
	}
	readJSON(t, filepath.Join(dir, "connector.json"), &connector)
	readJSON(t, filepath.Join(dir, "outcome.json"), &c.Outcome)
	c.Name, c.Config = connector.Name, connector.Config
	c.Table = strings.TrimPrefix(c.Config["table.include.list"], "public.")
	for _, key := range slices.Collect(maps.Keys(c.Config)) {
		for _, prefix := range []string{"database.", "plugin.", "slot.", "publication.", "table.include", "connector.", "tasks."} {
			if strings.HasPrefix(key, prefix) {
				delete(c.Config, key)
			}
		}
	}
	c.Records = readGoldenRecords(t, filepath.Join(dir, "records.jsonl"))

	ctx := t.Context()
	dsn := pg.NewDB(t)
	psql := func(file string) {
		cmd := exec.CommandContext(ctx, "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", dsn, "-f", filepath.Join(dir, file))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s/%s: %v\n%s", c.Name, file, err, out)
		}
	}
	psql("table.sql")
	conn := testkit.Connect(t, dsn)
	slot := testkit.Unique("golden")
	for _, statement := range []string{
		"create publication golden for table " + c.Table,
		fmt.Sprintf("select pg_create_logical_replication_slot('%s', 'pgoutput')", slot),
		"set timezone = 'UTC'", "set datestyle = 'ISO'", "set intervalstyle = 'postgres'", "set bytea_output = 'hex'",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatal(statement, err)
		}
	}
	oid, columns, err := catalog.ByName(ctx, conn, "public", c.Table)
	if err != nil || oid == 0 {
		t.Fatal(c.Name, err)
	}
	c.Columns = columns
	if c.Config["snapshot.mode"] == "initial" {
		var texts []string
		for _, col := range columns {
			texts = append(texts, pgx.Identifier{col.Name}.Sanitize()+"::text")
		}
		rows, err := conn.Query(ctx, "select array["+strings.Join(texts, ", ")+"] from "+c.Table)
		if err == nil {
			c.Snapshot, err = pgx.CollectRows(rows, pgx.RowTo[[]*string])
		}
		if err != nil {
			t.Fatal(c.Name, err)
		}
	}
	psql("rows.sql")
	rows, err := conn.Query(ctx, `select data from pg_logical_slot_get_binary_changes($1, null, null,
		'proto_version', '1', 'publication_names', 'golden', 'messages', 'true')`, slot)
	if err == nil {
		c.WAL, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
	}
	if err == nil {
		_, err = conn.Exec(ctx, "select pg_drop_replication_slot($1)", slot)
	}
	if err != nil {
		t.Fatal(c.Name, err)
	}
	return c
}

// readGoldenRecords reads what a capture of topics has written.
func readGoldenRecords(t *testing.T, file string) []goldenRecord {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []goldenRecord
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r struct {
			goldenRecord
			Headers [][2]json.RawMessage `json:"headers"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(file, err)
		}
		for _, h := range r.Headers {
			var name string
			var value *[]byte
			if err := json.Unmarshal(h[0], &name); err != nil {
				t.Fatal(file, err)
			}
			if err := json.Unmarshal(h[1], &value); err != nil {
				t.Fatal(file, err)
			}
			bytes := []byte(name)
			r.goldenRecord.Headers = append(r.goldenRecord.Headers, [2]*[]byte{&bytes, value})
		}
		list = append(list, r.goldenRecord)
	}
	return list
}
