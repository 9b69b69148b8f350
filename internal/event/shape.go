package event

import (
	"fmt"
	"strings"

	"github.com/walpost/walpost/decoder"
)

// shape is a kind of table that is recognised by its columns' names.
type shape struct {
	columns Columns
	// optional columns become headers of the same name.
	optional []string
	// members is a json column whose members become headers.
	members string
}

// shapes lists them in the order in which they are tried. The optional columns
// are in the order of the headers.
var shapes = [...]shape{
	{
		columns: Columns{ID: "event_id", AggregateType: "aggregate_type", AggregateID: "aggregate_id", Type: "event_type", Payload: "payload"},
		optional: []string{"schema_version", "aggregate_version", "occurred_at", "traceparent", "tracestate", "trace_id", "trace_context",
			"tenant", "tenant_id"},
		members: "headers",
	},
	{
		columns:  Columns{ID: "id", AggregateType: "aggregatetype", AggregateID: "aggregateid", Type: "type", Payload: "payload"},
		optional: []string{"traceparent", "tracestate", "tracingspancontext", "tenant", "tenant_id"},
	},
}

// index gives each column's place by name.
func index(rel *decoder.Relation) map[string]int {
	at := make(map[string]int, len(rel.Columns))
	for i, c := range rel.Columns {
		at[c.Name] = i
	}
	return at
}

// resolve decides which columns make an event. Configured names win; the rest
// comes from the first shape whose names are all there. When everything that is
// needed is configured, the table's other columns mean nothing, but for the
// event type, which may have either shape's name.
func resolve(at map[string]int, t *Table) (shape, error) {
	c := t.Columns
	for _, used := range []string{c.ID, c.AggregateType, c.AggregateID, c.Type, c.Payload, c.Timestamp, c.Partition} {
		if _, there := at[used]; used != "" && !there {
			return shape{}, missing(t, used)
		}
	}
	for _, h := range t.Headers {
		if _, there := at[h.Column]; h.Required && !there {
			return shape{}, missing(t, h.Column)
		}
	}
	if c.ID != "" && c.AggregateType != "" && c.AggregateID != "" && c.Payload != "" {
		for i := 0; c.Type == "" && i < len(shapes); i++ {
			if _, there := at[shapes[i].columns.Type]; there {
				c.Type = shapes[i].columns.Type
			}
		}
		return shape{columns: c}, nil
	}
	for _, s := range shapes {
		s.columns = merge(c, s.columns)
		if has(at, s.columns.ID, s.columns.AggregateType, s.columns.AggregateID, s.columns.Type, s.columns.Payload) {
			return s, nil
		}
	}
	return shape{}, unrecognised(at, t)
}

func merge(configured, usual Columns) Columns {
	pick := func(a, b string) string {
		if a != "" {
			return a
		}
		return b
	}
	return Columns{
		ID:            pick(configured.ID, usual.ID),
		AggregateType: pick(configured.AggregateType, usual.AggregateType),
		AggregateID:   pick(configured.AggregateID, usual.AggregateID),
		Type:          pick(configured.Type, usual.Type),
		Payload:       pick(configured.Payload, usual.Payload),
		Timestamp:     configured.Timestamp,
		Partition:     configured.Partition,
	}
}

func has(at map[string]int, names ...string) bool {
	for _, n := range names {
		if _, there := at[n]; !there {
			return false
		}
	}
	return true
}

func missing(t *Table, column string) *Reject {
	return &Reject{
		Table: t.Name, Column: column, Text: "mapped in the configuration, but the table has no such column",
		Way: fmt.Sprintf("correct the columns or headers of %s in the configuration, or add the column to the table and its publication", t.Name),
	}
}

// unrecognised names what is missing from the shape that fits best, and shows
// the mapping that would do.
func unrecognised(at map[string]int, t *Table) *Reject {
	var lacks []string
	for i, s := range shapes {
		c := merge(t.Columns, s.columns)
		var l []string
		for _, n := range []string{c.ID, c.AggregateType, c.AggregateID, c.Type, c.Payload} {
			if !has(at, n) {
				l = append(l, n)
			}
		}
		if i == 0 || len(l) < len(lacks) {
			lacks = l
		}
	}
	return &Reject{
		Table: t.Name, Text: "not recognised as an outbox: no column " + strings.Join(lacks, ", "),
		Way: fmt.Sprintf("map the columns in the configuration: {name: %s, columns: {id: …, aggregate_type: …, aggregate_id: …, type: …, payload: …}}", t.Name),
	}
}
