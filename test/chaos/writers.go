package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const aggregatesPerType = 40

// writers write events for as long as they run, in all the ways that
// applications do. They need not know what became of a transaction whose commit
// was not answered: the judge asks PostgreSQL.
type writers struct {
	bench  *bench
	events atomic.Int64 // committed, as far as the writers know
	runs   uint64

	stopping context.CancelFunc
	done     sync.WaitGroup
	large    atomic.Int64 // when a large transaction may come next, in Unix milliseconds
}

func newWriters(b *bench) *writers { return &writers{bench: b} }

func (w *writers) start(ctx context.Context) {
	ctx, w.stopping = context.WithCancel(ctx)
	w.runs++
	for n := range w.bench.opt.writers {
		one := &writer{
			writers: w, name: fmt.Sprintf("w%d", n),
			rand: rand.New(rand.NewPCG(w.bench.opt.seed, w.runs<<32|uint64(n)<<16|1<<63)),
		}
		w.done.Go(func() { one.run(ctx) })
	}
}

// stop returns when nothing of theirs is open any more.
func (w *writers) stop() {
	if w.stopping == nil {
		return
	}
	w.stopping()
	w.done.Wait()
	w.stopping = nil
}

// writer is one connection.
type writer struct {
	writers *writers
	name    string
	rand    *rand.Rand
	db      *pgx.Conn
	counter int
}

func (w *writer) run(ctx context.Context) {
	for ctx.Err() == nil {
		w.session(ctx)
		pause(ctx, 50*time.Millisecond)
	}
	// Nothing prepared may stay: it would hold its locks, and its commit would
	// come after the judge has looked.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	if err := w.writers.bench.servers.query(closing, func(db *pgx.Conn) error {
		w.db = db
		return w.resolve(closing)
	}); err != nil {
		w.writers.bench.complain("writer %s cannot clean up: %v", w.name, err)
	}
}

func (w *writer) session(ctx context.Context) {
	connect, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	db, err := pgx.Connect(connect, w.writers.bench.servers.pg.SocketDSN(database))
	if err != nil {
		return
	}
	w.db = db
	defer func() { _ = db.Close(context.WithoutCancel(connect)) }()
	for ctx.Err() == nil && !db.IsClosed() {
		call, cancel := context.WithTimeout(ctx, 60*time.Second)
		if w.resolve(call) == nil {
			n, err := w.operation()(call)
			if err == nil {
				w.writers.events.Add(int64(n))
			}
		}
		cancel()
		pause(ctx, between(w.rand, 5*time.Millisecond, 60*time.Millisecond))
	}
}

// resolve decides what a crash has left prepared.
func (w *writer) resolve(ctx context.Context) error {
	rows, err := w.db.Query(ctx, `select gid from pg_prepared_xacts where gid like $1`, w.name+"-%")
	if err != nil {
		return err
	}
	gids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, gid := range gids {
		if err := w.decide(ctx, gid); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) decide(ctx context.Context, gid string) error {
	_, err := w.db.Exec(ctx, []string{"commit", "commit", "rollback"}[w.rand.IntN(3)]+` prepared '`+gid+`'`)
	return err
}

// operation draws one; it returns how many events were committed.
func (w *writer) operation() func(context.Context) (int, error) {
	n := w.rand.IntN(100)
	switch {
	case n < 30:
		return w.single
	case n < 52:
		return w.multi
	case n < 64:
		return w.savepoints
	case n < 71:
		return w.copyRows
	case n < 78:
		return w.twoPhase
	case n < 84:
		return w.abort
	case n < 88:
		return w.slow
	case n < 90:
		return w.ddl
	case n < 96:
		return w.foreign
	case n < 97:
		return w.disconnect
	}
	now := time.Now().UnixMilli()
	if next := w.writers.large.Load(); now < next || !w.writers.large.CompareAndSwap(next, now+30_000) {
		return w.multi
	}
	return w.largeOne
}

// aggregate is an ordering key.
type aggregate struct{ kind, id string }

func (w *writer) aggregate() aggregate {
	return aggregate{aggregateTypes[w.rand.IntN(len(aggregateTypes))], fmt.Sprint(1 + w.rand.IntN(aggregatesPerType))}
}

// several distinct aggregates, sorted: locks are taken in one order.
func (w *writer) several(n int) []aggregate {
	found := map[aggregate]bool{}
	for range n {
		found[w.aggregate()] = true
	}
	var list []aggregate
	for a := range found {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b aggregate) int {
		if a.kind != b.kind {
			return cmpStrings(a.kind, b.kind)
		}
		return cmpStrings(a.id, b.id)
	})
	return list
}

func cmpStrings(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

const insertEvent = `insert into public.outbox_events (event_id, aggregate_type, aggregate_id, event_type, payload, occurred_at)
	values ($1, $2, $3, 'Changed', $4, now())`

// versions locks an aggregate until the end of the transaction and takes the
// next n versions; it returns the first one.
func versions(ctx context.Context, tx pgx.Tx, a aggregate, n int) (first int, err error) {
	err = tx.QueryRow(ctx, `update aggregates set version = version + $3 where type = $1 and id = $2 returning version - $3 + 1`,
		a.kind, a.id, n).Scan(&first)
	return first, err
}

func (w *writer) payload(version int) string {
	w.counter++
	return fmt.Sprintf(`{"v": %d, "w": "%s-%d"}`, version, w.name, w.counter)
}

// write writes n events of one aggregate.
func (w *writer) write(ctx context.Context, tx pgx.Tx, a aggregate, n int) error {
	first, err := versions(ctx, tx, a, n)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	for v := first; v < first+n; v++ {
		batch.Queue(insertEvent, uuid.NewString(), a.kind, a.id, w.payload(v))
	}
	return tx.SendBatch(ctx, batch).Close()
}
