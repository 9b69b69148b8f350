package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

func (w *writer) single(ctx context.Context) (int, error) {
	return 1, pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error { return w.write(ctx, tx, w.aggregate(), 1) })
}

// multi has rows of several aggregates.
func (w *writer) multi(ctx context.Context) (n int, err error) {
	err = pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error {
		for _, a := range w.several(1 + w.rand.IntN(5)) {
			rows := 1 + w.rand.IntN(3)
			n += rows
			if err := w.write(ctx, tx, a, rows); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// savepoints nests some and takes parts of them back.
func (w *writer) savepoints(ctx context.Context) (n int, err error) {
	keys := w.several(6)
	rows := 1 + w.rand.IntN(3)
	if w.rand.IntN(20) == 0 {
		rows = 300
	}
	err = pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error {
		kept, err := w.nested(ctx, tx, keys, rows, 0)
		n = kept
		return err
	})
	return n, err
}

var errTakeBack = errors.New("take the savepoint back")

func (w *writer) nested(ctx context.Context, tx pgx.Tx, keys []aggregate, rows, depth int) (kept int, err error) {
	if len(keys) == 0 {
		return 0, nil
	}
	if err := w.write(ctx, tx, keys[0], rows); err != nil {
		return 0, err
	}
	var inner int
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		var err error
		if inner, err = w.nested(ctx, tx, keys[1:], rows, depth+1); err != nil {
			return err
		}
		if w.rand.IntN(3) == 0 {
			return errTakeBack
		}
		return nil
	})
	if errors.Is(err, errTakeBack) {
		inner, err = 0, nil
		// The same aggregate again behind the rolled-back part.
		if len(keys) > 1 && w.rand.IntN(2) == 0 {
			err, inner = w.write(ctx, tx, keys[1], 1), 1
		}
	}
	return rows + inner, err
}

func (w *writer) copyRows(ctx context.Context) (n int, err error) {
	err = pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error {
		var rows [][]any
		for _, a := range w.several(1 + w.rand.IntN(4)) {
			count := 1 + w.rand.IntN(40)
			first, err := versions(ctx, tx, a, count)
			if err != nil {
				return err
			}
			for v := first; v < first+count; v++ {
				rows = append(rows, []any{uuid.New(), a.kind, a.id, "Changed", w.payload(v), time.Now()})
			}
		}
		n = len(rows)
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"public", "outbox_events"},
			[]string{"event_id", "aggregate_type", "aggregate_id", "event_type", "payload", "occurred_at"}, pgx.CopyFromRows(rows))
		return err
	})
	return n, err
}

func (w *writer) twoPhase(ctx context.Context) (int, error) {
	n := 1 + w.rand.IntN(4)
	gid := fmt.Sprintf("%s-%s", w.name, uuid.NewString())
	tx, err := w.db.Begin(ctx)
	if err != nil {
		return 0, err
	}
	for _, a := range w.several(2) {
		if err := w.write(ctx, tx, a, n); err != nil {
			return 0, errors.Join(err, tx.Rollback(ctx))
		}
	}
	if _, err := tx.Exec(ctx, `prepare transaction '`+gid+`'`); err != nil {
		return 0, errors.Join(err, tx.Rollback(ctx))
	}
	_ = tx.Rollback(ctx) // there is none any more; this is for the client's bookkeeping
	pause(ctx, between(w.rand, 0, 200*time.Millisecond))
	return 0, w.decide(ctx, gid)
}

var errAbort = errors.New("roll back")

func (w *writer) abort(ctx context.Context) (int, error) {
	return 0, pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error {
		for _, a := range w.several(3) {
			if err := w.write(ctx, tx, a, 1+w.rand.IntN(20)); err != nil {
				return err
			}
		}
		return errAbort
	})
}

// slow is open for a while, so that others commit in between.
func (w *writer) slow(ctx context.Context) (n int, err error) {
	keys := w.several(3)
	err = pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error {
		for _, a := range keys {
			n++
			if err := w.write(ctx, tx, a, 1); err != nil {
				return err
			}
			pause(ctx, between(w.rand, 50*time.Millisecond, 500*time.Millisecond))
		}
		return nil
	})
	return n, err
}

// ddl changes the outbox table while it is written to.
func (w *writer) ddl(ctx context.Context) (int, error) {
	return 0, pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local lock_timeout = '150ms'`); err != nil {
			return err
		}
		sql := `alter table public.outbox_events add column if not exists note text default 'none'`
		if w.rand.IntN(2) == 0 {
			sql = `alter table public.outbox_events drop column if exists note`
		}
		_, err := tx.Exec(ctx, sql)
		return err
	})
}

// foreign is traffic that the relay must not be held up by.
func (w *writer) foreign(ctx context.Context) (int, error) {
	_, err := w.db.Exec(ctx, `insert into foreign_traffic (pad) select repeat('x', 200) from generate_series(1, $1::int)`, 1+w.rand.IntN(2000))
	if err == nil && w.rand.IntN(4) == 0 {
		_, err = w.db.Exec(ctx, `delete from foreign_traffic`)
	}
	return 0, err
}

// disconnect dies in the middle of a transaction.
func (w *writer) disconnect(ctx context.Context) (int, error) {
	tx, err := w.db.Begin(ctx)
	if err != nil {
		return 0, err
	}
	err = w.write(ctx, tx, w.aggregate(), 5)
	return 0, errors.Join(err, w.db.PgConn().Conn().Close())
}

// largeOne is larger than the server's memory for a transaction may be.
func (w *writer) largeOne(ctx context.Context) (n int, err error) {
	const each = 5000
	keys := w.several(4 + w.rand.IntN(3))
	w.writers.bench.note("a large transaction of %d rows begins", each*len(keys))
	err = pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error {
		for _, a := range keys {
			first, err := versions(ctx, tx, a, each)
			if err != nil {
				return err
			}
			n += each
			_, err = tx.Exec(ctx, `insert into public.outbox_events (event_id, aggregate_type, aggregate_id, event_type, payload, occurred_at)
				select gen_random_uuid(), $1, $2, 'Changed', jsonb_build_object('v', v, 'pad', repeat('x', 100)), now()
				from generate_series($3::int, $4::int) v`, a.kind, a.id, first, first+each-1)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}
