package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/outbox"
)

// countTrips counts the round trips of each thing, when its statements have been
// prepared on the connection.
func countTrips(ctx context.Context, conn *pgx.Conn, count *trips) ([]Trips, error) {
	writer, err := outbox.NewWriter(outbox.WriterOptions{})
	if err != nil {
		return nil, err
	}
	b, err := newConsumerBench(conn)
	if err != nil {
		return nil, err
	}
	business := func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update orders set version = version + 1 where id = $1`, "1")
		return err
	}
	write := func(events int) func() error {
		return func() error {
			return outbox.RunTx(ctx, conn, writer, func(tx pgx.Tx, buffer *outbox.Buffer) error {
				buffer.Add(outgoing(events)...)
				return business(tx)
			})
		}
	}
	var last outbox.Message
	next := func() error {
		last = fresh(1)[0]
		return process(ctx, b.both, last, false)
	}
	again := func() error { return process(ctx, b.both, last, true) }
	var list []Trips
	for _, thing := range []struct {
		name        string
		before, run func() error
	}{
		{tripsPlain, nil, func() error { return pgx.BeginFunc(ctx, conn, business) }},
		{tripsWrite, nil, write(1)},
		{tripsWriteMany, nil, write(100)},
		{tripsProcess, nil, next},
		{tripsLone, next, again},
		{tripsDuplicate, again, again},
		{tripsProcessBatch, nil, func() error {
			_, err := b.both.ProcessBatch(ctx, fresh(perBatch), handle)
			return err
		}},
	} {
		var n []int
		for range 4 {
			if thing.before != nil {
				if err := thing.before(); err != nil {
					return nil, err
				}
			}
			count.take()
			if err := thing.run(); err != nil {
				return nil, err
			}
			n = append(n, count.take())
		}
		if n = n[1:]; slices.Min(n) != slices.Max(n) {
			return nil, errors.New(thing.name + ": the number of round trips changes")
		}
		list = append(list, Trips{thing.name, n[0]})
	}
	return list, nil
}

func outgoing(n int) []*outbox.Event {
	events := make([]*outbox.Event, n)
	for i := range events {
		events[i] = &outbox.Event{
			AggregateType: "order", AggregateID: uuid.NewString(), Version: 1, Type: "OrderMoved",
			Payload: map[string]any{"to": "warehouse", "note": "forty bytes of text, as in the backlog"},
		}
	}
	return events
}

// compareCopy writes so many events in one transaction, each with a Write of its
// own and all with Copy.
func compareCopy(ctx context.Context, conn *pgx.Conn, rounds int) (*Stat, error) {
	writer, err := outbox.NewWriter(outbox.WriterOptions{})
	if err != nil {
		return nil, err
	}
	single := func(tx pgx.Tx, events []*outbox.Event) error {
		for _, e := range events {
			if err := writer.Write(ctx, tx, e); err != nil {
				return err
			}
		}
		return nil
	}
	whole := func(tx pgx.Tx, events []*outbox.Event) error {
		_, err := writer.Copy(ctx, tx, slices.Values(events))
		return err
	}
	var ratios []float64
	for round := range rounds + 1 {
		ways := []func(pgx.Tx, []*outbox.Event) error{single, whole}
		var took [2]time.Duration
		for i := range ways {
			way := (i + round) % len(ways)
			events := outgoing(copied)
			began := time.Now()
			if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return ways[way](tx, events) }); err != nil {
				return nil, err
			}
			took[way] = time.Since(began)
		}
		if round > 0 { // the first one warms up
			ratios = append(ratios, took[0].Seconds()/took[1].Seconds())
		}
	}
	return stat(ratios), nil
}
