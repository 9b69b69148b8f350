package router_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/column"
	"github.com/walpost/walpost/internal/debezium/connect"
	"github.com/walpost/walpost/internal/debezium/router"
	"github.com/walpost/walpost/internal/event"
	"github.com/walpost/walpost/sink"
)

// clock is when all records of the tests are made.
var clock = time.UnixMilli(1796183810019).UTC()

// messageTimes are the parts of a logical message that differ from run to run.
var messageTimes = regexp.MustCompile(`[0-9]{3,}`)

const runID = "01a234e6-25bb-70f2-8865-dfdc7b1afeb4"

func readCorpora(t testing.TB) []*corpus {
	t.Helper()
	data, err := os.ReadFile("testdata/golden.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var list []*corpus
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		c := &corpus{}
		if err := json.Unmarshal(lines.Bytes(), c); err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

// converter makes a converter by a connector's configuration.
func converter(t testing.TB, config map[string]string, role connect.Role, fallback string) connect.Converter {
	t.Helper()
	class := config[role.String()]
	if class == "" {
		class = fallback
	}
	options := map[string]string{}
	for key, value := range config {
		if name, ok := strings.CutPrefix(key, role.String()+"."); ok {
			options[name] = value
		}
	}
	c, err := connect.New(class, role, options, connect.Options{JavaVersion: 17})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// options reads a connector's configuration without checking it.
func options(t testing.TB, config map[string]string) router.Options {
	t.Helper()
	get := func(key string) string { return config["transforms.outbox."+key] }
	_, placed := config["transforms.outbox.table.fields.additional.placement"]
	o := router.Options{
		FieldEventID: get("table.field.event.id"), FieldEventKey: get("table.field.event.key"), FieldEventPayload: get("table.field.event.payload"),
		FieldEventTimestamp: get("table.field.event.timestamp"), FieldEventSchemaVersion: get("table.field.event.schema.version"),
		Placement: get("table.fields.additional.placement"), HasPlacement: placed,
		MissingIgnored: get("table.field.additional.missing") == "ignore", OpInvalid: get("table.op.invalid.behavior"),
		ExpandJSON: get("table.expand.json.payload") == "true", JSONNull: get("table.json.payload.null.behavior"),
		RouteByField: get("route.by.field"), TopicRegex: get("route.topic.regex"), TopicReplace: get("route.topic.replacement"),
		TombstoneEmpty: get("route.tombstone.on.empty.payload") == "true",
		TopicPrefix:    "app", ContextHeaders: 4, RunID: runID, MessageTopics: true, DatabaseName: "golden",
		Now: func() time.Time { return clock },
	}
	if config["extended.headers.enabled"] == "false" {
		o.ContextHeaders = 0
	}
	o.Modes = column.Modes{
		Binary: config["binary.handling.mode"], Decimal: config["decimal.handling.mode"], Time: config["time.precision.mode"], MoneyDigits: 2,
	}
	o.Key = converter(t, config, connect.RoleKey, connect.ClassString)
	o.Value = converter(t, config, connect.RoleValue, connect.ClassString)
	o.Header = converter(t, config, connect.RoleHeader, connect.ClassSimpleHeader)
	return o
}

// result is what became of the rows of a corpus.
type result struct {
	records []sink.Record
	rejects []error // of rows
	failed  error   // of the configuration or the table
}

func (c *corpus) run(t testing.TB) result {
	t.Helper()
	var out result
	r, err := router.New(options(t, c.Config))
	if err != nil {
		return result{failed: err}
	}
	table := router.Table{Schema: "public", Name: c.Table, Columns: c.Columns}
	keep := func(rec *sink.Record, outcome router.Outcome, err error) {
		switch {
		case err != nil:
			out.rejects = append(out.rejects, err)
		case outcome == router.Published:
			out.records = append(out.records, deepCopy(rec))
		}
	}
	var rec sink.Record
	if len(c.Snapshot) > 0 {
		rel := &decoder.Relation{Namespace: "public", Name: c.Table, Identity: 'd'}
		for _, info := range c.Columns {
			rel.Columns = append(rel.Columns, decoder.Column{Name: info.Name, TypeOID: info.TypeOID, TypeMod: info.TypeMod, Key: info.Key})
		}
		plan, err := r.Compile(rel, table)
		if err != nil {
			return result{failed: err}
		}
		for _, row := range c.Snapshot {
			outcome, err := plan.SnapshotRow(insert(rel, row), &rec)
			keep(&rec, outcome, err)
		}
	}
	plans := map[*decoder.Relation]*router.Plan{}
	d := decoder.New()
	for i, message := range c.WAL {
		change, err := d.Decode(1, message)
		if err != nil {
			t.Fatalf("%s, message %d: %v", c.Name, i, err)
		}
		r.Observe(change)
		if change.Kind == decoder.KindMessage {
			outcome := router.SkippedOther
			made, err := r.Message(change, &rec)
			if made {
				outcome = router.Published
			}
			keep(&rec, outcome, err)
			continue
		}
		if change.Relation == nil {
			continue
		}
		plan := plans[change.Relation]
		if plan == nil {
			if plan, err = r.Compile(change.Relation, table); err != nil {
				return result{failed: err}
			}
			plans[change.Relation] = plan
		}
		outcome, err := plan.Record(change, &rec)
		keep(&rec, outcome, err)
	}
	return out
}

// insert is a change with a row; nil is NULL.
func insert(rel *decoder.Relation, row []*string) *decoder.Change {
	c := &decoder.Change{
		Kind: decoder.KindInsert, LSN: 0x100, Relation: rel, Ordinal: 1,
		Transaction: &decoder.Transaction{XID: 7, CommitLSN: 0x200, CommitTime: clock.Add(-time.Second)},
	}
	for _, text := range row {
		if text == nil {
			c.New = append(c.New, decoder.Value{Kind: decoder.Null})
		} else {
			c.New = append(c.New, decoder.Value{Kind: decoder.Text, Data: []byte(*text)})
		}
	}
	return c
}

func deepCopy(r *sink.Record) sink.Record {
	out := *r
	out.Key, out.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
	out.Headers = nil
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, sink.Header{Name: h.Name, Value: bytes.Clone(h.Value)})
	}
	return out
}

// Corpora at which Debezium fails, and what walpost does: refuses the
// configuration or the table, or this many rows; where only the broker would say
// no, nothing.
var fails = map[string]struct {
	refused bool
	rows    int
}{
	"expand-big-integer":         {rows: 1},
	"expand-top-level-array":     {rows: 1},
	"jsonb-byte-array-converter": {refused: true},
	"missing-payload-column":     {refused: true},
	"option-invalid":             {refused: true},
	"partition-negative":         {rows: 1},
	"partition-out-of-range":     {},
	"placement-unknown":          {refused: true},
	"timestamp-bigint":           {refused: true},
	"timestamp-future":           {},
	"timestamp-timestamptz":      {refused: true},
	"topic-invalid":              {rows: 1},
	"update-fatal":               {rows: 1},
}

// What a real Debezium put on Kafka is what the router makes of the same WAL.
func TestGolden(t *testing.T) {
	t.Parallel()
	corpora := readCorpora(t)
	if len(corpora) < 45 {
		t.Fatalf("%d corpora", len(corpora))
	}
	for _, c := range corpora {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			got := c.run(t)
			want, failing := fails[c.Name]
			if (got.failed != nil) != want.refused || len(got.rejects) != want.rows {
				t.Fatalf("refused: %v; rejected rows: %v", got.failed, got.rejects)
			}
			for _, err := range append(got.rejects, got.failed) {
				checkReject(t, err)
			}
			if !failing && (len(got.records) != len(c.Records) || c.Outcome.State != "RUNNING") {
				t.Errorf("%d records, want %d; Debezium: %s %s", len(got.records), len(c.Records), c.Outcome.State, c.Outcome.Message)
			}
			type partition struct {
				topic  string
				number int32
			}
			last := map[partition]int{}
			for i := range c.Records {
				at := find(got.records, &c.Records[i])
				if at < 0 {
					t.Errorf("not made: %s, key %s, value %s", c.Records[i].Topic, c.Records[i].Key, c.Records[i].Value)
					continue
				}
				where := partition{c.Records[i].Topic, c.Records[i].Partition}
				if at < last[where] {
					t.Errorf("record %d is out of order", at)
				}
				last[where] = at
				compare(t, &got.records[at], &c.Records[i], c.Config)
			}
		})
	}
}

func checkReject(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if h, ok := err.(interface{ Hint() string }); !ok || h.Hint() == "" {
		t.Errorf("no hint: %v", err)
	}
}

// find finds a record by its headers, which hold the id; -1: there is none.
func find(records []sink.Record, want *goldenRecord) int {
	return slices.IndexFunc(records, func(r sink.Record) bool {
		if r.Topic != want.Topic || len(r.Headers) != len(want.Headers) {
			return false
		}
		for i, h := range r.Headers {
			if h.Name == router.IDHeader && want.Headers[i][1] != nil && !bytes.Equal(h.Value, *want.Headers[i][1]) {
				return false
			}
		}
		return true
	})
}

func compare(t *testing.T, got *sink.Record, want *goldenRecord, config map[string]string) {
	t.Helper()
	if !bytes.Equal(got.Key, want.Key) || (got.Key == nil) != (want.Key == nil) {
		t.Errorf("key: got %q, want %q", got.Key, want.Key)
	}
	if strings.HasSuffix(want.Topic, ".message") {
		want.Value = messageTimes.ReplaceAll(want.Value, []byte("0"))
		got.Value = messageTimes.ReplaceAll(got.Value, []byte("0"))
	}
	if !bytes.Equal(got.Value, want.Value) || (got.Value == nil) != (want.Value == nil) {
		t.Errorf("value:\n got %q\nwant %q", got.Value, want.Value)
	}
	for i, h := range got.Headers {
		w := want.Headers[i]
		if h.Name != string(*w[0]) {
			t.Errorf("header %d is %s, want %s", i, h.Name, *w[0])
		}
		if h.Name == "__debezium.context.runId" {
			continue // new at every start of Debezium
		}
		if (h.Value == nil) != (w[1] == nil) || w[1] != nil && !bytes.Equal(h.Value, *w[1]) {
			t.Errorf("header %s: got %q, want %q", h.Name, h.Value, w[1])
		}
	}
	switch {
	case got.Partition != sink.ByKey:
		if got.Partition != want.Partition {
			t.Errorf("partition %d, want %d", got.Partition, want.Partition)
		}
	case got.Key != nil:
		if p := int32(murmur2(got.Key)&0x7fffffff) % 12; p != want.Partition {
			t.Errorf("partition of the key %d, want %d", p, want.Partition)
		}
	}
	if got.Time.Equal(clock) {
		if config["transforms.outbox.table.field.event.timestamp"] != "" && want.Timestamp < 1.7e12 {
			t.Errorf("time %s, want %d", got.Time, want.Timestamp)
		}
	} else if got.Time.UnixMilli() != want.Timestamp {
		t.Errorf("time %d, want %d", got.Time.UnixMilli(), want.Timestamp)
	}
}

// murmur2 is the hash of Kafka's default partitioner, over the serialized key.
func murmur2(data []byte) int32 {
	const m = 0x5bd1e995
	length := len(data)
	h := uint32(0x9747b28c) ^ uint32(length)
	for ; len(data) >= 4; data = data[4:] {
		k := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
		k *= m
		k ^= k >> 24
		h = h*m ^ k*m
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(data[0])
		h *= m
	}
	h ^= h >> 13
	h *= m
	return int32(h ^ h>>15)
}

func TestMurmur2(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int32{
		"10711fa5": -452740149, `"10711fa5"`: 1035007959, `{"schema":{"type":"string","optional":false},"payload":"10711fa5"}`: 1003484787,
		"1": -1993445489, "null": -75681477, "": 275646681, "21": -973932308, "foobar": -790332482, "abc": 479470107,
	} {
		if got := murmur2([]byte(key)); got != want {
			t.Errorf("%s: got %d, want %d", key, got, want)
		}
	}
}

// reject asserts that an error is about a row, and gives it.
func reject(t *testing.T, err error) *event.Reject {
	t.Helper()
	r, ok := errors.AsType[*event.Reject](err)
	if !ok {
		t.Fatalf("got %v, want a reject", err)
	}
	if r.Way == "" || r.Table == "" {
		t.Errorf("%v: hint %q", r, r.Way)
	}
	return r
}
