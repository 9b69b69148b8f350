package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/walpost/walpost/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var update = flag.Bool("update", false, "write the committed corpora anew, without changing what they say")

// TestCorpora runs every committed corpus through the product, on real servers.
func TestCorpora(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs real servers: run without -short")
	}
	all, err := loadAll("testdata", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := testkit.Context(t)
	binary, err := buildWalpost(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := startServers(ctx, 0, 2, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	var out bytes.Buffer
	failed, err := compareAll(ctx, &product{binary, s}, all, true, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	t.Logf("\n%s", &out)
	if failed > 0 {
		t.Errorf("%d corpora differ", failed)
	}
}

// TestRandomConfigurations runs a few of a fixed seed through Debezium and walpost,
// live.
func TestRandomConfigurations(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs real servers: run without -short")
	}
	ctx, dir := testkit.Context(t), t.TempDir()
	o := options{seed: 1, configs: 3, rows: 60, log: t.Logf}
	var err error
	if o.binary, err = buildWalpost(ctx, dir); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	failed, err := o.runDifferential(ctx, dir, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	t.Logf("\n%s", &out)
	if failed > 0 {
		t.Errorf("%d configurations differ", failed)
	}
}

// TestCorporaAreInOurForm: a file that is read and written is the same.
func TestCorporaAreInOurForm(t *testing.T) {
	t.Parallel()
	all, err := loadAll("testdata", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if *update {
			if err := c.save("testdata"); err != nil {
				t.Fatal(err)
			}
		}
		got, err := c.file()
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("testdata", c.name+fileExt))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s changes when it is written: go test -update writes it", c.name)
		}
	}
}

func TestFolderBecomesFile(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "one")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		partTable: "-- a table\ncreate table t ();", partRows: "insert into t default values;\n",
		partConnector: `{"name":"one","config":{"transforms":"o","transforms.o.table.field.event.timestamp":"at"}}`,
		partOutcome:   `{"state":"RUNNING","records":2}`,
		// The second time is the clock's: the run's id was made 40 s before.
		partRecords: `{"topic":"t","partition":1,"offset":0,"timestamp":1000,"key":"/w==","headers":[["id",""],["n",null]],"value":null}
{"topic":"t","partition":0,"offset":0,"timestamp":1796183680000,"key":null,"headers":[["__debezium.context.runId","MDFhMjM0ZTMtNGNiNy03MjIyLThmODktN2E3M2NhZDJhYjNm"]],"value":"ew=="}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := loadAll(filepath.Dir(dir), []string{"one"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := all[0].file()
	if err != nil {
		t.Fatal(err)
	}
	want := `-- table.sql --
-- a table
create table t ();
-- rows.sql --
insert into t default values;
-- connector.json --
{
  "name": "one",
  "config": {
    "transforms": "o",
    "transforms.o.table.field.event.timestamp": "at"
  }
}
-- outcome.json --
{
  "state": "RUNNING",
  "records": 2,
  "java": 17
}
-- records.jsonl --
{"topic":"t","partition":0,"key":null,"headers":[["__debezium.context.runId","00000000-0000-7000-8000-000000000000"]],"value":"{"}
{"topic":"t","partition":1,"timestamp":1000,"key":{"base64":"/w=="},"headers":[["id",""],["n",null]],"value":null}
`
	if string(got) != want {
		t.Errorf("file:\n%s\nwant:\n%s", got, want)
	}
	again, err := parseFile("one", got)
	if err != nil {
		t.Fatal(err)
	}
	if diffs := compare(all[0], &run{records: again.records}, false); len(diffs) != 1 || !strings.Contains(diffs[0].what, "not of the run") {
		t.Errorf("differences of the file: %v, want only the time that is the clock's", diffs)
	}
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	good := "-- table.sql --\n-- rows.sql --\n-- connector.json --\n{}\n-- outcome.json --\n{}\n-- records.jsonl --\n"
	if _, err := parseFile("x", []byte(good)); err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]string{
		"":                                     "no line -- table.sql --",
		"text\n" + good:                        "begins with",
		good + "-- rows.sql --\n":              "comes twice",
		good + "{}\n":                          "1 records, and outcome.json says 0",
		good + "{\"headers\":[[\"a\"]]}\n":     "pair of name and value",
		strings.Replace(good, "{}", "[]", 1):   "connector.json",
		strings.Replace(good, "{}\n-", "-", 1): "connector.json",
	} {
		if _, err := parseFile("x", []byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", content, err, want)
		}
	}
	if _, err := loadAll(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "no corpus") {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := loadAll("testdata", []string{"nonsense"}); err == nil {
		t.Error("a corpus that is not there is found")
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"-golden", "x", "-swap"}, {"-swap", "-lanes", "0"}, {"-swap", "x"}, {"-nonsense"}, {"-seed", "1", "-rows", "-1"}} {
		if err := new(options).parse(args, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	if err := new(options).parse([]string{"-seed", "1", "-configs", "3", "-run", "0,2"}, io.Discard); err != nil {
		t.Error(err)
	}
}
