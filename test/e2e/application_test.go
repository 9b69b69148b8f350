package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/walpost/walpost/internal/testkit"
	service "github.com/walpost/walpost/outbox"
)

const (
	applicationOrders  = 40
	applicationChanges = 2_000
)

// application is a service that writes on an outbox, and what its consumers did.
type application struct {
	*outbox
	pool   *pgxpool.Pool
	writer *service.Writer
	events atomic.Int64 // committed
}

func newApplication(t *testing.T) *application {
	t.Helper()
	a := &application{outbox: newOutbox(t, kafkaMajor)}
	a.createTopic("order")
	var err error
	a.pool, err = pgxpool.New(testkit.Context(t), a.dsn)
	need(t, err)
	t.Cleanup(a.pool.Close)
	// The outbox is that of "walpost init", which is taken over.
	_, err = service.Migrate(testkit.Context(t), a.pool, service.MigrateOptions{})
	need(t, err)
	a.exec(`create table orders (id text primary key, version bigint not null default 0)`)
	a.exec(`insert into orders (id) select 'order-' || n from generate_series(1, $1::int) n`, applicationOrders)
	a.exec(`create table effects (n bigint generated always as identity primary key, event_id uuid not null,
		aggregate_id text not null, version bigint not null)`)
	a.writer, err = service.NewWriter(service.WriterOptions{RequireVersion: true})
	need(t, err)
	return a
}

// errRolledBack ends a transaction that the service thinks better of.
var errRolledBack = fmt.Errorf("rolled back on purpose")

// change makes one to three events of an order, and every eighth time takes them
// back.
func (a *application) change(ctx context.Context, order string) error {
	count := rand.N(int64(3)) + 1
	err := service.RunTx(ctx, a.pool, a.writer, func(tx pgx.Tx, events *service.Buffer) error {
		var version int64
		err := tx.QueryRow(ctx, `update orders set version = version + $2 where id = $1 returning version`, order, count).Scan(&version)
		for v := version - count + 1; v <= version; v++ {
			events.Add(&service.Event{AggregateType: "order", AggregateID: order, Version: v, Type: "OrderMoved", Payload: map[string]int64{"version": v}})
		}
		if err == nil && rand.N(8) == 0 {
			// Written, so that there is something to take back.
			if err = a.writer.Write(ctx, tx, &service.Event{AggregateType: "order", AggregateID: order, Version: version + 1, Type: "Never", Payload: struct{}{}}); err == nil {
				err = errRolledBack
			}
		}
		return err
	})
	if err == errRolledBack {
		return nil
	}
	if err == nil {
		a.events.Add(count)
	}
	return err
}

// work lets the service change orders, several at a time.
func (a *application) work(ctx context.Context) error {
	var group errgroup.Group
	for range 4 {
		group.Go(func() error {
			for range applicationChanges / 4 {
				if err := a.change(ctx, fmt.Sprintf("order-%d", rand.N(applicationOrders)+1)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// awaitEffects waits until there are so many.
func (a *application) awaitEffects(want int64) {
	a.t.Helper()
	testkit.Await(a.t, fmt.Sprintf("%d effects", want), func() bool {
		var n int64
		err := a.db.QueryRow(a.t.Context(), `select count(*) from effects`).Scan(&n)
		return err == nil && n >= want
	})
}

// TestApplication: what a service writes has its effect in another one, once and
// in the order of each aggregate, although the relay and the consumers are killed
// in the middle.
func TestApplication(t *testing.T) {
	t.Parallel()
	a := newApplication(t)
	relay := a.start()
	relay.awaitReady()
	first, second := a.consume(), a.consume()

	written := make(chan error, 1) // one value, by work
	go func() { written <- a.work(testkit.Context(t)) }()

	a.awaitEffects(200)
	first.kill()
	third := a.consume()
	a.awaitEffects(600)
	relay.kill()
	relay = a.start()
	need(t, <-written)
	total := a.events.Load()
	a.awaitEffects(total / 2)
	second.kill()
	relay.kill()
	relay = a.start()
	fourth := a.consume()

	a.awaitEffects(total)
	a.awaitConfirmed()
	relay.stop()
	third.stop()
	fourth.stop()
	a.check(total)
}

// check compares the effects with what is committed.
func (a *application) check(total int64) {
	a.t.Helper()
	type entry struct {
		ID, Order string
		Version   int64
	}
	list := func(sql string) map[string][]entry {
		rows, err := a.db.Query(a.t.Context(), sql)
		need(a.t, err)
		entries, err := pgx.CollectRows(rows, pgx.RowToStructByPos[entry])
		need(a.t, err)
		by := map[string][]entry{}
		for _, e := range entries {
			by[e.Order] = append(by[e.Order], e)
		}
		return by
	}
	want := list(`select event_id::text, aggregate_id, aggregate_version from outbox_events order by seq`)
	got := list(`select event_id::text, aggregate_id, version from effects order by n`)
	events := int64(0)
	for order, w := range want {
		events += int64(len(w))
		for i, e := range w {
			if e.Version != int64(i)+1 {
				a.t.Fatalf("the outbox has version %d of %s at place %d", e.Version, order, i+1)
			}
		}
		if !slices.Equal(got[order], w) {
			a.t.Errorf("%s: %d effects, %d events: not the same, once each and in order\ngot  %v\nwant %v", order, len(got[order]), len(w), got[order], w)
		}
		delete(got, order)
	}
	if len(got) > 0 {
		a.t.Errorf("effects of what was not committed: %v", got)
	}
	if events != total {
		a.t.Errorf("the outbox holds %d events, and %d were committed", events, total)
	}
	var parked int
	need(a.t, a.db.QueryRow(a.t.Context(), `select count(*) from parked_events where resolved_at is null`).Scan(&parked))
	if parked > 0 {
		a.t.Errorf("%d events are still parked", parked)
	}
}
