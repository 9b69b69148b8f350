package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Tracer gives the trace context that goes with an event, in the form of the
// W3C headers of these names. Empty means none.
type Tracer interface {
	TraceContext(context.Context) (traceparent, tracestate string)
}

// WriterOptions of a Writer; the zero value is ready for use.
type WriterOptions struct {
	// Table is the outbox, as name or schema.name; outbox_events.
	Table string
	// Payload is the type of its payload column: jsonb (the default), json, text
	// or bytea.
	Payload string
	// MaxBytes of a payload, 900 KiB: what Kafka takes by default, with room for
	// the headers.
	MaxBytes int
	// Marshal makes bytes of a payload; json.Marshal.
	Marshal func(any) ([]byte, error)
	// Tracer adds trace context; nil adds none.
	Tracer Tracer
	// Tenant fills an event's empty TenantID; nil does not.
	Tenant func(context.Context) string
	// RequireVersion refuses events without a version.
	RequireVersion bool
}

// Writer validates and inserts events. It is safe for concurrent use and holds
// no connection.
type Writer struct {
	opt    WriterOptions
	table  pgx.Identifier
	insert string
	values string           // the cast of each value, for WriteSQL
	now    func() time.Time // the clock
}

// columns are those that an insert names, in this order.
var columns = []string{
	"event_id", "aggregate_type", "aggregate_id", "aggregate_version", "event_type", "schema_version",
	"payload", "occurred_at", "tenant_id", "traceparent", "tracestate", "headers",
}

// The arrays keep one text for any number of events, which a connection prepares
// once. The order of the result is that of the arguments, and so is that of seq.
const insertEvents = `insert into {table} ({columns})
select a::uuid, b, c, d, e, f, g::{payload}, h, i, j, k, l::jsonb
  from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::integer[], $7::{carrier}[],
              $8::timestamptz[], $9::text[], $10::text[], $11::text[], $12::text[])
       with ordinality as u (a, b, c, d, e, f, g, h, i, j, k, l, n)
 order by n`

// One statement holds at most so much; more events make more statements.
const (
	chunkEvents = 1000
	chunkBytes  = 8 << 20
)

// NewWriter checks the options.
func NewWriter(o WriterOptions) (*Writer, error) {
	if o.Table == "" {
		o.Table = "outbox_events"
	}
	if o.Payload == "" {
		o.Payload = payloads[0]
	}
	if !slices.Contains(payloads, o.Payload) {
		return nil, &Error{Text: fmt.Sprintf("%q cannot be the type of the payload", o.Payload), Way: "choose one of " + strings.Join(payloads, ", ")}
	}
	if o.MaxBytes < 0 {
		return nil, &Error{Text: fmt.Sprintf("a payload of %d bytes cannot be the largest", o.MaxBytes), Way: "set MaxBytes above 0, or leave it 0 for 900 KiB"}
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 900 << 10
	}
	if o.Marshal == nil {
		o.Marshal = json.Marshal
	}
	table, err := parseTable(o.Table)
	if err != nil {
		return nil, err
	}
	carrier := "text"
	if o.Payload == "bytea" {
		carrier = "bytea"
	}
	fill := strings.NewReplacer("{table}", table.Sanitize(), "{columns}", strings.Join(columns, ", "), "{payload}", o.Payload, "{carrier}", carrier)
	return &Writer{
		opt: o, table: table, insert: fill.Replace(insertEvents),
		values: "uuid,text,text,bigint,text,integer," + o.Payload + ",timestamptz,text,text,text,jsonb",
		now:    time.Now,
	}, nil
}

// Write inserts the events in tx, in the order of the arguments. Call it when
// the aggregate's row is written: its lock makes the order of insertion the
// order of commits. Every event is validated before the first statement, so
// ErrInvalid and ErrTooLarge leave tx usable. Up to 1000 events cost one round
// trip.
func (w *Writer) Write(ctx context.Context, tx pgx.Tx, events ...*Event) error {
	if tx == nil {
		return noTransaction("nil")
	}
	rows, err := w.rows(ctx, events)
	if err != nil {
		return err
	}
	return w.insertRows(ctx, tx, rows)
}

func (w *Writer) insertRows(ctx context.Context, tx pgx.Tx, rows []row) error {
	for chunk := range chunks(rows) {
		if _, err := tx.Exec(ctx, w.insert, w.arrays(chunk)...); err != nil {
			return w.failed(len(rows), err)
		}
	}
	return nil
}

// chunks cuts the rows into statements.
func chunks(rows []row) func(yield func([]row) bool) {
	return func(yield func([]row) bool) {
		from, size := 0, 0
		for i := range rows {
			if i > from && (i-from == chunkEvents || size+len(rows[i].payload) > chunkBytes) {
				if !yield(rows[from:i]) {
					return
				}
				from, size = i, 0
			}
			size += len(rows[i].payload)
		}
		if from < len(rows) {
			yield(rows[from:])
		}
	}
}

func (w *Writer) arrays(rows []row) []any {
	n := len(rows)
	id, aggregateType, aggregateID := make([]string, n), make([]string, n), make([]string, n)
	version, eventType, schemaVersion := make([]*int64, n), make([]string, n), make([]int32, n)
	occurredAt, tenant := make([]time.Time, n), make([]*string, n)
	parent, state, headers := make([]*string, n), make([]*string, n), make([]*string, n)
	var texts []string
	var bytes [][]byte
	for i := range rows {
		r := &rows[i]
		id[i], aggregateType[i], aggregateID[i], version[i] = r.id.String(), r.aggregateType, r.aggregateID, r.version
		eventType[i], schemaVersion[i], occurredAt[i] = r.eventType, r.schemaVersion, r.occurredAt
		tenant[i], parent[i], state[i], headers[i] = r.tenant, r.parent, r.state, r.headers
		if w.opt.Payload == "bytea" {
			bytes = append(bytes, r.payload)
		} else {
			texts = append(texts, string(r.payload))
		}
	}
	var payload any = texts
	if w.opt.Payload == "bytea" {
		payload = bytes
	}
	return []any{id, aggregateType, aggregateID, version, eventType, schemaVersion, payload, occurredAt, tenant, parent, state, headers}
}

// rows validates all events before anything is written.
func (w *Writer) rows(ctx context.Context, events []*Event) ([]row, error) {
	rows := make([]row, 0, len(events))
	seen := make(map[uuid.UUID]bool, len(events))
	for i, e := range events {
		r, err := w.row(ctx, i, e)
		if err != nil {
			return nil, err
		}
		if seen[r.id] {
			return nil, e.fault(i)("ID", r.id.String()+" is there twice", "give each event an Event and an ID of its own, or leave the ID zero")
		}
		seen[r.id] = true
		rows = append(rows, r)
	}
	return rows, nil
}

func (w *Writer) row(ctx context.Context, index int, e *Event) (row, error) {
	fault := e.fault(index)
	if e == nil {
		return row{}, fault("Event", "it is nil", "pass events that there are")
	}
	if err := e.check(fault); err != nil {
		return row{}, err
	}
	if w.opt.RequireVersion && e.Version == 0 {
		return row{}, fault("Version", "it is missing, and this writer requires one", "set the version of the aggregate that the event makes; NextVersions counts for aggregates without one")
	}
	tenant := e.TenantID
	if tenant == "" && w.opt.Tenant != nil {
		tenant = w.opt.Tenant(ctx)
		if why := unfit(tenant, maxName); why != "" {
			return row{}, fault("TenantID", why, "let WriterOptions.Tenant give at most 255 bytes of UTF-8 without NUL")
		}
	}
	headers, err := e.headerText(fault)
	if err != nil {
		return row{}, err
	}
	payload, err := w.payload(e, fault)
	if err != nil {
		return row{}, err
	}
	if e.ID == uuid.Nil {
		id, err := uuid.NewV7()
		if err != nil {
			return row{}, fmt.Errorf("make an event id: %w", err)
		}
		e.ID = id
	}
	e.SchemaVersion = max(e.SchemaVersion, 1)
	if e.OccurredAt.IsZero() {
		e.OccurredAt = w.now().UTC().Truncate(time.Microsecond)
	}
	r := row{
		id: e.ID, aggregateType: e.AggregateType, aggregateID: e.AggregateID, eventType: e.Type,
		schemaVersion: int32(e.SchemaVersion), payload: payload, occurredAt: e.OccurredAt,
		tenant: optional(tenant), headers: headers,
	}
	if e.Version > 0 {
		r.version = &e.Version
	}
	if w.opt.Tracer != nil {
		parent, state := w.opt.Tracer.TraceContext(ctx)
		// A trace is not worth an event.
		if unfit(parent, maxTrace) == "" && unfit(state, maxTrace) == "" && parent != "" {
			r.parent, r.state = optional(parent), optional(state)
		}
	}
	return r, nil
}

func (w *Writer) payload(e *Event, fault func(field, text, way string) error) ([]byte, error) {
	var b []byte
	switch p := e.Payload.(type) {
	case nil:
		return nil, fault("Payload", "it is nil", "set it; an event without content has an empty object")
	case []byte:
		b = p
	case json.RawMessage:
		b = p
	default:
		var err error
		if b, err = w.opt.Marshal(p); err != nil {
			return nil, fault("Payload", err.Error(), "set a value that can be marshalled")
		}
	}
	if len(b) > w.opt.MaxBytes {
		err := fault("Payload", fmt.Sprintf("%d bytes are more than %d", len(b), w.opt.MaxBytes),
			"store what is large elsewhere and send a reference, or raise MaxBytes and the broker's limits").(*EventError)
		err.Kind = ErrTooLarge
		return nil, err
	}
	if why := refused(w.opt.Payload, b); why != "" {
		return nil, fault("Payload", why, "the column payload is of type "+w.opt.Payload+": write what it can hold")
	}
	if b == nil {
		b = []byte{} // an empty payload is not NULL
	}
	return b, nil
}

func noTransaction(what string) error {
	return &Error{
		Text: "write events: " + what + " is no transaction: an event that commits by itself can be there without its change",
		Way:  "begin a transaction, make the change and write the event in it", Kind: ErrNoTransaction,
	}
}

// failed says which constraint it was. The server tells a role that may not
// read the table nothing but the constraint's name.
func (w *Writer) failed(n int, err error) error {
	e := missing(fmt.Sprintf("write %d events to %s", n, name(w.table)), err)
	if sqlState(err) == "23505" {
		if strings.HasSuffix(constraint(err), "_pkey") {
			e.Kind, e.Way = ErrIDTaken, "the event was written before: roll back, and see whether its command was carried out"
		} else {
			e.Kind, e.Way = ErrVersionTaken, "roll back, read the aggregate again, and run the command anew"
		}
	}
	return e
}
