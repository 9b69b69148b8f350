package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/testkit"
)

func event(aggregate string, version int64) *Event {
	return &Event{AggregateType: "order", AggregateID: aggregate, Version: version, Type: "moved", Payload: map[string]int{"n": 1}}
}

// writers are the ways to write; sqlTx adapts database/sql.
func writers(w *Writer) map[string]func(context.Context, pgx.Tx, ...*Event) error {
	return map[string]func(context.Context, pgx.Tx, ...*Event) error{
		"Write":    w.Write,
		"WriteSQL": func(ctx context.Context, tx pgx.Tx, e ...*Event) error { return w.WriteSQL(ctx, sqlTx{tx}, e...) },
		"Copy": func(ctx context.Context, tx pgx.Tx, e ...*Event) error {
			_, err := w.Copy(ctx, tx, slices.Values(e))
			return err
		},
	}
}

// invariantO1: an event is there exactly if its transaction is committed.
func invariantO1(b *bench, write func(context.Context, pgx.Tx, ...*Event) error) error {
	committed, rolledBack, savepoint := event("a", 1), event("a", 2), event("a", 3)
	if err := b.in(func(tx pgx.Tx) error {
		if err := write(b.ctx, tx, committed); err != nil {
			return err
		}
		inner, err := tx.Begin(b.ctx)
		if err != nil {
			return err
		}
		if err := write(b.ctx, inner, savepoint); err != nil {
			return err
		}
		return inner.Rollback(b.ctx)
	}); err != nil {
		return err
	}
	tx, err := b.pool.Begin(b.ctx)
	if err != nil {
		return err
	}
	if err := write(b.ctx, tx, rolledBack); err != nil {
		return err
	}
	killed, err := b.pool.Begin(b.ctx)
	if err != nil {
		return err
	}
	if err := write(b.ctx, killed, event("a", 4)); err != nil {
		return err
	}
	_ = killed.Conn().PgConn().Conn().Close() // as if the service were killed
	rollback(b.ctx, killed)
	rollback(b.ctx, tx)
	if got, want := b.text(`select string_agg(event_id::text, ' ' order by seq) from outbox_events`), committed.ID.String(); got != want {
		return fmt.Errorf("the outbox holds %s, want %s", got, want)
	}
	return nil
}

func TestO1AnEventExistsIffItsTransactionCommitted(t *testing.T) {
	t.Parallel()
	for name := range writers(new(Writer)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			if err := invariantO1(b, writers(b.writer(WriterOptions{}))[name]); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("mutant: writes beside the transaction", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		w := b.writer(WriterOptions{})
		beside := func(ctx context.Context, _ pgx.Tx, e ...*Event) error {
			return b.in(func(tx pgx.Tx) error { return w.Write(ctx, tx, e...) })
		}
		if invariantO1(b, beside) == nil {
			t.Error("not noticed")
		}
	})
}

// rejected are events that cannot be written, by the field at fault.
func rejected() map[string]*Event {
	with := func(f func(*Event)) *Event {
		e := event("a", 1)
		f(e)
		return e
	}
	raw := func(s string) *Event { return with(func(e *Event) { e.Payload = []byte(s) }) }
	return map[string]*Event{
		"Event":                       nil,
		"AggregateType":               with(func(e *Event) { e.AggregateType = "" }),
		"AggregateType characters":    with(func(e *Event) { e.AggregateType = "or der" }),
		"AggregateType length":        with(func(e *Event) { e.AggregateType = strings.Repeat("a", 201) }),
		"AggregateID":                 with(func(e *Event) { e.AggregateID = "" }),
		"AggregateID NUL":             with(func(e *Event) { e.AggregateID = "a\x00" }),
		"AggregateID UTF-8":           with(func(e *Event) { e.AggregateID = "\xff" }),
		"AggregateID length":          with(func(e *Event) { e.AggregateID = strings.Repeat("a", 1025) }),
		"Type":                        with(func(e *Event) { e.Type = "" }),
		"Version":                     with(func(e *Event) { e.Version = -1 }),
		"SchemaVersion":               with(func(e *Event) { e.SchemaVersion = 1 << 40 }),
		"OccurredAt":                  with(func(e *Event) { e.OccurredAt = time.Date(300000, 1, 1, 0, 0, 0, 0, time.UTC) }),
		"TenantID":                    with(func(e *Event) { e.TenantID = "\x00" }),
		"Headers reserved":            with(func(e *Event) { e.Headers = map[string]string{"walpost-x": "1"} }),
		"Headers id":                  with(func(e *Event) { e.Headers = map[string]string{"id": "1"} }),
		"Headers NUL":                 with(func(e *Event) { e.Headers = map[string]string{"a": "\x00"} }),
		"Headers size":                with(func(e *Event) { e.Headers = map[string]string{"a": strings.Repeat("x", maxHeaders)} }),
		"Payload nil":                 with(func(e *Event) { e.Payload = nil }),
		"Payload marshal":             with(func(e *Event) { e.Payload = make(chan int) }),
		"Payload empty":               raw(""),
		"Payload no JSON":             raw(`{"a":`),
		"Payload UTF-8":               raw("\"\xff\""),
		"Payload escaped NUL":         raw(`{"a":"\u0000"}`),
		"Payload lone high surrogate": raw(`"\ud800"`),
		"Payload lone low surrogate":  raw(`["\udc00"]`),
		"Payload two high surrogates": raw(`"\ud800\ud800"`),
		"Payload large number":        raw(`[1e200000]`),
		"Payload small number":        raw(`1e-20000`),
		"Payload depth":               raw(strings.Repeat("[", 2000) + strings.Repeat("]", 2000)),
		"Payload size":                raw(`"` + strings.Repeat("x", 1<<20) + `"`),
	}
}

// invariantO2: a rejected event leaves the transaction usable.
func invariantO2(b *bench, write func(context.Context, pgx.Tx, ...*Event) error) error {
	for name, bad := range rejected() {
		err := b.in(func(tx pgx.Tx) error {
			if _, err := tx.Exec(b.ctx, `insert into effects (consumer) values ($1)`, name); err != nil {
				return err
			}
			err := write(b.ctx, tx, event("good", 0), bad)
			if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLarge) {
				return fmt.Errorf("got error %v", err)
			}
			if e, ok := errors.AsType[*EventError](err); !ok || e.Index != 1 || e.Hint() == "" || !strings.HasPrefix(name, strings.Split(e.Field, "[")[0]) {
				return fmt.Errorf("the error does not tell the event, its field and what to do: %#v", err)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if got, want := b.text(`select count(*)::text from effects`), fmt.Sprint(len(rejected())); got != want {
		return fmt.Errorf("%s changes are there, want %s", got, want)
	}
	if got := b.text(`select count(*)::text from outbox_events`); got != "0" {
		return fmt.Errorf("%s events are there, although another one of each call was rejected", got)
	}
	return nil
}

func TestO2ARejectedEventLeavesTheTransactionUsable(t *testing.T) {
	t.Parallel()
	for name := range writers(new(Writer)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			if err := invariantO2(b, writers(b.writer(WriterOptions{}))[name]); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("mutant: lets the server find out", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		unchecked := func(ctx context.Context, tx pgx.Tx, e ...*Event) error {
			for i, e := range e {
				if e == nil {
					return (*Event)(nil).fault(i)("Event", "nil", "way")
				}
				payload, _ := json.Marshal(e.Payload)
				if raw, ok := e.Payload.([]byte); ok {
					payload = raw
				}
				if _, err := tx.Exec(ctx, `insert into outbox_events (event_id, aggregate_type, aggregate_id, event_type, payload, occurred_at)
values (gen_random_uuid(), $1, $2, $3, $4::text::jsonb, now())`, e.AggregateType, e.AggregateID, e.Type, string(payload)); err != nil {
					return fmt.Errorf("%w: %w", ErrInvalid, err)
				}
			}
			return nil
		}
		if invariantO2(b, unchecked) == nil {
			t.Error("not noticed")
		}
	})
}

// What the validation lets pass, the server takes.
func TestAtTheLimits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.writer(WriterOptions{MaxBytes: 1 << 20})
	for _, payload := range []string{
		`"\ud83d\ude00"`, `"\\u0000"`, `{"\\":"\""}`, `[1e131071, 1e-16383, -0.0, 0]`, strings.Repeat("9", 131072),
		strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth), ` {} `, "null",
	} {
		e := event("limits", 0)
		e.Payload, e.AggregateType, e.Type = []byte(payload), strings.Repeat("a", 200), strings.Repeat("ä", 127)
		e.AggregateID = strings.Repeat("x", 1024)
		if err := b.in(func(tx pgx.Tx) error { return w.Write(b.ctx, tx, e) }); err != nil {
			t.Errorf("%.40s: %v", payload, err)
		}
	}
}

func TestWriteFillsAndKeeps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.writer(WriterOptions{Tracer: trace{}, Tenant: func(context.Context) string { return "acme" }})
	w.now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC) }
	for name, write := range writers(w) {
		e := event(name, 7)
		e.Headers = map[string]string{"b": "ü"}
		for range 2 { // the first attempt is rolled back
			b.in(func(tx pgx.Tx) error { write(b.ctx, tx, e); return errors.New("no") })
		}
		id := e.ID
		if id.Version() != 7 || e.SchemaVersion != 1 {
			t.Errorf("%s: filled %+v", name, e)
		}
		if err := b.in(func(tx pgx.Tx) error { return write(b.ctx, tx, e) }); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b.expect(id.String()+` 7 1 {"n": 1} 2026-01-02 03:04:05.000006+00 acme 00-aa-bb-01 k=v {"b": "ü"}`,
			`select concat_ws(' ', event_id, aggregate_version, schema_version, payload, occurred_at, tenant_id, traceparent, tracestate, headers)
from outbox_events where aggregate_id = $1`, name)
	}
}

type trace struct{}

func (trace) TraceContext(context.Context) (string, string) { return "00-aa-bb-01", "k=v" }

func TestManyEventsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, write := range writers(b.writer(WriterOptions{})) {
		events := make([]*Event, 2500)
		for i := range events {
			events[i] = event(name, int64(i+1))
		}
		if err := b.in(func(tx pgx.Tx) error { return write(b.ctx, tx, events...) }); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b.expect("2500 true", `select concat_ws(' ', count(*), bool_and(aggregate_version = n)::text)
from (select aggregate_version, row_number() over (order by seq) as n from outbox_events where aggregate_id = $1) x`, name)
	}
}

func TestWriteRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.writer(WriterOptions{RequireVersion: true})
	first := event("a", 1)
	if err := b.in(func(tx pgx.Tx) error { return w.Write(b.ctx, tx, first) }); err != nil {
		t.Fatal(err)
	}
	again := *first
	again.Version = 2
	twice := event("t", 1)
	for name, c := range map[string]struct {
		events []*Event
		want   error
	}{
		"same version": {[]*Event{event("a", 1)}, ErrVersionTaken},
		"same id":      {[]*Event{&again}, ErrIDTaken},
		"no version":   {[]*Event{event("a", 0)}, ErrInvalid},
	} {
		for way, write := range writers(w) {
			if err := b.in(func(tx pgx.Tx) error { return write(b.ctx, tx, c.events...) }); !errors.Is(err, c.want) {
				t.Errorf("%s, %s: got %v, want %v", name, way, err, c.want)
			}
		}
	}
	if err := b.in(func(tx pgx.Tx) error { return w.Write(b.ctx, tx, twice, twice) }); !errors.Is(err, ErrInvalid) {
		t.Errorf("the same event twice: %v", err)
	}
	for name, tx := range notTransactions(b) {
		if err := w.WriteSQL(b.ctx, tx, event("x", 1)); !errors.Is(err, ErrNoTransaction) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, err := range []error{w.Write(b.ctx, nil), func() error { _, err := w.Copy(b.ctx, nil, nil); return err }()} {
		if !errors.Is(err, ErrNoTransaction) {
			t.Errorf("nil: %v", err)
		}
	}
}

// A role with INSERT and nothing else writes, also with row security.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	b := setup(t)
	role := testkit.Unique("writer")
	quoted := pgx.Identifier{role}.Sanitize()
	b.exec("create role " + quoted + " login")
	t.Cleanup(func() {
		ctx := context.Background()
		conn := must(pgx.Connect(ctx, b.dsn))
		defer conn.Close(ctx)
		for _, sql := range []string{"drop owned by " + quoted, "drop role " + quoted} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				t.Error(err)
			}
		}
	})
	b.exec("grant insert on outbox_events to " + quoted)
	database := b.text("select current_database()::text")
	p := newPool(t, b.pg.DSNAs(database, role, ""))
	w := b.writer(WriterOptions{})
	for _, secured := range []bool{false, true} {
		if secured {
			b.exec("alter table outbox_events enable row level security")
			b.exec("create policy p on outbox_events for insert to " + quoted + " with check (true)")
		}
		for name, write := range writers(w) {
			tx := must(p.Begin(b.ctx))
			if err := write(b.ctx, tx, event(name, 0), event(name, 0)); err != nil {
				t.Errorf("%s, row security %v: %v", name, secured, err)
			}
			if err := tx.Commit(b.ctx); err != nil {
				t.Error(err)
			}
			tx = must(p.Begin(b.ctx))
			if err := write(b.ctx, tx, event("v", 1), event("v", 1)); !errors.Is(err, ErrVersionTaken) {
				t.Errorf("%s, row security %v: %v", name, secured, err)
			}
			rollback(b.ctx, tx)
		}
	}
	b.expect("12", `select count(*)::text from outbox_events`)
}
