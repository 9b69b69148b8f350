package route

import (
	"context"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/event"
	"github.com/walpost/walpost/sink"
)

// Translator makes records of what happens to the outbox tables. One goroutine
// uses it and its plans.
type Translator interface {
	// Lookup finds the outbox table of that name, by its index.
	Lookup(schema, name string) (table int, ok bool)
	// Tables names the outbox tables, in the order of their index.
	Tables() []string
	// Compile makes the plan for rows of rel, which are those of an outbox table.
	// It may ask the catalog. An *event.Reject says that the table is at fault.
	Compile(ctx context.Context, rel *decoder.Relation, table int) (Plan, error)
	// Updates says whether an update can make a record.
	Updates() bool
	// Message makes a record of a logical message; false when it makes none.
	Message(c *decoder.Change, rec *sink.Record) (bool, error)
}

// Plan makes records of one relation's rows.
type Plan interface {
	// Record fills rec from an insert, or an update when there are Updates. It is
	// false when the change makes no record. What rec points to is valid until
	// the next call, and no longer than c. An *event.Reject says that the row is
	// at fault, and names it.
	Record(c *decoder.Change, rec *sink.Record) (bool, error)
}

// SnapshotPlan is a Plan that treats rows of a snapshot in its own way. Where it
// is not implemented, such a row is an insert.
type SnapshotPlan interface {
	// SnapshotRecord fills rec from a row that is in c as an insert.
	SnapshotRecord(c *decoder.Change, rec *sink.Record) (bool, error)
}

// Observer is a Translator that sees every change before it is asked about one.
type Observer interface {
	Observe(c *decoder.Change)
}

// Rows is the Translator of walpost's own configuration: a Mapper that gives
// rows a meaning, and a Router that gives them a place.
type Rows struct {
	mapper *event.Mapper
	router *Router
	event  event.Event
}

// NewRows makes the Translator.
func NewRows(mapper *event.Mapper, router *Router) *Rows {
	return &Rows{mapper: mapper, router: router}
}

// Lookup implements Translator.
func (r *Rows) Lookup(schema, name string) (int, bool) { return r.mapper.Lookup(schema, name) }

// Tables implements Translator.
func (r *Rows) Tables() []string {
	names := make([]string, len(r.mapper.Tables()))
	for i, t := range r.mapper.Tables() {
		names[i] = t.Name
	}
	return names
}

// Updates implements Translator: an outbox row is an event once, when it is
// inserted.
func (r *Rows) Updates() bool { return false }

// Message implements Translator.
func (r *Rows) Message(*decoder.Change, *sink.Record) (bool, error) { return false, nil }

// Compile implements Translator.
func (r *Rows) Compile(_ context.Context, rel *decoder.Relation, table int) (Plan, error) {
	plan, err := r.mapper.Compile(rel, table)
	if err != nil {
		return nil, err
	}
	return &rowPlan{r, plan}, nil
}

type rowPlan struct {
	rows *Rows
	plan *event.Plan
}

// Record implements Plan.
func (p *rowPlan) Record(c *decoder.Change, rec *sink.Record) (bool, error) {
	ev := &p.rows.event
	err := p.plan.Event(c, ev)
	if err == nil {
		err = p.rows.router.Route(ev, rec)
	}
	return err == nil, err
}
