package router_test

import (
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/connect"
	"github.com/walpost/walpost/internal/debezium/router"
)

const (
	firstID  = "00000000-0000-4000-8000-000000000001"
	secondID = "00000000-0000-4000-8000-000000000002"
)

// keyed is a row with an id and a payload.
func keyed(id, payload string) []string { return []string{id, "Order", "o1", "A", payload} }

// onlyKey is the old tuple with the key alone, as the server sends it.
func onlyKey(id string) []string { return []string{id, null, null, null, null} }

func TestUpdate(t *testing.T) {
	t.Parallel()
	const moved = `[__debezium.oldkey={"id":"` + firstID + `"} id=` + secondID + "]"
	for _, test := range []struct {
		name     string
		identity byte
		columns  []col
		old, row []string
		want     string // empty: nothing
	}{
		{"key unchanged", 'd', usual, nil, keyed(firstID, "{}"), ""},
		{"key changed", 'd', usual, onlyKey(firstID), keyed(secondID, "{}"), "outbox.event.Order o1 {} " + moved},
		{"full, key unchanged", 'f', usual, keyed(firstID, "{}"), keyed(firstID, "[]"), ""},
		{"full, key changed", 'f', usual, keyed(firstID, "{}"), keyed(secondID, "[]"), "outbox.event.Order o1 [] " + moved},
		{"full, the payload is not sent", 'f', usual, keyed(firstID, `{"big": 1}`), keyed(secondID, toast), `outbox.event.Order o1 {"big": 1} ` + moved},
		{"the payload is not sent", 'd', usual, onlyKey(firstID), keyed(secondID, toast), "outbox.event.Order o1 __debezium_unavailable_value " + moved},
		{"full, no primary key", 'f', []col{{name: "id!", typ: uuid}, usual[1], usual[2], usual[3], usual[4]}, keyed(firstID, "{}"), keyed(secondID, "[]"), ""},
		// The index is on aggregateid: the old tuple has no id, and Debezium fills in its zero.
		{"another index, empty key", 'i', []col{{name: "id*", typ: text}, usual[1], usual[2], usual[3], usual[4]}, []string{null, null, "o0", null, null}, keyed("", "{}"), `outbox.event.Order o1 {} [__debezium.oldkey={"id":""} id=]`},
		{"another index", 'i', usual, []string{null, null, "o0", null, null}, keyed(secondID, "{}"), `outbox.event.Order o1 {} [__debezium.oldkey={"id":""} id=` + secondID + "]"},
	} {
		b := setup(t, config(t), test.columns)
		b.rel.Identity = test.identity
		outcome, err := b.plan.Record(b.change(decoder.KindUpdate, test.old, test.row), &b.rec)
		switch {
		case err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.want == "" && outcome != router.SkippedUpdate, test.want != "" && outcome != router.Published:
			t.Errorf("%s: got %s", test.name, outcome)
		case test.want != "" && show(&b.rec) != test.want:
			t.Errorf("%s\n got %s\nwant %s", test.name, show(&b.rec), test.want)
		}
	}
}

// The header converter serializes the old key, with the schema of the key.
func TestOldKeySchema(t *testing.T) {
	t.Parallel()
	o := config(t, "header.converter", connect.ClassJSON)
	o.ContextHeaders = 4
	r, err := router.New(o)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, router: r}
	b.rel, b.table = relation("db", "outbox", []col{{name: "id*", typ: uuid}, usual[1], {name: "aggregateid*", typ: varchar}, usual[3], usual[4]})
	b.table.Key = []string{"aggregateid", "id"}
	if b.plan, err = r.Compile(b.rel, b.table); err != nil {
		t.Fatal(err)
	}
	if _, err := b.plan.Record(b.change(decoder.KindUpdate, []string{firstID, null, "o0", null, null}, keyed(firstID, "{}")), &b.rec); err != nil {
		t.Fatal(err)
	}
	const want = `{"schema":{"type":"struct","fields":[{"type":"string","optional":false,"field":"aggregateid"},{"type":"string","optional":false,"name":"io.debezium.data.Uuid","version":1,"field":"id"}],` +
		`"optional":false,"name":"app.db.outbox.Key"},"payload":{"aggregateid":"o0","id":"` + firstID + `"}}`
	if h := b.rec.Headers[0]; h.Name != "__debezium.oldkey" || string(h.Value) != want {
		t.Errorf("got %s=%s", h.Name, h.Value)
	}
	if len(b.rec.Headers) != 6 || b.rec.Headers[5].Name != "id" {
		t.Errorf("got %s", show(&b.rec))
	}
}

// bytea has its placeholder in bytes; of other types it is not known.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	columns := append([]col(nil), usual...)
	columns[4].typ = bytea
	o := config(t, "value.converter", connect.ClassByteArray)
	o.Unavailable = "gone"
	b := setup(t, o, columns)
	if _, err := b.plan.Record(b.change(decoder.KindUpdate, onlyKey(firstID), keyed(secondID, toast)), &b.rec); err != nil || string(b.rec.Value) != "gone" {
		t.Errorf("got %q, %v", b.rec.Value, err)
	}
	columns[4].typ = textArray
	b = setup(t, config(t), columns)
	_, err := b.plan.Record(b.change(decoder.KindUpdate, onlyKey(firstID), keyed(secondID, toast)), &b.rec)
	if r := reject(t, err); r.Column != "payload" || !strings.Contains(r.Way, "replica identity full") {
		t.Errorf("got %+v", r)
	}
	// An insert always has its values.
	_, err = setup(t, config(t), usual).insert(keyed(firstID, toast))
	reject(t, err)
}

func TestUpdateIsLogged(t *testing.T) {
	t.Parallel()
	for behaviour, level := range map[string]string{"": "warn", "warn": "warn", "Error": "error"} {
		core, logs := observer.New(zap.DebugLevel)
		o := config(t, "table.op.invalid.behavior", behaviour)
		o.Log = zap.New(core)
		b := setup(t, o, usual)
		outcome, err := b.plan.Record(b.change(decoder.KindUpdate, nil, keyed(firstID, "{}")), &b.rec)
		all := logs.All()
		if outcome != router.SkippedUpdate || err != nil || len(all) != 1 || all[0].Level.String() != level || all[0].ContextMap()["event_id"] != firstID {
			t.Errorf("%q: %s, %v, %v", behaviour, outcome, err, all)
		}
	}
}
