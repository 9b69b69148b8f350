package router_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/connect"
	"github.com/walpost/walpost/internal/debezium/router"
	"github.com/walpost/walpost/sink"
)

// The topic: the whole value has to match, then the first match in it is replaced.
func TestTopic(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ regex, replacement, value, want string }{
		{"", "", "User", "outbox.event.User"},
		{"", "", "", "outbox.event."},
		{"", "", "$1", "!character that is not allowed"},
		{"U|User", "x", "User", "xser"},
		{"U", "x", "User", "User"},
		{"(.)(.*)", "$2-$1", "User", "ser-U"},
		{"(.*)-(.*)", "$2.$1", "plain", "plain"},
		{"(?<a>.*)", "${a}_${a}", "x", "x_x"},
		{"x", "", "User", "User"},
		{"", "", "a b", "!character that is not allowed"},
		{"", "", "a\nb", "!character that is not allowed"}, // no match: the value itself
		{"", "", strings.Repeat("a", 250), "!longer than 249"},
		{".*", "", "x", "!empty"},
		{"(.*)", "$1", "..", "!not allowed"},
		{"(.*)", "$1", "__consumer_offsets", "!belongs to Kafka"},
		{"(.*)", "$1", "__mine", "__mine"},
	} {
		o := config(t)
		o.TopicRegex, o.TopicReplace = test.regex, test.replacement
		if test.regex == ".*" {
			o.TopicReplace = "$2"
			if _, err := router.New(o); err == nil {
				t.Error("a group that is not there is accepted")
			}
			o.TopicRegex, o.TopicReplace = "(x)?(y)?.*", "$2" // a group without a match is empty
		} else if test.replacement == "" && test.regex != "" {
			o.TopicReplace = "y"
		}
		b := setup(t, o, usual)
		row := usualRow()
		row[1] = test.value
		rec, err := b.insert(row)
		if fault, faulty := strings.CutPrefix(test.want, "!"); faulty {
			if r := reject(t, err); !strings.Contains(r.Text, fault) || r.Column != "aggregatetype" || r.EventID != row[0] {
				t.Errorf("%q: got %+v", test.value, r)
			}
			continue
		}
		if err != nil || rec.Topic != test.want {
			t.Errorf("%q by %q to %q: got %q, %v, want %q", test.value, test.regex, test.replacement, rec.Topic, err, test.want)
		}
	}
}

// A default takes the place of NULL, but not everywhere.
func TestDefaults(t *testing.T) {
	t.Parallel()
	columns := []col{
		{name: "id", typ: uuid, def: "gen_random_uuid()"}, {name: "aggregatetype", typ: varchar, def: "'Order'::character varying"},
		{name: "aggregateid", typ: varchar, def: "'key'::character varying"}, {name: "payload", typ: jsonb, def: "'{}'::jsonb"},
		{name: "at", typ: timestamp, def: "'2019-03-24 20:52:59'::timestamp without time zone"}, {name: "part", typ: integer, def: "3"},
		{name: "version", typ: integer, def: "4"}, {name: "note", typ: text, def: "'n/a'::text"},
	}
	b := setup(t, config(t, "table.field.event.timestamp", "at", "table.fields.additional.placement", "part:partition,note:header", "route.tombstone.on.empty.payload", "true"), columns)
	rec := b.must([]string{null, "User", null, null, null, null, null, null})
	if got := show(rec); got != "outbox.event.User key {} [id=00000000-0000-0000-0000-000000000000 note=n/a]" {
		t.Errorf("got %s", got)
	}
	if rec.Partition != sink.ByKey || !rec.Time.Equal(clock) || string(b.plan.EventID()) != "00000000-0000-0000-0000-000000000000" {
		t.Errorf("partition %d, time %s, id %s", rec.Partition, rec.Time, b.plan.EventID())
	}
	_, err := b.insert([]string{null, null, null, null, null, null, null, null})
	if r := reject(t, err); r.Column != "aggregatetype" || !strings.Contains(r.Text, "NULL") {
		t.Errorf("got %+v", r)
	}
	b = setup(t, config(t, pairs(jsonSchema, []string{"table.field.event.schema.version", "version", "table.fields.additional.placement", "note:envelope"})...), columns)
	rec = b.must([]string{null, "User", null, null, null, null, null, null})
	if got := string(rec.Value); !strings.HasSuffix(got, `"name":"app.db.outbox.User.Value"},"payload":{"payload":"{}","note":"n/a"}}`) {
		t.Errorf("got %s", got)
	}
}

func TestTime(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		value string
		mod   int32
		want  int64 // 0: the clock; -1: refused
	}{
		{"2019-03-24 20:52:59.999999", -1, 1553460779999},
		{"2019-03-24 20:52:59.999", 3, 1553460779999},
		{"1970-01-01 00:00:00.001999", -1, 1},
		{"1969-12-31 23:59:59.9995", -1, 0}, // toward zero: the epoch; see below
		{"1969-12-31 23:59:59.999", 3, 0},   // -1 is Connect's "no timestamp"
		{"1969-12-31 23:59:59.998", 3, -1},
		{null, 3, 0},
	} {
		b := setup(t, config(t, "table.field.event.timestamp", "at"), with(col{name: "at", typ: timestamp, mod: test.mod}))
		rec, err := b.insert(usualRow(test.value))
		switch {
		case test.want < 0:
			if r := reject(t, err); r.Column != "at" {
				t.Errorf("%s: got %+v", test.value, r)
			}
		case err != nil:
			t.Error(err)
		case test.value == "1969-12-31 23:59:59.9995":
			if rec.Time.UnixMilli() != 0 {
				t.Errorf("%s: got %s", test.value, rec.Time)
			}
		case test.want == 0 && !rec.Time.Equal(clock), test.want > 0 && rec.Time.UnixMilli() != test.want:
			t.Errorf("%s: got %s, want %d", test.value, rec.Time, test.want)
		}
	}
}

// What counts as an empty payload, by the converter when tombstones are off.
func TestTombstones(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		typ           uint32
		value         string
		class         string
		with, without string
	}{
		{text, "", connect.ClassString, "∅", ""},
		{text, " \n\t\x01", connect.ClassString, "∅", " \n\t\x01"},
		{text, "\u00a0", connect.ClassString, "\u00a0", "\u00a0"}, // no blank to String.trim
		{text, null, connect.ClassString, "∅", "∅"},
		{text, null, connect.ClassJSON, "∅", `{"schema":{"type":"string","optional":true},"payload":null}`},
		{bytea, `\x`, connect.ClassByteArray, "", ""}, // the Java buffer prints as something
		{bytea, null, connect.ClassByteArray, "∅", "∅"},
		{integer, "0", connect.ClassString, "0", "0"},
		{textArray, "{}", connect.ClassString, "[]", "[]"},
	} {
		for _, on := range []string{"true", "false"} {
			columns := append([]col(nil), usual...)
			columns[4].typ = test.typ
			b := setup(t, config(t, "value.converter", test.class, "route.tombstone.on.empty.payload", on, "table.fields.additional.placement", "type:header"), columns)
			want := test.without
			if on == "true" {
				want = test.with
			}
			want = "outbox.event.User 10711fa5 " + want + " [id=da8d6de6-3b77-45ff-8f44-57db55a7a06c type=UserCreated]"
			if got := show(b.must(payload(test.value))); got != want {
				t.Errorf("%q, tombstones %s: got %q, want %q", test.value, on, got, want)
			}
		}
	}
}

func TestHeadersInOrder(t *testing.T) {
	t.Parallel()
	for contexts, want := range map[int]string{
		0: "id=x1 et=T id=T",
		3: "__debezium.context.connectorLogicalName=app __debezium.context.taskId=0 __debezium.context.connectorName=postgresql id=x1 et=T id=T",
		4: "__debezium.context.connectorLogicalName=app __debezium.context.taskId=0 __debezium.context.connectorName=postgresql __debezium.context.runId=" + runID + " id=x1 et=T id=T",
	} {
		o := config(t, "table.fields.additional.placement", " type : HEADER : et ,type:header:id,")
		o.ContextHeaders = contexts
		columns := append([]col(nil), usual...)
		columns[0].typ = text
		b := setup(t, o, columns)
		rec := b.must([]string{"x1", "User", "k", "T", "{}"})
		if got := show(rec); got != "outbox.event.User k {} ["+want+"]" {
			t.Errorf("%d: got %s", contexts, got)
		}
		if got := string(b.router.EventID(rec)); got != "x1" {
			t.Errorf("id %q", got)
		}
	}
}

func TestEventID(t *testing.T) {
	t.Parallel()
	for _, config := range [][]string{
		nil,
		{"header.converter", connect.ClassJSON, "header.converter.schemas.enable", "false"},
		{"header.converter", connect.ClassJSON},
	} {
		for typ, id := range map[uint32]string{text: "\"quoted\" \u00e9\U0001f600", integer: "42", uuid: "59a42efd-b015-44a9-9dde-cb36d9002425"} {
			columns := append([]col(nil), usual...)
			columns[0].typ = typ
			b := setup(t, configOf(t, config), columns)
			rec := b.must([]string{id, "User", "k", "T", "{}"})
			if got := string(b.router.EventID(rec)); got != id || string(b.plan.EventID()) != id {
				t.Errorf("%v: got %q and %q, want %q", config, got, b.plan.EventID(), id)
			}
		}
	}
	if got := setup(t, configOf(t, nil), usual).router.EventID(&sink.Record{}); got != nil {
		t.Errorf("got %q", got)
	}
}

func configOf(t testing.TB, pairs []string) router.Options { return config(t, pairs...) }

// Debezium Server passes neither partition nor timestamp, and no null headers.
func TestServer(t *testing.T) {
	t.Parallel()
	o := config(t, "table.field.event.timestamp", "at", "table.fields.additional.placement", "part:partition,note:header")
	o.Server = true
	b := setup(t, o, with(col{name: "at", typ: timestamp}, col{name: "part", typ: integer}, col{name: "note", typ: text}))
	rec := b.must(usualRow("2019-03-24 20:52:59", "-5", null))
	if got := show(rec); got != "outbox.event.User 10711fa5 {} "+usualHeader || rec.Partition != sink.ByKey || !rec.Time.Equal(clock) {
		t.Errorf("got %s, partition %d, time %s", got, rec.Partition, rec.Time)
	}
}

func TestPartition(t *testing.T) {
	t.Parallel()
	b := setup(t, config(t, "table.fields.additional.placement", "type:header,other:partition,part:partition"), with(col{name: "part", typ: integer}, col{name: "other", typ: integer}))
	for value, want := range map[string]int32{"0": 0, "11": 11, null: sink.ByKey} {
		if rec := b.must(usualRow(value, "7")); rec.Partition != want {
			t.Errorf("%s: got %d", value, rec.Partition)
		}
	}
	_, err := b.insert(usualRow("-1", "7"))
	if r := reject(t, err); r.Column != "part" {
		t.Errorf("got %+v", r)
	}
}

// A key is null, which is not the same as empty.
func TestKey(t *testing.T) {
	t.Parallel()
	columns := append([]col(nil), usual...)
	columns[2].name = "aggregateid"
	plain := setup(t, config(t), columns)
	quoted := setup(t, config(t, "key.converter", connect.ClassJSON, "key.converter.schemas.enable", "false"), columns)
	row := usualRow()
	for value, want := range map[string][2]string{null: {"∅", "null"}, "": {"", `""`}, "10711fa5": {"10711fa5", `"10711fa5"`}} {
		row[2] = value
		for i, b := range []*bench{plain, quoted} {
			if got := show(b.must(row)); got != "outbox.event.User "+want[i]+" {} "+usualHeader {
				t.Errorf("%q: got %s", value, got)
			}
		}
	}
}

// Expansion leaves the text and says so, or fails where Debezium fails.
func TestExpansionFails(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.DebugLevel)
	o := config(t, pairs(jsonValue, []string{"table.expand.json.payload", "true"})...)
	o.Log = zap.New(core)
	b := setup(t, o, usual)
	if got := show(b.must(payload(`{"m": [1, "x"]}`))); got != `outbox.event.User 10711fa5 "{\"m\": [1, \"x\"]}" `+usualHeader {
		t.Errorf("got %s", got)
	}
	if warned := logs.FilterLevelExact(zap.WarnLevel).TakeAll(); len(warned) != 1 || warned[0].ContextMap()["event_id"] != usualRow()[0] {
		t.Errorf("logged: %v", warned)
	}
	for _, text := range []string{`[1, 2]`, `{"n": 9223372036854775808}`} {
		_, err := b.insert(payload(text))
		if r := reject(t, err); r.Column != "payload" {
			t.Errorf("%s: %+v", text, r)
		}
	}
	// StringConverter takes the text.
	b = setup(t, config(t, "table.expand.json.payload", "true"), usual)
	if got := show(b.must(payload(`[1, 2]`))); got != "outbox.event.User 10711fa5 [1, 2] "+usualHeader {
		t.Errorf("got %s", got)
	}
	// The envelope does not.
	b = setup(t, config(t, "table.expand.json.payload", "true", "table.fields.additional.placement", "type:envelope"), usual)
	_, err := b.insert(payload(`[1, 2]`))
	reject(t, err)
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*router.Options){
		"no converter":      func(o *router.Options) { o.Header = nil },
		"no prefix":         func(o *router.Options) { o.TopicPrefix = "" },
		"two headers":       func(o *router.Options) { o.ContextHeaders = 2 },
		"null behaviour":    func(o *router.Options) { o.JSONNull = "keep" },
		"empty arrays":      func(o *router.Options) { o.JSONEmptyArray = "keep" },
		"comma":             func(o *router.Options) { o.Placement = "," },
		"no alias":          func(o *router.Options) { o.Placement = "type:envelope: " },
		"two fields":        func(o *router.Options) { o.Placement = "type:envelope:a,id:envelope:a" },
		"look-around":       func(o *router.Options) { o.TopicRegex = "(?=a).*" },
		"heartbeat's topic": func(o *router.Options) { o.HeartbeatTopic = "a b" },
		"heartbeat's bytes": func(o *router.Options) {
			o.HeartbeatTopic, o.Value = "hb", converter(t, map[string]string{"value.converter": connect.ClassDebeziumBinaryData}, connect.RoleValue, "")
		},
		"context headers": func(o *router.Options) {
			o.ContextHeaders, o.Header = 3, converter(t, map[string]string{"header.converter": connect.ClassByteArray}, connect.RoleHeader, "")
		},
	} {
		o := config(t)
		change(&o)
		if _, err := router.New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	o := config(t)
	o.Now = nil
	b := setup(t, o, usual)
	before := time.Now()
	if at := b.must(usualRow()).Time; at.Before(before) {
		t.Errorf("got %s", at)
	}
	if _, err := b.plan.Record(&decoder.Change{Kind: decoder.KindInsert, Relation: b.rel}, &b.rec); err == nil {
		t.Error("a row without columns is accepted")
	}
}
