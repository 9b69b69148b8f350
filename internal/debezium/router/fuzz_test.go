package router_test

import (
	"bytes"
	"testing"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/connect"
	"github.com/walpost/walpost/internal/debezium/router"
)

// The default configuration with StringConverter costs nothing per row.
func TestRecordDoesNotAllocate(t *testing.T) { //nolint:paralleltest // it counts allocations
	o := config(t, "table.fields.additional.placement", "type:header:eventType")
	o.ContextHeaders = 4
	b := setup(t, o, usual)
	insert := b.change(decoder.KindInsert, nil, usualRow())
	moved := b.change(decoder.KindUpdate, onlyKey(firstID), keyed(secondID, `{"a": 1}`))
	for name, c := range map[string]*decoder.Change{"insert": insert, "update": moved} {
		if n := testing.AllocsPerRun(200, func() {
			if outcome, err := b.plan.Record(c, &b.rec); outcome != router.Published || err != nil {
				t.Fatal(outcome, err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// What a record points to does not change while it is in use, whatever was there
// before.
func TestBuffersAreReused(t *testing.T) {
	t.Parallel()
	b := setup(t, config(t, "table.fields.additional.placement", "type:header,payload:header"), usual)
	for _, size := range []int{1, 5000, 10, 2 << 20, 3, 70000} {
		body := `"` + string(bytes.Repeat([]byte("x"), size)) + `"`
		rec := b.must(payload(body))
		if string(rec.Value) != body || string(rec.Headers[2].Value) != body || string(rec.Key) != "10711fa5" || string(rec.Headers[0].Value) != usualRow()[0] {
			t.Errorf("a payload of %d bytes is mixed up", size)
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	o := config(b)
	o.ContextHeaders = 4
	s := setup(b, o, usual)
	c := s.change(decoder.KindInsert, nil, usualRow())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.plan.Record(c, &s.rec); err != nil {
			b.Fatal(err)
		}
	}
}

// Whatever is in a row, there is a record with all that it needs, or a reject that
// names the table and says what to do; the same row gives the same record.
func FuzzRecord(f *testing.F) {
	f.Add("User", "k", `{"a": [1, {"b": null}]}`, "2019-03-24 20:52:59", "3", "x", uint8(0), uint8(0))
	f.Add("a-b", "", `[1]`, "infinity", "-1", "\u00e9\U0001f600", uint8(7), uint8(1))
	f.Add("", "\"", ` {}`, "-infinity", "", "", uint8(21), uint8(255))
	f.Fuzz(func(t *testing.T, route, key, body, at, number, note string, mode, nulls uint8) {
		classes := []string{connect.ClassString, connect.ClassJSON}
		o := config(t,
			"key.converter", classes[mode&1], "value.converter", classes[mode>>1&1], "header.converter", []string{connect.ClassSimpleHeader, connect.ClassJSON}[mode>>2&1],
			"table.field.event.timestamp", "at", "table.expand.json.payload", []string{"true", "false"}[mode>>3&1],
			"route.tombstone.on.empty.payload", []string{"true", "false"}[mode>>4&1],
			"table.fields.additional.placement", []string{"note:header,part:partition", "note:envelope,part:partition,part:envelope:p"}[mode>>5&1])
		b := setup(t, o, []col{
			{name: "id*", typ: text}, {name: "aggregatetype", typ: varchar}, {name: "aggregateid", typ: varchar, def: "'d'::text"}, {name: "payload", typ: jsonb},
			{name: "at", typ: timestamp}, {name: "part", typ: integer}, {name: "note", typ: text, def: "'n'::text"},
		})
		row := []string{"id-" + note, route, key, body, at, number, note}
		for i := range row {
			if nulls>>i&1 != 0 {
				row[i] = null
			}
		}
		c := b.change(decoder.KindInsert, nil, row)
		if mode>>6&1 != 0 {
			c = b.change(decoder.KindUpdate, []string{"before", null, null, null, null, null, null}, row)
		}
		outcome, err := b.plan.Record(c, &b.rec)
		if err != nil {
			r := reject(t, err)
			if r.Table != "db.outbox" || r.Text == "" {
				t.Fatalf("%+v", r)
			}
			return
		}
		if outcome != router.Published || b.rec.Topic == "" || b.rec.Time.UnixMilli() < 0 || b.rec.Partition < -1 {
			t.Fatalf("%s: %s at %s, partition %d", outcome, show(&b.rec), b.rec.Time, b.rec.Partition)
		}
		first := show(&b.rec)
		if _, err := b.plan.Record(c, &b.rec); err != nil || show(&b.rec) != first {
			t.Fatalf("again: %s, %v; before %s", show(&b.rec), err, first)
		}
	})
}
