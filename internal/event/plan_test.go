package event

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/walpost/walpost/decoder"
)

// want is an Event with text in place of bytes; nil is NULL.
type want struct {
	id, aggregateType, aggregateID string
	typ, payload, partition        any
	at                             time.Time
	fallback                       bool
	headers                        []string // name=value, or name for a null
}

func (w want) check(t *testing.T, ev *Event) {
	t.Helper()
	text := func(b []byte) any {
		if b == nil {
			return nil
		}
		return string(b)
	}
	got := want{id: string(ev.ID), aggregateType: string(ev.AggregateType), aggregateID: string(ev.AggregateID),
		typ: text(ev.Type), payload: text(ev.Payload), partition: text(ev.Partition), at: ev.Time, fallback: ev.TimeFallback}
	for _, h := range ev.Headers {
		if h.Value == nil {
			got.headers = append(got.headers, h.Name)
			continue
		}
		got.headers = append(got.headers, h.Name+"="+string(h.Value))
	}
	if diff := cmp.Diff(w, got, cmp.AllowUnexported(want{})); diff != "" {
		t.Errorf("event differs (-want +got):\n%s", diff)
	}
}

func TestEvent(t *testing.T) {
	t.Parallel()
	seed := func(change func(*want)) want {
		w := want{id: eventID, aggregateType: "order", aggregateID: "o-1", typ: "order_created", payload: `{"n": 1}`, at: commitTime,
			headers: []string{"aggregate_type=order", "event_type=order_created", "schema_version=1", "aggregate_version=3",
				"occurred_at=2026-12-02 05:13:00+00", "traceparent=00-aa-bb-01"}}
		if change != nil {
			change(&w)
		}
		return w
	}
	debezium := want{id: eventID, aggregateType: "order", aggregateID: "o-1", typ: "OrderCreated", payload: `{"n": 1}`, at: commitTime,
		headers: []string{"aggregate_type=order", "event_type=OrderCreated"}}
	more := func(w want, headers ...string) want {
		w.headers = append(append([]string(nil), w.headers...), headers...)
		return w
	}
	own := Columns{ID: "uid", AggregateType: "kind", AggregateID: "key", Payload: "body"}
	ownRow := []column{{"uid", 20, "7"}, {"kind", 25, "order"}, {"key", 25, "o-1"}, {"body", 25, "hi"}, {"tenant", 25, "acme"}, {"headers", 3802, `{"a": "b"}`}}

	tests := []struct {
		name  string
		table Table
		row   []column
		want  want
	}{
		{"the seed's table", Table{}, seedRow(), seed(nil)},
		{"every optional column", Table{},
			seedRow(column{"tracestate", 25, "x=y"}, column{"tenant_id", 25, "7"}, column{"tenant", 25, "acme"}, column{"trace_id", 25, "aa"}, column{"trace_context", 25, "cc"}),
			seed(func(w *want) {
				w.headers = append(w.headers, "tracestate=x=y", "trace_id=aa", "trace_context=cc", "tenant=acme", "tenant_id=7")
			})},
		{"no optional column", Table{}, []column{{"payload", 25, "p"}, {"event_type", 25, "t"}, {"aggregate_id", 25, "i"}, {"aggregate_type", 25, "a"}, {"event_id", 25, "e"}},
			want{id: "e", aggregateType: "a", aggregateID: "i", typ: "t", payload: "p", at: commitTime, headers: []string{"aggregate_type=a", "event_type=t"}}},
		{"null payload is a tombstone", Table{}, seedRow(column{"payload", 3802, nil}), seed(func(w *want) { w.payload = nil })},
		{"empty payload is not", Table{}, seedRow(column{"payload", 25, ""}), seed(func(w *want) { w.payload = "" })},
		{"json payload keeps its bytes", Table{}, seedRow(column{"payload", 114, "{\"b\":1,\n  \"a\":[ ]}"}), seed(func(w *want) { w.payload = "{\"b\":1,\n  \"a\":[ ]}" })},
		{"bytea payload", Table{}, seedRow(column{"payload", 17, `\x00ff5C0a`}), seed(func(w *want) { w.payload = "\x00\xff\\\n" })},
		{"empty bytea payload", Table{}, seedRow(column{"payload", 17, `\x`}), seed(func(w *want) { w.payload = "" })},
		{"text payload that looks like bytea", Table{}, seedRow(column{"payload", 25, `\x00`}), seed(func(w *want) { w.payload = `\x00` })},
		{"no event type", Table{}, seedRow(column{"event_type", 25, nil}), seed(func(w *want) {
			w.typ = nil
			w.headers = append(w.headers[:1:1], w.headers[2:]...)
		})},
		{"Debezium's table", Table{}, debeziumRow(), debezium},
		{"Debezium's optional columns", Table{},
			debeziumRow(column{"tenant_id", 25, "7"}, column{"tracingspancontext", 25, "s"}, column{"traceparent", 25, "tp"}, column{"headers", 3802, `{"a": "b"}`}),
			more(debezium, "traceparent=tp", "tracingspancontext=s", "tenant_id=7")},
		{"one column of another name", Table{Columns: Columns{Payload: "body"}}, with(without(debeziumRow(), "payload"), column{"body", 25, "hi"}),
			func() want { w := debezium; w.payload = "hi"; return w }()},
		{"all columns of other names", Table{Columns: own}, ownRow,
			want{id: "7", aggregateType: "order", aggregateID: "o-1", payload: "hi", at: commitTime, headers: []string{"aggregate_type=order"}}},
		{"all of other names, but the type", Table{Columns: own}, with(ownRow[:4:4], column{"event_type", 25, "t"}),
			want{id: "7", aggregateType: "order", aggregateID: "o-1", typ: "t", payload: "hi", at: commitTime, headers: []string{"aggregate_type=order", "event_type=t"}}},
		{"header columns", Table{Headers: []HeaderColumn{{Column: "tenant_id", Name: "org", Required: true}, {Column: "seq"}, {Column: "absent"}, {Column: "tracestate"}}},
			seedRow(column{"tenant_id", 25, "7"}), seed(func(w *want) { w.headers = append(w.headers, "org=7", "seq=17") })},
		{"a configured header leaves the fixed order", Table{Headers: []HeaderColumn{{Column: "schema_version"}}}, seedRow(),
			seed(func(w *want) { w.headers = append(append(w.headers[:2:2], w.headers[3:]...), "schema_version=1") })},
		{"a configured header replaces the column of its name", Table{Headers: []HeaderColumn{{Column: "seq", Name: "schema_version"}}}, seedRow(),
			seed(func(w *want) { w.headers = append(append(w.headers[:2:2], w.headers[3:]...), "schema_version=17") })},
		{"json headers", Table{}, seedRow(column{"headers", 3802, `{"z": "ü\n", "n": 1.50, "b": true, "x": null, "o": {"k": [1, 2]}, "event_type": "again"}`}),
			seed(func(w *want) {
				w.headers = append(w.headers, "z=ü\n", "n=1.50", "b=true", "x", `o={"k": [1, 2]}`, "event_type=again")
			})},
		{"empty json headers", Table{}, seedRow(column{"headers", 3802, `{}`}), seed(nil)},
		{"empty json headers with space", Table{}, seedRow(column{"headers", 114, ` { } `}), seed(nil)},
		{"null json headers", Table{}, seedRow(column{"headers", 114, nil}), seed(nil)},
		{"headers of another type", Table{}, seedRow(column{"headers", 25, `not json`}), seed(nil)},
		{"headers as one header", Table{Headers: []HeaderColumn{{Column: "headers"}}}, seedRow(column{"headers", 3802, `{"a": 1}`}),
			seed(func(w *want) { w.headers = append(w.headers, `headers={"a": 1}`) })},
		{"partition", Table{Columns: Columns{Partition: "p"}}, seedRow(column{"p", 23, "-4"}), seed(func(w *want) { w.partition = "-4" })},
		{"no partition", Table{Columns: Columns{Partition: "p"}}, seedRow(column{"p", 23, nil}), seed(nil)},
		{"timestamptz", Table{Columns: Columns{Timestamp: "occurred_at"}}, seedRow(), seed(func(w *want) { w.at = time.Date(2026, 12, 2, 5, 13, 0, 0, time.UTC) })},
		{"timestamp", Table{Columns: Columns{Timestamp: "x"}}, seedRow(column{"x", 1114, "2026-01-02 03:04:05.006"}),
			seed(func(w *want) { w.at = time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC) })},
		{"date", Table{Columns: Columns{Timestamp: "x"}}, seedRow(column{"x", 1082, "2026-01-02"}), seed(func(w *want) { w.at = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC) })},
		{"milliseconds", Table{Columns: Columns{Timestamp: "x"}}, seedRow(column{"x", 20, "1764652440123"}),
			seed(func(w *want) { w.at = time.Date(2025, 12, 2, 5, 14, 0, 123e6, time.UTC) })},
		{"null timestamp", Table{Columns: Columns{Timestamp: "occurred_at"}}, seedRow(column{"occurred_at", 1184, nil}), seed(func(w *want) {
			w.fallback = true
			w.headers = append(w.headers[:4:4], w.headers[5:]...)
		})},
		{"infinite timestamp", Table{Columns: Columns{Timestamp: "x"}}, seedRow(column{"x", 1184, "infinity"}), seed(func(w *want) { w.fallback = true })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rel, c := setup(tt.row...)
			p := plan(t, tt.table, rel)
			// What an earlier event left behind must not show.
			ev := Event{Partition: []byte("9"), TimeFallback: true, Type: []byte("old"), Headers: []Header{{Name: "old"}}}
			for range 2 {
				if err := p.Event(c, &ev); err != nil {
					t.Fatal(err)
				}
				if ev.Table != "public.outbox" || ev.Source != 0 {
					t.Errorf("table %q, source %d", ev.Table, ev.Source)
				}
				tt.want.check(t, &ev)
			}
		})
	}
}

func TestRejectedRows(t *testing.T) {
	t.Parallel()
	const here = "event " + eventID + " in table public.outbox at 0/16B3748: column "
	const nameless = "table public.outbox at 0/16B3748: column "
	tests := []struct {
		name  string
		table Table
		row   []column
		want  string
	}{
		{"null id", Table{}, seedRow(column{"event_id", 2950, nil}), nameless + "event_id: NULL, but an event needs it"},
		{"empty id", Table{}, seedRow(column{"event_id", 25, ""}), nameless + "event_id: empty, but an event needs it"},
		{"null aggregate type", Table{}, seedRow(column{"aggregate_type", 25, nil}), here + "aggregate_type: NULL, but an event needs it"},
		{"empty aggregate type", Table{}, debeziumRow(column{"aggregatetype", 25, ""}), here + "aggregatetype: empty, but an event needs it"},
		{"null aggregate id", Table{}, seedRow(column{"aggregate_id", 25, nil}), here + "aggregate_id: NULL, but an event needs it"},
		{"empty aggregate id", Table{}, seedRow(column{"aggregate_id", 25, ""}), here + "aggregate_id: empty, but an event needs it"},
		{"toasted payload", Table{}, seedRow(column{"payload", 25, toasted}), here + "payload: its value was not sent (unchanged TOAST)"},
		{"binary id", Table{}, seedRow(column{"event_id", 25, inBinary}), nameless + "event_id: its value came in binary form, which walpost does not ask for"},
		{"binary header", Table{}, seedRow(column{"traceparent", 25, inBinary}), here + "traceparent: its value came in binary form, which walpost does not ask for"},
		{"toasted partition", Table{Columns: Columns{Partition: "seq"}}, seedRow(column{"seq", 25, toasted}), here + "seq: its value was not sent (unchanged TOAST)"},
		{"toasted timestamp", Table{Columns: Columns{Timestamp: "created_at"}}, seedRow(column{"created_at", 1184, toasted}), here + "created_at: its value was not sent (unchanged TOAST)"},
		{"bytea in escape form", Table{}, seedRow(column{"payload", 17, `a\\b`}), here + "payload: bytea is not in hex form"},
		{"bytea with an odd digit", Table{}, seedRow(column{"payload", 17, `\xabc`}), here + "payload: bytea is not in hex form: encoding/hex: odd length hex string"},
		{"bytea with a wrong digit", Table{}, seedRow(column{"payload", 17, `\xzz`}), here + "payload: bytea is not in hex form: encoding/hex: invalid byte: U+007A 'z'"},
		{"required header", Table{Headers: []HeaderColumn{{Column: "tenant_id", Required: true}}}, seedRow(), here + "tenant_id: NULL, but it is a required header"},
		{"headers is a list", Table{}, seedRow(column{"headers", 3802, `[1]`}), here + "headers: not a JSON object"},
		{"headers is null", Table{}, seedRow(column{"headers", 3802, `null`}), here + "headers: not a JSON object"},
		{"headers is broken", Table{}, seedRow(column{"headers", 3802, `{"a": 1`}), here + "headers: not a JSON object"},
		{"headers has a broken member", Table{}, seedRow(column{"headers", 3802, `{"a": }`}), here + `headers: member "a" is not JSON`},
		{"headers has an id", Table{}, seedRow(column{"headers", 3802, `{"a": 1, "id": "x"}`}), here + `headers: has a member "id", which is the header of the event's id`},
		{"odd id", Table{}, seedRow(column{"event_id", 25, "a\nb"}, column{"payload", 25, toasted}),
			`event "a\nb" in table public.outbox at 0/16B3748: column payload: its value was not sent (unchanged TOAST)`},
		{"long id", Table{}, seedRow(column{"event_id", 25, strings.Repeat("x", 5000)}, column{"payload", 25, toasted}),
			`event "` + strings.Repeat("x", 100) + `"… in table public.outbox at 0/16B3748: column payload: its value was not sent (unchanged TOAST)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rel, c := setup(tt.row...)
			var ev Event
			wantReject(t, plan(t, tt.table, rel).Event(c, &ev), tt.want)
		})
	}
}

// A value in a column that nobody needs is nobody's concern.
func TestUnusedColumnsAreNotRead(t *testing.T) {
	t.Parallel()
	rel, c := setup(seedRow(column{"seq", 20, toasted}, column{"created_at", 1184, inBinary})...)
	if err := plan(t, Table{}, rel).Event(c, new(Event)); err != nil {
		t.Error(err)
	}
}

func TestPlanRefusesWhatItWasNotMadeFor(t *testing.T) {
	t.Parallel()
	rel, _ := setup(seedRow()...)
	p := plan(t, Table{}, rel)
	if p.Relation() != rel {
		t.Error("Relation is not the one that the plan was made for")
	}
	for name, change := range map[string]func(*decoder.Change){
		"kind":        func(c *decoder.Change) { c.Kind = decoder.KindUpdate },
		"relation":    func(c *decoder.Change) { c.Relation = &decoder.Relation{} },
		"transaction": func(c *decoder.Change) { c.Transaction = nil },
		"row":         func(c *decoder.Change) { c.New = c.New[1:] },
	} {
		_, c := setup(seedRow()...)
		c.Relation = rel
		if change(c); p.Event(c, new(Event)) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestEventDoesNotAllocate(t *testing.T) {
	for name, row := range map[string][]column{
		"seed":     seedRow(column{"headers", 3802, "{}"}, column{"tenant_id", 25, "7"}),
		"debezium": debeziumRow(),
		"bytea":    seedRow(column{"payload", 17, `\x` + strings.Repeat("ab", 4000)}),
	} {
		rel, c := setup(row...)
		table := Table{}
		if name != "debezium" {
			table.Columns.Timestamp = "occurred_at"
		}
		p := plan(t, table, rel)
		var ev Event
		if got := testing.AllocsPerRun(100, func() {
			if err := p.Event(c, &ev); err != nil {
				t.Fatal(err)
			}
		}); got != 0 {
			t.Errorf("%s: %v allocations per event, want 0", name, got)
		}
	}
}

// A large bytea payload must not stay in memory after its event.
func TestI7LargeBufferIsNotKept(t *testing.T) {
	t.Parallel()
	rel, c := setup(seedRow(column{"payload", 17, `\x` + strings.Repeat("ab", 4*keepBytes)})...)
	p := plan(t, Table{}, rel)
	var ev Event
	if err := p.Event(c, &ev); err != nil || len(ev.Payload) != 4*keepBytes {
		t.Fatalf("payload of %d bytes, %v", len(ev.Payload), err)
	}
	if cap(p.buf) > keepBytes {
		t.Errorf("the plan keeps %d bytes", cap(p.buf))
	}
}

func BenchmarkEvent(b *testing.B) {
	rel, c := setup(seedRow()...)
	p := plan(b, Table{Columns: Columns{Timestamp: "occurred_at"}}, rel)
	var ev Event
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Event(c, &ev); err != nil {
			b.Fatal(err)
		}
	}
}
