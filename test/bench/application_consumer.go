package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/outbox"
)

// consumerBench holds the consumers that are compared: three that differ in how
// they know an event again.
type consumerBench struct {
	conn              *pgx.Conn
	id, both, version *outbox.Consumer
}

func newConsumerBench(conn *pgx.Conn) (*consumerBench, error) {
	b := &consumerBench{conn: conn}
	for _, c := range []struct {
		to    **outbox.Consumer
		name  string
		dedup outbox.DedupPolicy
	}{{&b.id, "id", outbox.ByID}, {&b.both, "both", outbox.ByBoth}, {&b.version, "version", outbox.ByVersion}} {
		var err error
		if *c.to, err = outbox.NewConsumer(conn, outbox.ConsumerOptions{Name: c.name, Dedup: c.dedup}); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// kind measures some kinds of work that need each other: each takes as long as it
// says for perRound messages.
type kind struct {
	names   []string
	measure func(context.Context) ([]time.Duration, error)
}

func (k *kind) run(ctx context.Context) ([]string, []time.Duration, error) {
	took, err := k.measure(ctx)
	return k.names, took, err
}

func (b *consumerBench) kinds() []kind {
	return []kind{
		{[]string{workPlain}, func(ctx context.Context) ([]time.Duration, error) { return b.plain(ctx, 1) }},
		{[]string{workID, workIDAgain}, func(ctx context.Context) ([]time.Duration, error) { return b.twice(ctx, b.id) }},
		{[]string{workBoth, workBothAgain}, func(ctx context.Context) ([]time.Duration, error) { return b.twice(ctx, b.both) }},
		{[]string{workVersion, workVersionAgain}, func(ctx context.Context) ([]time.Duration, error) { return b.twice(ctx, b.version) }},
		{[]string{workLone}, b.lone},
		{[]string{workPlainBatch}, func(ctx context.Context) ([]time.Duration, error) { return b.plain(ctx, perBatch) }},
		{[]string{workBatch, workBatchAgain}, b.batches},
	}
}

// handle is the side effect of all of them.
func handle(ctx context.Context, tx pgx.Tx, m outbox.Message) error {
	_, err := tx.Exec(ctx, `insert into effects (event_id, aggregate_id, version) values ($1, $2, $3)`, m.ID, m.AggregateID, m.Version)
	return err
}

// fresh makes messages of aggregates that are new, three of each.
func fresh(n int) []outbox.Message {
	list := make([]outbox.Message, n)
	aggregate := ""
	for i := range list {
		version := int64(i%3) + 1
		if version == 1 {
			aggregate = uuid.NewString()
		}
		list[i] = outbox.Message{
			ID: uuid.Must(uuid.NewV7()), AggregateType: "order", AggregateID: aggregate, Version: version, Type: "OrderMoved", SchemaVersion: 1,
			Record: outbox.Record{Topic: "outbox.event.order", Offset: int64(i), Key: []byte(aggregate), Value: []byte(`{}`)},
		}
	}
	return list
}

// plain runs the handler in transactions of some messages, without the package.
func (b *consumerBench) plain(ctx context.Context, perTx int) ([]time.Duration, error) {
	ms := fresh(perRound)
	began := time.Now()
	for len(ms) > 0 {
		n := min(perTx, len(ms))
		err := pgx.BeginFunc(ctx, b.conn, func(tx pgx.Tx) error {
			for _, m := range ms[:n] {
				if err := handle(ctx, tx, m); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		ms = ms[n:]
	}
	return []time.Duration{time.Since(began)}, nil
}

// twice processes new messages, and then the same again.
func (b *consumerBench) twice(ctx context.Context, c *outbox.Consumer) ([]time.Duration, error) {
	ms := fresh(perRound)
	var took []time.Duration
	for again := range 2 {
		began := time.Now()
		for _, m := range ms {
			if err := process(ctx, c, m, again == 1); err != nil {
				return nil, err
			}
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

// lone measures duplicates each of which comes after a new message.
func (b *consumerBench) lone(ctx context.Context) ([]time.Duration, error) {
	var took time.Duration
	for _, m := range fresh(perRound) {
		if err := process(ctx, b.both, m, false); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := process(ctx, b.both, m, true); err != nil {
			return nil, err
		}
		took += time.Since(began)
	}
	return []time.Duration{took}, nil
}

func (b *consumerBench) batches(ctx context.Context) ([]time.Duration, error) {
	ms := fresh(perRound)
	var took []time.Duration
	for again := range 2 {
		began := time.Now()
		for from := 0; from < len(ms); from += perBatch {
			results, err := b.both.ProcessBatch(ctx, ms[from:from+perBatch], handle)
			if err != nil {
				return nil, err
			}
			for i := range results {
				if err := expected(&results[i], again == 1); err != nil {
					return nil, err
				}
			}
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

func process(ctx context.Context, c *outbox.Consumer, m outbox.Message, again bool) error {
	r, err := c.Process(ctx, m, handle)
	if err != nil {
		return err
	}
	return expected(&r, again)
}

// expected keeps the bench honest: what is measured is what its name says.
func expected(r *outbox.Result, again bool) error {
	known := r.Outcome == outbox.Duplicate || r.Outcome == outbox.Stale // the latter by version
	if again == known && (again || r.Outcome == outbox.Applied) {
		return nil
	}
	return fmt.Errorf("version %d of %s: %s: %w", r.Message.Version, r.Message.AggregateID, r.Outcome, r.Err)
}
