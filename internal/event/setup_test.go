package event

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/decoder"
)

const (
	commitLSN = pglogrepl.LSN(0x16B3748)
	eventID   = "01942f5e-0000-7000-8000-000000000001"
	toasted   = "\x00toasted"
	inBinary  = "\x00binary"
)

var commitTime = time.Date(2026, 12, 2, 5, 14, 0, 123456000, time.UTC)

// column is one column of a test row: its description and its value, nil for NULL.
type column struct {
	name  string
	typ   uint32
	value any
}

// setup makes a relation and an insert into it.
func setup(columns ...column) (*decoder.Relation, *decoder.Change) {
	rel := &decoder.Relation{OID: 1, Namespace: "public", Name: "outbox", Identity: 'd'}
	c := &decoder.Change{Kind: decoder.KindInsert, LSN: 0x100, Ordinal: 1, Relation: rel,
		Transaction: &decoder.Transaction{XID: 1, CommitLSN: commitLSN, CommitTime: commitTime}}
	for _, col := range columns {
		rel.Columns = append(rel.Columns, decoder.Column{Name: col.name, TypeOID: col.typ, TypeMod: -1})
		v := decoder.Value{Kind: decoder.Null}
		switch s, _ := col.value.(string); {
		case col.value == nil:
		case s == toasted:
			v.Kind = decoder.Unchanged
		case s == inBinary:
			v = decoder.Value{Kind: decoder.Binary, Data: []byte{1}}
		default:
			v = decoder.Value{Kind: decoder.Text, Data: []byte(s)}
		}
		c.New = append(c.New, v)
	}
	return rel, c
}

// seedRow is walpost's own table, with changes and additions by name.
func seedRow(changes ...column) []column {
	return with([]column{
		{"seq", 20, "17"}, {"event_id", 2950, eventID}, {"aggregate_type", 25, "order"}, {"aggregate_id", 25, "o-1"},
		{"aggregate_version", 20, "3"}, {"event_type", 25, "order_created"}, {"schema_version", 23, "1"}, {"payload", 3802, `{"n": 1}`},
		{"occurred_at", 1184, "2026-12-02 05:13:00+00"}, {"created_at", 1184, "2026-12-02 05:13:01+00"},
		{"tenant_id", 25, nil}, {"traceparent", 25, "00-aa-bb-01"}, {"tracestate", 25, nil},
	}, changes...)
}

func debeziumRow(changes ...column) []column {
	return with([]column{
		{"id", 2950, eventID}, {"aggregatetype", 1043, "order"}, {"aggregateid", 1043, "o-1"}, {"type", 1043, "OrderCreated"}, {"payload", 3802, `{"n": 1}`},
	}, changes...)
}

func with(row []column, changes ...column) []column {
next:
	for _, c := range changes {
		for i := range row {
			if row[i].name == c.name {
				row[i] = c
				continue next
			}
		}
		row = append(row, c)
	}
	return row
}

func without(row []column, name string) []column {
	var out []column
	for _, c := range row {
		if c.name != name {
			out = append(out, c)
		}
	}
	return out
}

func mapper(t testing.TB, tables ...Table) *Mapper {
	t.Helper()
	m, err := NewMapper(tables)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func plan(t testing.TB, table Table, rel *decoder.Relation) *Plan {
	t.Helper()
	if table.Table == "" {
		table.Table = "outbox"
	}
	p, err := mapper(t, table).Compile(rel, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantReject(t *testing.T, err error, want string) *Reject {
	t.Helper()
	var r *Reject
	if !errors.As(err, &r) {
		t.Fatalf("error is %v, want a *Reject", err)
	}
	if err.Error() != want {
		t.Errorf("error is\n%s, want\n%s", err, want)
	}
	if r.Hint() == "" {
		t.Error("no hint")
	}
	return r
}
