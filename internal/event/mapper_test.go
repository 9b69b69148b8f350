package event

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/decoder"
)

func TestNewMapperErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		tables []Table
		want   string
	}{
		{"none", nil, "no outbox table is configured"},
		{"no name", []Table{{Schema: "public"}}, "outbox table 1 has no name"},
		{"twice", []Table{{Table: "a"}, {Schema: "public", Table: "a"}}, "outbox table public.a is configured twice"},
		{"header without column", []Table{{Table: "a", Headers: []HeaderColumn{{Name: "x"}}}}, "outbox table public.a: header 1 has no column"},
		{"header twice", []Table{{Table: "a", Headers: []HeaderColumn{{Column: "x"}, {Column: "y", Name: "x"}}}}, `outbox table public.a: header "x" is there already`},
		{"header id", []Table{{Table: "a", Headers: []HeaderColumn{{Column: "id"}}}}, `outbox table public.a: header "id" is there already`},
		{"header event_type", []Table{{Table: "a", Headers: []HeaderColumn{{Column: "x", Name: "event_type"}}}}, `outbox table public.a: header "event_type" is there already`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := NewMapper(tt.tables)
			var oe *OptionError
			if !errors.As(err, &oe) || err.Error() != tt.want || oe.Hint() == "" {
				t.Errorf("error is %v, want %s, with a hint", err, tt.want)
			}
		})
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	m := mapper(t, Table{Table: "outbox"}, Table{Schema: "shop", Table: "outbox", Name: `"shop".outbox`})
	for _, tt := range []struct {
		schema, name string
		want         int
		ok           bool
	}{{"public", "outbox", 0, true}, {"shop", "outbox", 1, true}, {"shop", "Outbox", 0, false}, {"", "outbox", 0, false}} {
		if got, ok := m.Lookup(tt.schema, tt.name); got != tt.want || ok != tt.ok {
			t.Errorf("Lookup(%q, %q) = %d, %v; want %d, %v", tt.schema, tt.name, got, ok, tt.want, tt.ok)
		}
	}
	if got := m.Tables()[0].Name + " " + m.Tables()[1].Name; got != `public.outbox "shop".outbox` {
		t.Errorf("names are %s", got)
	}
	rel, c := setup(seedRow()...)
	p, err := m.Compile(rel, 1)
	if err != nil {
		t.Fatal(err)
	}
	var ev Event
	if err := p.Event(c, &ev); err != nil || ev.Source != 1 || ev.Table != `"shop".outbox` {
		t.Errorf("event of %s, source %d, %v", ev.Table, ev.Source, err)
	}
	for _, i := range []int{-1, 2} {
		if _, err := m.Compile(rel, i); err == nil {
			t.Errorf("Compile with table %d: no error", i)
		}
	}
}

func TestCompileRejects(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		table Table
		row   []column
		want  string
		hint  string
	}{
		{"neither shape", Table{}, []column{{"id", 20, "1"}, {"data", 25, "x"}},
			"table public.outbox: not recognised as an outbox: no column aggregatetype, aggregateid, type, payload",
			"map the columns in the configuration: {name: public.outbox, columns: {id: …, aggregate_type: …, aggregate_id: …, type: …, payload: …}}"},
		{"one column is missing", Table{}, without(seedRow(), "aggregate_id"), "table public.outbox: not recognised as an outbox: no column aggregate_id", "map the columns"},
		{"a dropped column", Table{}, without(debeziumRow(), "type"), "table public.outbox: not recognised as an outbox: no column type", "map the columns"},
		{"no columns", Table{}, nil, "table public.outbox: not recognised as an outbox: no column event_id, aggregate_type, aggregate_id, event_type, payload", "map the columns"},
		{"part of a mapping", Table{Columns: Columns{Payload: "data"}}, []column{{"id", 20, "1"}, {"data", 25, "x"}},
			"table public.outbox: not recognised as an outbox: no column aggregatetype, aggregateid, type", "map the columns"},
		{"mapped id", Table{Columns: Columns{ID: "uid"}}, seedRow(), "table public.outbox: column uid: mapped in the configuration, but the table has no such column",
			"correct the columns or headers of public.outbox in the configuration, or add the column to the table and its publication"},
		{"mapped type", Table{Columns: Columns{Type: "kind"}}, seedRow(), "table public.outbox: column kind: mapped in the configuration, but the table has no such column", "correct"},
		{"mapped timestamp", Table{Columns: Columns{Timestamp: "at"}}, seedRow(), "table public.outbox: column at: mapped in the configuration, but the table has no such column", "correct"},
		{"mapped partition", Table{Columns: Columns{Partition: "p"}}, seedRow(), "table public.outbox: column p: mapped in the configuration, but the table has no such column", "correct"},
		{"required header", Table{Headers: []HeaderColumn{{Column: "h", Required: true}}}, seedRow(), "table public.outbox: column h: mapped in the configuration, but the table has no such column", "correct"},
		{"timestamp of another type", Table{Columns: Columns{Timestamp: "event_type"}}, seedRow(),
			"table public.outbox: column event_type: a column of type 25 cannot give the record's timestamp", "map a column of type timestamptz"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rel, _ := setup(tt.row...)
			tt.table.Table = "outbox"
			_, err := mapper(t, tt.table).Compile(rel, 0)
			if r := wantReject(t, err, tt.want); !strings.HasPrefix(r.Hint(), tt.hint) {
				t.Errorf("hint is %q, want %q", r.Hint(), tt.hint)
			}
		})
	}
}

// TestServers maps what real servers sent, with the table changing in the middle
// of a transaction.
func TestServers(t *testing.T) {
	t.Parallel()
	for major := 14; major <= 18; major++ {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			t.Parallel()
			file, err := os.ReadFile(fmt.Sprintf("../../decoder/testdata/wal/pg%d.bin", major))
			if err != nil {
				t.Fatal(err)
			}
			m := mapper(t, Table{Table: "outbox_events", Columns: Columns{Timestamp: "occurred_at"}})
			plans := make(map[*decoder.Relation]*Plan)
			d := decoder.New()
			var ev Event
			got := make(map[string]string)
			for len(file) > 0 {
				n := 12 + binary.BigEndian.Uint32(file)
				lsn := pglogrepl.LSN(binary.BigEndian.Uint64(file[4:]))
				c, err := d.Decode(lsn, file[12:n])
				file = file[n:]
				if err != nil {
					t.Fatal(err)
				}
				if c.Kind != decoder.KindInsert {
					continue
				}
				table, ours := m.Lookup(c.Relation.Namespace, c.Relation.Name)
				if !ours {
					continue
				}
				p := plans[c.Relation]
				if p == nil {
					if p, err = m.Compile(c.Relation, table); err != nil {
						t.Fatal(err)
					}
					plans[c.Relation] = p
				}
				if err := p.Event(c, &ev); err != nil {
					t.Fatal(err)
				}
				line := fmt.Sprintf("%s %s", ev.AggregateID, ev.Payload)
				if !ev.TimeFallback {
					line += " at " + ev.Time.Format("15:04:05.999999")
				}
				for _, h := range ev.Headers[1:] {
					line += fmt.Sprintf(" %s=%s", h.Name, h.Value)
				}
				got[strings.TrimLeft(string(ev.ID[24:]), "0")] = line
			}
			want := map[string]string{
				"1":   `o-1 {"n": 1, "name": "Zoë 🚚 東京"} at 05:14:00.123456 event_type=order_created schema_version=1 occurred_at=2026-12-02 05:14:00.123456+00 tenant_id=acme`,
				"101": `o-1 {"i": 1} at 05:14:00 event_type=order_paid schema_version=1 occurred_at=2026-12-02 05:14:00+00`,
				"102": `o-2 {"i": 2} at 05:14:00 event_type=order_paid schema_version=1 occurred_at=2026-12-02 05:14:00+00`,
				"103": `o-0 {"i": 3} at 05:14:00 event_type=order_paid schema_version=1 occurred_at=2026-12-02 05:14:00+00`,
				"104": `o-1 {"i": 4} at 05:14:00 event_type=order_paid schema_version=1 occurred_at=2026-12-02 05:14:00+00`,
				"105": `o-2 {"i": 5} at 05:14:00 event_type=order_paid schema_version=1 occurred_at=2026-12-02 05:14:00+00`,
				"202": `o-1  event_type=kept schema_version=1`,
				"203": `o-1  event_type=released schema_version=1`,
				"401": `o-1  event_type=before schema_version=1`,
				"402": `o-1  event_type=after schema_version=1`,
				"501": `o-2  event_type=old shape schema_version=1`,
				"502": `o-2  event_type=added schema_version=1 traceparent=00-aa-bb-01`,
				"503": `o-2  event_type=renamed schema_version=1 traceparent=00-aa-bb-01`,
				"504": `o-2  event_type=retyped schema_version=1 traceparent=00-aa-bb-01`,
				"505": `o-2  event_type=dropped schema_version=1`,
				"601": `o-1  event_type=replicated schema_version=1`,
				"701": `o-1  event_type=deleted at once schema_version=1`,
				"801": `o-1 {"i": 1} event_type=copied schema_version=1`,
				"802": `o-2  event_type=copied schema_version=1`,
				"803": `o-3 {"i": 3} event_type=copied schema_version=1`,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("events differ (-want +got):\n%s", diff)
			}
		})
	}
}
