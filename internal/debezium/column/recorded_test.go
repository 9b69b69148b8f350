package column_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/walpost/walpost/internal/debezium/column"
	"github.com/walpost/walpost/internal/debezium/connect"
)

// recordedModes are those of the recordings.
var recordedModes = map[string]column.Modes{
	"default":     {MoneyDigits: 2},
	"text":        {MoneyDigits: 2, Decimal: "string", Time: "connect", Binary: "base64", HStore: "map", Interval: "string"},
	"double":      {MoneyDigits: 2, Decimal: "double", Time: "isostring", Binary: "hex"},
	"micros":      {MoneyDigits: 2, Time: "microseconds", Binary: "base64-url-safe"},
	"nanos":       {MoneyDigits: 2, Time: "nanoseconds"},
	"time-micros": {MoneyDigits: 2, Time: "adaptive_time_microseconds"},
	"unknown":     {MoneyDigits: 2, IncludeUnknown: true},
	"unknown-hex": {MoneyDigits: 2, IncludeUnknown: true, Binary: "hex"},
}

// recordedColumn is what went in.
type recordedColumn struct {
	Type    string
	Values  []string // in SQL
	Default string   // in SQL
	Info    column.Info
	Texts   []*string
}

// recording is what came out.
type recording struct {
	Mode, Column string
	Schema       json.RawMessage
	Payloads     []json.RawMessage
}

func lines[T any](t *testing.T, name string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	for line := range bytes.Lines(data) {
		var one T
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatalf("%s: %v in %s", name, err, line)
		}
		all = append(all, one)
	}
	return all
}

// check compares a column with a recording, byte by byte.
func (r *recording) check(t *testing.T, info column.Info, texts []*string) {
	t.Helper()
	c, err := column.New(info, recordedModes[r.Mode])
	if err != nil {
		t.Fatal(err)
	}
	if c == nil || r.Schema == nil {
		if c != nil || r.Schema != nil {
			t.Errorf("column %v; the recording has the schema %q", c, r.Schema)
		}
		return
	}
	// The recordings were made by Java 17.
	json, err := connect.New(connect.ClassJSON, connect.RoleHeader, nil, connect.Options{JavaVersion: 17})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range r.Payloads {
		var text []byte
		null := i >= len(texts) || texts[i] == nil
		if !null {
			text = []byte(*texts[i])
		}
		s := &column.Scratch{}
		v, err := c.Value(s, text, null)
		if err != nil {
			t.Errorf("value of %q: %v", text, err)
			continue
		}
		got, _, err := json.Convert(nil, c.Schema, connect.Default(c.Schema, v))
		if err != nil {
			t.Errorf("JSON of %q: %v", text, err)
			continue
		}
		if want := `{"schema":` + string(r.Schema) + `,"payload":` + string(want) + `}`; string(got) != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestRecorded: schemas, defaults and values are those of Debezium, in all modes.
func TestRecorded(t *testing.T) {
	t.Parallel()
	for _, set := range []struct {
		name  string
		modes int
	}{{"types", 8}, {"defaults", 5}} {
		inputs := lines[recordedColumn](t, set.name+".jsonl")
		recordings := map[[2]string]recording{}
		modes := map[string]bool{}
		for _, r := range lines[recording](t, set.name+".recorded.jsonl") {
			recordings[[2]string{r.Mode, r.Column}] = r
			modes[r.Mode] = true
		}
		if len(modes) != set.modes || len(inputs) < 100 {
			t.Fatalf("%s: %d modes and %d columns, want %d and more than 100", set.name, len(modes), len(inputs), set.modes)
		}
		for _, in := range inputs {
			for mode := range modes {
				t.Run(strings.Join([]string{set.name, mode, in.Info.Name}, "/"), func(t *testing.T) {
					r, ok := recordings[[2]string{mode, in.Info.Name}]
					if !ok {
						r = recordings[[2]string{"default", in.Info.Name}]
						r.Mode = mode
					}
					r.check(t, in.Info, in.Texts)
				})
			}
		}
	}
}
