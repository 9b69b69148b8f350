package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// orderScenarios are about transactions that are in flight together.
func orderScenarios() []scenario {
	return []scenario{
		{
			name: "copy-crash", free: []string{"free"}, held: []string{"held"},
			what: "COPY rows share an LSN: the relay is killed when the first half of the transaction is acked and the second is not",
			run:  copyCrash,
		},
		{
			name: "savepoint", free: []string{"a"}, settings: map[string]string{"logical_decoding_work_mem": "64kB"},
			what: "a large transaction, spilled to disk, in which savepoints are rolled back",
			run:  savepoint,
		},
		{
			name: "ack-order", free: []string{"a", "c"}, held: []string{"b"},
			what: "interleaved transactions whose acks come out of order, the oldest not at all; then the relay is killed",
			run:  ackOrder,
		},
	}
}

func copyCrash(ctx context.Context, r *rig) error {
	// Not at the end of a page, nor of the 1000 rows that COPY hands on at once:
	// there the LSN changes.
	const first, rest = 730, 1270
	events := append(r.rows("free", first, 10), r.rows("held", rest, 10)...)
	return steps(
		func() error { return r.start(ctx) },
		func() error {
			_, err := r.commit(ctx, events, func(tx pgx.Tx) error {
				_, err := tx.CopyFrom(ctx, pgx.Identifier{"public", "outboxevent"},
					[]string{"id", "aggregatetype", "aggregateid", "type", "payload"},
					pgx.CopyFromSlice(len(events), func(i int) ([]any, error) {
						return []any{events[i].id, events[i].kind, events[i].key, "Made", []byte(`{"n":1}`)}, nil
					}))
				return err
			})
			return err
		},
		func() error { return r.awaitCount(ctx, "free", first) },
		func() error { return r.beat(ctx) },
		func() error { r.notYet("half of the transaction acked", r.ledger.all()[first:]); return nil },
		func() error { return r.crash(ctx) },
		func() error { return r.release(ctx, "held") },
		func() error { return r.start(ctx) },
	)
}

func savepoint(ctx context.Context, r *rig) error {
	kept, undone := r.rows("a", 2000, 20), r.rows("a", 1500, 20)
	return steps(
		func() error { return r.start(ctx) },
		func() error {
			_, err := r.commit(ctx, kept, func(tx pgx.Tx) error {
				for i := range 5 {
					if err := insert(ctx, tx, kept[i*400:i*400+200]...); err != nil {
						return err
					}
					inner, err := tx.Begin(ctx) // a savepoint
					if err != nil {
						return err
					}
					nested, err := inner.Begin(ctx)
					if err != nil {
						return err
					}
					err = steps(
						func() error { return insert(ctx, nested, undone[i*300:i*300+200]...) },
						func() error { return nested.Commit(ctx) }, // undone all the same, below
						func() error { return insert(ctx, inner, undone[i*300+200:i*300+300]...) },
						func() error { return inner.Rollback(ctx) },
						func() error { return insert(ctx, tx, kept[i*400+200:i*400+400]...) },
					)
					if err != nil {
						return err
					}
				}
				return nil
			})
			return err
		},
	)
}

// ackOrder has three transactions a round: rows are written in the order a, b,
// c, and commits are in the order b, c, a.
func ackOrder(ctx context.Context, r *rig) error {
	const rounds = 10
	return steps(
		func() error { return r.start(ctx) },
		func() error {
			for range rounds {
				if err := interleave(ctx, r, []string{"a", "b", "c"}, []int{1, 2, 0}); err != nil {
					return err
				}
			}
			return nil
		},
		func() error { return r.awaitCount(ctx, "a", rounds*2) },
		func() error { return r.awaitCount(ctx, "c", rounds*2) },
		func() error { return r.beat(ctx) },
		func() error { r.notYet("the oldest transaction unacked", r.ledger.all()); return nil },
		func() error { return r.crash(ctx) },
		func() error { return r.release(ctx, "b") },
		func() error { return r.start(ctx) },
	)
}

// interleave writes to transactions in turn, and commits them in another order.
func interleave(ctx context.Context, r *rig, names []string, order []int) error {
	conns, txs := make([]*pgx.Conn, len(names)), make([]pgx.Tx, len(names))
	events := make([][]event, len(names))
	for i, name := range names {
		var err error
		if conns[i], err = r.connect(ctx); err != nil {
			return err
		}
		defer conns[i].Close(ctx)
		if txs[i], err = conns[i].Begin(ctx); err != nil {
			return err
		}
		events[i] = r.rows(name, 2, 2)
	}
	for turn := range 2 {
		for i := range names {
			if err := insert(ctx, txs[i], events[i][turn]); err != nil {
				return fmt.Errorf("write to an interleaved transaction: %w", err)
			}
		}
	}
	for _, i := range order {
		if err := txs[i].Commit(ctx); err != nil {
			return err
		}
		if _, err := r.wrote(ctx, conns[i], events[i]); err != nil {
			return err
		}
	}
	return nil
}
