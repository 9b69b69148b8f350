package drill

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/outbox"
	"github.com/walpost/walpost/outbox/outboxkafka"
)

// committed are the ids in the outbox table.
func (a *arena) committed(ctx context.Context) (map[uuid.UUID]bool, error) {
	rows, err := a.conn.Query(ctx, "select event_id from "+a.table("outbox_events"))
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	set := map[uuid.UUID]bool{}
	for _, id := range ids {
		set[id] = true
	}
	return set, nil
}

// delivered compares topic and table: the oracle of the relay.
func (a *arena) delivered(ctx context.Context, r *Report, undone map[uuid.UUID]bool) error {
	want, err := a.committed(ctx)
	if err != nil {
		return err
	}
	if _, err := a.await(ctx, a.opt.patience, func() (bool, error) {
		n, _, err := a.broker.ends(ctx)
		if err != nil || n < int64(len(want)) {
			return false, err
		}
		got, err := a.broker.read(ctx)
		seen := map[uuid.UUID]bool{}
		for _, m := range got {
			seen[m.ID] = true
		}
		return len(seen) >= len(want), err
	}); err != nil {
		return err
	}
	got, err := a.broker.read(ctx)
	if err != nil {
		return err
	}
	seen, last := map[uuid.UUID]bool{}, map[string]int64{}
	foreign, rolledBack, disorder, arrived := 0, 0, 0, 0
	for _, m := range got {
		if seen[m.ID] {
			continue
		}
		seen[m.ID] = true
		if m.Version <= last[m.AggregateID] {
			disorder++
		}
		last[m.AggregateID] = max(m.Version, last[m.AggregateID])
		switch {
		case want[m.ID]:
			arrived++
		case undone[m.ID]:
			rolledBack++
		default:
			foreign++
		}
	}
	r.equal("every committed event is in the topic", len(want), arrived)
	if undone != nil {
		r.equal("no rolled-back event is in the topic", 0, rolledBack)
	}
	r.equal("nothing else is in the topic", 0, foreign)
	r.equal("events out of their aggregate's order", 0, disorder)
	r.observe("duplicates in the topic", len(got)-len(seen))
	return nil
}

// effects compares side effects and table: the oracle of the consumer.
func (a *arena) effects(ctx context.Context, r *Report) error {
	var committed, once, doubled, foreign int
	if err := a.conn.QueryRow(ctx, `select (select count(*) from `+a.table("outbox_events")+`),
  count(*) filter (where n = 1 and ours), count(*) filter (where n > 1), count(*) filter (where not ours)
from (select count(*) as n, e.event_id in (select event_id from `+a.table("outbox_events")+`) as ours
        from `+a.table("effects")+` e group by e.event_id) s`).Scan(&committed, &once, &doubled, &foreign); err != nil {
		return fmt.Errorf("read the side effects: %w", err)
	}
	if err := a.refused(ctx, r); err != nil {
		return err
	}
	r.equal("committed events with exactly one side effect", committed, once)
	r.equal("events with more than one side effect", 0, doubled)
	r.equal("side effects of events that were never committed", 0, foreign)
	return nil
}

// refused observes what the handler could not do, which the consumer has parked.
func (a *arena) refused(ctx context.Context, r *Report) error {
	var n int
	var why string
	if err := a.conn.QueryRow(ctx, "select count(*), coalesce(min(error), '') from "+a.table("parked_events")+
		" where resolved_at is null and reason <> 'gap'").Scan(&n, &why); err != nil {
		return fmt.Errorf("read what was parked: %w", err)
	}
	if n > 0 {
		r.observe("events that were parked, "+why, n)
	}
	return nil
}

func (a *arena) handler() outbox.Handler {
	insert := "insert into " + a.table("effects") + " (event_id, aggregate_id, version) values ($1, $2, $3)"
	h := func(ctx context.Context, tx pgx.Tx, m outbox.Message) error {
		_, err := tx.Exec(ctx, insert, m.ID.String(), m.AggregateID, m.Version)
		return err
	}
	if a.opt.tamper.handler != nil {
		return a.opt.tamper.handler(a, h)
	}
	return h
}

// tally counts what consumers did.
type tally struct{ seen, applied, known, parked atomic.Int64 }

func (t *tally) observe(r outbox.Result) {
	switch r.Outcome {
	case outbox.Applied:
		t.applied.Add(1)
	case outbox.Duplicate, outbox.Stale:
		t.known.Add(1)
	case outbox.Parked, outbox.Held, outbox.TooOld:
		t.parked.Add(1)
	default:
		return // an error: it comes again
	}
	if !r.Released {
		t.seen.Add(1)
	}
}

// consume runs a consumer in each named group until every record of the topic
// was dealt with by each.
func (a *arena) consume(ctx context.Context, o outbox.ConsumerOptions, groups ...string) (*tally, error) {
	cfg, err := pgxpool.ParseConfig(a.opt.Conn.ConnString())
	if err != nil {
		return nil, err
	}
	cfg.ConnConfig = a.opt.Conn.Copy()
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	t := &tally{}
	o.Name, o.Schema, o.Observe = "drill", a.name, t.observe
	if o.Dedup == 0 {
		o.Dedup = a.opt.tamper.dedup
	}
	consumer, err := outbox.NewConsumer(pool, o)
	if err != nil {
		return nil, err
	}
	records, err := a.broker.read(ctx)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, len(groups))
	for _, group := range groups {
		group = a.topic + "." + group
		a.groups = append(a.groups, group)
		runner, err := outboxkafka.New(outboxkafka.Options{
			Brokers: a.opt.Brokers, Group: group, Topics: []string{a.topic}, Consumer: consumer, Handler: a.handler(),
			Dialer: &kafka.Dialer{Timeout: 10 * time.Second, DualStack: true, TLS: a.opt.TLS, SASLMechanism: a.opt.SASL},
			Log:    slog.New(slog.DiscardHandler),
		})
		if err != nil {
			ended <- err
			continue
		}
		go func() { ended <- runner.Run(ctx) }() // awaited below
	}
	waiting := len(groups)
	_, err = a.await(ctx, a.opt.patience, func() (bool, error) {
		select {
		case failed := <-ended:
			waiting--
			return true, failed
		default:
			return t.seen.Load() >= int64(len(groups)*len(records)), nil
		}
	})
	stop()
	for range waiting {
		if failed := <-ended; err == nil {
			err = failed
		}
	}
	return t, err
}
