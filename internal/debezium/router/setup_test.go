package router_test

import (
	"strings"
	"testing"
	"time"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/column"
	"github.com/walpost/walpost/internal/debezium/connect"
	"github.com/walpost/walpost/internal/debezium/router"
	"github.com/walpost/walpost/sink"
)

// Types of columns (pg_type.dat).
const (
	boolean, bytea, integer, text, jsonb, varchar, timestamp, timestamptz, bigint, smallint, uuid, xml, textArray = 16, 17, 23, 25, 3802, 1043, 1114, 1184, 20, 21, 2950, 142, 1009
	name                                                                                                          = 19
)

// col describes a column; a ! at the end of its name is NOT NULL, and a * part of
// the primary key as well.
type col struct {
	name string
	typ  uint32
	def  string // default
	mod  int32
}

// null is SQL NULL, and toast a value that was not sent.
const (
	null  = "\x00null"
	toast = "\x00toast"
)

// bench is a router, a table and the plan for it.
type bench struct {
	t      testing.TB
	router *router.Router
	plan   *router.Plan
	rel    *decoder.Relation
	table  router.Table
	rec    sink.Record
}

// The table that most cases have.
var usual = []col{{name: "id*", typ: uuid}, {name: "aggregatetype!", typ: varchar}, {name: "aggregateid!", typ: varchar}, {name: "type!", typ: varchar}, {name: "payload", typ: jsonb}}

// usualRow is a row of it.
func usualRow(more ...string) []string {
	return append([]string{"da8d6de6-3b77-45ff-8f44-57db55a7a06c", "User", "10711fa5", "UserCreated", "{}"}, more...)
}

// with adds columns to the usual ones.
func with(more ...col) []col { return append(append([]col(nil), usual...), more...) }

func relation(schema, table string, columns []col) (*decoder.Relation, router.Table) {
	rel := &decoder.Relation{OID: 77, Namespace: schema, Name: table, Identity: 'd'}
	t := router.Table{Schema: schema, Name: table}
	for _, c := range columns {
		if c.mod == 0 {
			c.mod = -1
		}
		n := strings.TrimRight(c.name, "!*")
		key := strings.HasSuffix(c.name, "*")
		rel.Columns = append(rel.Columns, decoder.Column{Name: n, Key: key, TypeOID: c.typ, TypeMod: c.mod})
		info := column.Info{
			Name: n, TypeOID: c.typ, TypeMod: c.mod, NotNull: key || strings.HasSuffix(c.name, "!"), Key: key,
			HasDefault: c.def != "", Default: c.def, Type: column.TypeInfo{OID: c.typ, Schema: "pg_catalog", Name: "t", Kind: 'b', TypMod: -1},
		}
		if c.typ == textArray {
			info.Type.Elem = &column.TypeInfo{OID: text, Schema: "pg_catalog", Name: "text", Kind: 'b', TypMod: -1}
		}
		t.Columns = append(t.Columns, info)
	}
	return rel, t
}

// config makes options of the router's configuration, as name and value.
func config(t testing.TB, pairs ...string) router.Options {
	t.Helper()
	config := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		key := pairs[i]
		if strings.HasPrefix(key, "table.") || strings.HasPrefix(key, "route.") {
			key = "transforms.outbox." + key
		}
		config[key] = pairs[i+1]
	}
	o := options(t, config)
	o.ContextHeaders = 0
	return o
}

// jsonValue has the value as JSON, without and with its schema.
var (
	jsonValue  = []string{"value.converter", connect.ClassJSON, "value.converter.schemas.enable", "false"}
	jsonSchema = []string{"value.converter", connect.ClassJSON}
)

func pairs(lists ...[]string) []string {
	var all []string
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func setup(t testing.TB, o router.Options, columns []col) *bench {
	t.Helper()
	b := &bench{t: t}
	var err error
	if b.router, err = router.New(o); err != nil {
		t.Fatal(err)
	}
	b.rel, b.table = relation("db", "outbox", columns)
	if b.plan, err = b.router.Compile(b.rel, b.table); err != nil {
		t.Fatal(err)
	}
	return b
}

func tuple(row []string) []decoder.Value {
	var values []decoder.Value
	for _, s := range row {
		switch s {
		case null:
			values = append(values, decoder.Value{Kind: decoder.Null})
		case toast:
			values = append(values, decoder.Value{Kind: decoder.Unchanged})
		default:
			values = append(values, decoder.Value{Kind: decoder.Text, Data: []byte(s)})
		}
	}
	return values
}

func (b *bench) change(kind decoder.Kind, old, row []string) *decoder.Change {
	return &decoder.Change{
		Kind: kind, LSN: 0x100, Ordinal: 1, Relation: b.rel, New: tuple(row), Old: tuple(old),
		Transaction: &decoder.Transaction{XID: 7, CommitLSN: 0x200, CommitTime: clock.Add(-time.Second)},
	}
}

// insert makes the record of a row.
func (b *bench) insert(row []string) (*sink.Record, error) {
	outcome, err := b.plan.Record(b.change(decoder.KindInsert, nil, row), &b.rec)
	if err == nil && outcome != router.Published {
		b.t.Fatalf("an insert is %s", outcome)
	}
	return &b.rec, err
}

func (b *bench) must(row []string) *sink.Record {
	b.t.Helper()
	rec, err := b.insert(row)
	if err != nil {
		b.t.Fatal(err)
	}
	return rec
}

// show writes a record on one line.
func show(r *sink.Record) string {
	var b strings.Builder
	bytes := func(v []byte) string {
		if v == nil {
			return "∅"
		}
		return string(v)
	}
	b.WriteString(r.Topic + " " + bytes(r.Key) + " " + bytes(r.Value) + " [")
	for i, h := range r.Headers {
		if i > 0 {
			b.WriteString(" ")
		}
		b.WriteString(h.Name + "=" + bytes(h.Value))
	}
	return b.String() + "]"
}
