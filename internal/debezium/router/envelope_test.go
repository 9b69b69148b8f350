package router_test

import (
	"strings"
	"testing"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/router"
)

// schemaName is the name in the envelope's schema.
func schemaName(t *testing.T, value []byte) string {
	t.Helper()
	_, rest, ok := strings.Cut(string(value), `"optional":false,"name":"app.`)
	if !ok {
		t.Fatalf("no schema in %s", value)
	}
	name, _, _ := strings.Cut(rest, `"`)
	return "app." + name
}

// Debezium names the schema of an envelope after the first row that has the
// payload's schema, in whatever table.
func TestEnvelopeIsNamedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, config(t, pairs(jsonSchema, []string{"table.fields.additional.placement", "type:envelope", "table.expand.json.payload", "true"})...), usual)
	other := &bench{t: t, router: b.router}
	other.rel, other.table = relation("db", "second", usual)
	var err error
	if other.plan, err = b.router.Compile(other.rel, other.table); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		b                 *bench
		topic, text, want string
	}{
		{b, "User", `{"a": 1}`, "app.db.outbox.User.Value"},
		{b, "Order", `{"a": 2}`, "app.db.outbox.User.Value"},
		{b, "Order", `{"a": "x"}`, "app.db.outbox.Order.Value"},
		{other, "User", `{"a": 1}`, "app.db.outbox.User.Value"},
		{other, "User", `[null]`, "app.db.second.User.Value"},
	} {
		rec := row.b.must([]string{firstID, row.topic, "k", "T", row.text})
		if got := schemaName(t, rec.Value); got != row.want {
			t.Errorf("%s %s: got %s, want %s", row.topic, row.text, got, row.want)
		}
	}
}

// With a version, its number alone decides; a payload of another schema does not
// fit then.
func TestEnvelopeByVersion(t *testing.T) {
	t.Parallel()
	b := setup(t, config(t, pairs(jsonSchema, []string{"table.fields.additional.placement", "type:envelope", "table.expand.json.payload", "true", "table.field.event.schema.version", "v"})...),
		with(col{name: "v", typ: integer}))
	for _, row := range []struct{ topic, text, version, want string }{
		{"User", `{"a": 1}`, "1", `app.db.outbox.User.Value","version":1`},
		{"Order", `{"a": 1}`, "1", `app.db.outbox.User.Value","version":1`},
		{"Order", `{"a": 1}`, null, `app.db.outbox.Order.Value"}`},
		{"Other", `{"a": 1}`, null, `app.db.outbox.Order.Value"}`},
		{"Order", `{"b": 1}`, "1", ""},
		{"Order", `{"b": 1}`, "2", `app.db.outbox.Order.Value","version":2`},
	} {
		rec, err := b.insert([]string{firstID, row.topic, "k", "T", row.text, row.version})
		if row.want == "" {
			if r := reject(t, err); r.Column != "payload" || !strings.Contains(r.Text, "does not fit") {
				t.Errorf("got %+v", r)
			}
			continue
		}
		if err != nil || !strings.Contains(string(rec.Value), `"name":"`+row.want) {
			t.Errorf("%v: got %s, %v", row, rec.Value, err)
		}
	}
}

// Another table's rows get the fields of the first one, by name, or do not fit.
func TestEnvelopeOfAnotherTable(t *testing.T) {
	t.Parallel()
	b := setup(t, config(t, pairs(jsonSchema, []string{"table.fields.additional.placement", "type:envelope,n:envelope", "table.field.additional.missing", "ignore"})...), with(col{name: "n", typ: integer}))
	b.must(usualRow("5"))
	plan := func(columns []col) *bench {
		o := &bench{t: t, router: b.router}
		o.rel, o.table = relation("db", "second", columns)
		var err error
		if o.plan, err = b.router.Compile(o.rel, o.table); err != nil {
			t.Fatal(err)
		}
		return o
	}
	if rec := plan(usual).must(usualRow()); !strings.HasSuffix(string(rec.Value), `"payload":{"payload":"{}","type":"UserCreated","n":null}}`) {
		t.Errorf("got %s", rec.Value)
	}
	if _, err := plan(with(col{name: "n", typ: text})).insert(usualRow("x")); reject(t, err).Column != "n" {
		t.Errorf("got %v", err)
	}
	// NULL in a column that was NOT NULL in the first table.
	columns := append([]col(nil), usual...)
	columns[3].name = "type"
	row := usualRow()
	row[3] = null
	if _, err := plan(columns).insert(row); reject(t, err).Column != "type" {
		t.Errorf("got %v", err)
	}
}

func TestSchemaNamesAreTopics(t *testing.T) {
	t.Parallel()
	o := config(t, pairs(jsonSchema, []string{"table.fields.additional.placement", "type:envelope"})...)
	o.TopicDelimiter = "-"
	r, err := router.New(o)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, router: r}
	b.rel, b.table = relation("my schema", "t\u00e4\U0001f600", usual)
	if b.plan, err = r.Compile(b.rel, b.table); err != nil {
		t.Fatal(err)
	}
	if rec := b.must(usualRow()); !strings.Contains(string(rec.Value), `"name":"app-my_schema-t___.User.Value"`) {
		t.Errorf("got %s", rec.Value)
	}
}

// The WAL says which columns a row has; the catalog may be newer.
func TestCatalogIsNewer(t *testing.T) {
	t.Parallel()
	r, err := router.New(config(t, "table.fields.additional.placement", "note:header"))
	if err != nil {
		t.Fatal(err)
	}
	rel, table := relation("db", "outbox", with(col{name: "note", typ: text}))
	for _, test := range []struct {
		name   string
		change func(t *router.Table)
		note   string
		want   string
	}{
		{"dropped since", func(t *router.Table) { t.Columns = t.Columns[:5] }, "x", "x"},
		{"added since", func(t *router.Table) { t.Columns = append(t.Columns, t.Columns[5]); t.Columns[6].Name = "later" }, "x", "x"},
		{"another type since", func(t *router.Table) {
			t.Columns[5].TypeOID, t.Columns[5].Type.OID, t.Columns[5].HasDefault, t.Columns[5].Default = integer, integer, true, "5"
		}, null, "∅"},
	} {
		table := table
		table.Columns = append(table.Columns[:0:0], table.Columns...)
		test.change(&table)
		b := &bench{t: t, router: r, rel: rel}
		if b.plan, err = r.Compile(rel, table); err != nil {
			t.Fatal(test.name, err)
		}
		if got := show(b.must(usualRow(test.note))); got != "outbox.event.User 10711fa5 {} "+strings.TrimSuffix(usualHeader, "]")+" note="+test.want+"]" {
			t.Errorf("%s: got %s", test.name, got)
		}
	}
	// A type of an extension has no number of its own.
	rel.Columns = append([]decoder.Column(nil), rel.Columns...)
	rel.Columns[5].TypeOID = 16400
	_, err = r.Compile(rel, table)
	if got := reject(t, err); got.Column != "note" {
		t.Errorf("got %+v", got)
	}
	// A composite is a type that Debezium leaves out.
	table.Columns[5].TypeOID, table.Columns[5].Type.OID, table.Columns[5].Type.Kind, table.Columns[5].Type.Name = 16400, 16400, 'c', "address"
	_, err = r.Compile(rel, table)
	if got := reject(t, err); got.Column != "note" || !strings.Contains(got.Text, "leaves out columns of type address") {
		t.Errorf("got %+v", got)
	}
}
