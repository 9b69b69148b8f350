package outboxtest_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/outbox"
	"github.com/walpost/walpost/outbox/outboxtest"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func open(t *testing.T, tables outbox.SchemaOptions) *outboxtest.Database {
	t.Helper()
	return outboxtest.Open(t, outboxtest.Options{DSN: testkit.Postgres(t, 0).DSN("postgres"), Tables: tables})
}

// write writes events in a transaction that is committed.
func write(t *testing.T, db *outboxtest.Database, w *outbox.Writer, events ...*outbox.Event) {
	t.Helper()
	err := outbox.RunTx(t.Context(), db, w, func(_ pgx.Tx, b *outbox.Buffer) error {
		b.Add(events...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func writer(t *testing.T, o outbox.WriterOptions) *outbox.Writer {
	t.Helper()
	w, err := outbox.NewWriter(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// failing is a test that may fail without failing the one around it.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}

func (f *failing) Logf(string, ...any) {}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure runs f and gives what it said when it failed.
func failure(t *testing.T, f func(testing.TB)) string {
	t.Helper()
	tb := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(tb)
	}()
	<-done
	return tb.said
}

func wantFailure(t *testing.T, part string, f func(testing.TB)) {
	t.Helper()
	if said := failure(t, f); said == "" || !strings.Contains(said, part) {
		t.Errorf("it said %q, want it to fail with %q", said, part)
	}
}

// moves are the events of some aggregates, interleaved, as a service writes them.
func moves(t *testing.T, db *outboxtest.Database, aggregates, versions int, versioned bool) []outbox.Message {
	t.Helper()
	w := writer(t, outbox.WriterOptions{})
	for v := range versions {
		for a := range aggregates {
			e := &outbox.Event{AggregateType: "account", AggregateID: fmt.Sprint("a", a), Type: "Moved", Payload: map[string]int{"amount": 100*a + v}}
			if versioned {
				e.Version = int64(v + 1)
			}
			write(t, db, w, e)
		}
	}
	return outboxtest.Messages(t, db)
}

// ledger is a handler that is right, and its check.
func ledger(t *testing.T, db *outboxtest.Database) (outbox.Handler, func(want int) func()) {
	t.Helper()
	if err := db.Exec(t.Context(), `create table ledger (n bigint generated always as identity, account text, event_id uuid, version bigint)`); err != nil {
		t.Fatal(err)
	}
	h := func(ctx context.Context, tx pgx.Tx, m outbox.Message) error {
		_, err := tx.Exec(ctx, `insert into ledger (account, event_id, version) values ($1, $2::uuid, $3)`, m.AggregateID, m.ID.String(), m.Version)
		return err
	}
	return h, func(want int) func() {
		return func() {
			var rows, events, disorder int
			err := db.QueryRow(t.Context(), `select count(*), count(distinct event_id), count(*) filter (where before > version)
				from (select *, lag(version) over (partition by account order by n) as before from ledger) x`).Scan(&rows, &events, &disorder)
			if err != nil || rows != want || events != want || disorder != 0 {
				t.Errorf("%d rows of %d events, %d out of order (%v); want %d of each", rows, events, disorder, err, want)
			}
		}
	}
}

func consumer(t *testing.T, db outbox.Beginner, o outbox.ConsumerOptions) *outbox.Consumer {
	t.Helper()
	if o.Name == "" {
		o.Name = "billing"
	}
	c, err := outbox.NewConsumer(db, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
