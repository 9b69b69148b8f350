package event

import (
	"fmt"

	"github.com/walpost/walpost/decoder"
)

// Table is one configured outbox table.
type Table struct {
	Name    string // schema.table as configured, for people; made of the two when empty
	Schema  string // public when empty
	Table   string
	Columns Columns
	Headers []HeaderColumn
}

// Columns names the columns that make an event; an empty one is recognised by
// its usual name.
type Columns struct {
	ID, AggregateType, AggregateID, Type, Payload string
	// Timestamp becomes the record's timestamp; none means the commit time.
	Timestamp string
	// Partition holds the partition's number; none, or NULL, means by key.
	Partition string
}

// HeaderColumn sends one more column as a header.
type HeaderColumn struct {
	Column   string
	Name     string // of the header; the column's when empty
	Required bool   // NULL, or a table without the column, is then a Reject
}

// Mapper knows the configured outbox tables. It does not change after
// NewMapper, so it is safe for concurrent use.
type Mapper struct {
	tables []Table
	byName map[qualified]int
}

type qualified struct{ schema, table string }

// OptionError is a fault in the configuration of the tables.
type OptionError struct {
	Text string
	Way  string
}

func (e *OptionError) Error() string { return e.Text }

// Hint says what to do about it.
func (e *OptionError) Hint() string { return e.Way }

// NewMapper checks the tables, of which there must be at least one, and keeps a
// copy of them. An index of the Mapper is an index of tables.
func NewMapper(tables []Table) (*Mapper, error) {
	if len(tables) == 0 {
		return nil, &OptionError{"no outbox table is configured", "name one with --table schema.table"}
	}
	m := &Mapper{tables: make([]Table, len(tables)), byName: make(map[qualified]int, len(tables))}
	for i, t := range tables {
		if t.Table == "" {
			return nil, &OptionError{fmt.Sprintf("outbox table %d has no name", i+1), "name it as schema.table"}
		}
		if t.Schema == "" {
			t.Schema = "public"
		}
		if t.Name == "" {
			t.Name = t.Schema + "." + t.Table
		}
		q := qualified{t.Schema, t.Table}
		if _, twice := m.byName[q]; twice {
			return nil, &OptionError{fmt.Sprintf("outbox table %s is configured twice", t.Name), "remove one of the two"}
		}
		headers, err := checkHeaders(t.Name, t.Headers)
		if err != nil {
			return nil, err
		}
		t.Headers = headers
		m.tables[i], m.byName[q] = t, i
	}
	return m, nil
}

func checkHeaders(table string, in []HeaderColumn) ([]HeaderColumn, error) {
	seen := map[string]bool{"id": true, "aggregate_type": true, "event_type": true}
	out := make([]HeaderColumn, len(in))
	for i, h := range in {
		if h.Column == "" {
			return nil, &OptionError{fmt.Sprintf("outbox table %s: header %d has no column", table, i+1), "name the column that it is taken from"}
		}
		if h.Name == "" {
			h.Name = h.Column
		}
		if seen[h.Name] {
			return nil, &OptionError{fmt.Sprintf("outbox table %s: header %q is there already", table, h.Name), "give the header another name"}
		}
		seen[h.Name] = true
		out[i] = h
	}
	return out, nil
}

// Lookup finds the configured table of that name.
func (m *Mapper) Lookup(schema, name string) (int, bool) {
	i, ok := m.byName[qualified{schema, name}]
	return i, ok
}

// Tables gives the tables as they are used, defaults filled in.
func (m *Mapper) Tables() []Table { return m.tables }

// Compile makes the plan by which rows of rel become events of the configured
// table. The two names differ for a partition that is published under its own
// name; which table it belongs to is for the caller to know.
func (m *Mapper) Compile(rel *decoder.Relation, table int) (*Plan, error) {
	if table < 0 || table >= len(m.tables) {
		return nil, fmt.Errorf("compile %s.%s: no table %d, there are %d", rel.Namespace, rel.Name, table, len(m.tables))
	}
	return compile(rel, &m.tables[table], uint32(table))
}
