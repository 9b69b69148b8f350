package main

import (
	"context"
	"fmt"
	"time"
)

// createFill makes the procedure that writes a backlog: rows of 10,000
// aggregates with about 300 bytes of jsonb text, perTx of them in a transaction.
const createFill = `
create procedure fill(total int, per_tx int, aggregates int, note int, types int) language plpgsql as $$
begin
  for i in 0 .. total / per_tx - 1 loop
    insert into outbox_events (event_id, aggregate_type, aggregate_id, event_type, payload, occurred_at)
    select gen_random_uuid(), 'Bench' || case when types > 0 then (g % types)::text else '' end, 'customer-' || g % aggregates, 'OrderPlaced',
           jsonb_build_object('seq', g, 'order', md5(g::text), 'customer', md5((g % 10000)::text),
             'amount', g % 100000 / 100.0, 'currency', 'EUR', 'status', 'placed',
             'lines', jsonb_build_array(jsonb_build_object('sku', 'SKU-' || g % 997, 'count', g % 7),
                                        jsonb_build_object('sku', 'SKU-' || g % 991, 'count', g % 5)),
             'note', repeat('x', note)),
           clock_timestamp()
    from generate_series(i * per_tx + 1, (i + 1) * per_tx) g;
    commit;
  end loop;
end $$`

// fill writes a backlog and returns the WAL position behind it.
func (r *rig) fill(ctx context.Context, rows, perTx int) (end string, err error) {
	return r.fillWith(ctx, point{rows: rows, perTx: perTx, aggregates: 10_000, payload: 40})
}

func (r *rig) fillWith(ctx context.Context, p point) (end string, err error) {
	start := time.Now()
	// The call commits inside, so it must not run in a transaction of ours.
	err = r.exec(ctx,
		"set synchronous_commit = off",
		fmt.Sprintf("call fill(%d, %d, %d, %d, %d)", p.rows, p.perTx, p.aggregates, p.payload, p.types),
		"reset synchronous_commit",
		"checkpoint")
	if err != nil {
		return "", err
	}
	if err := r.sql.QueryRow(ctx, "select pg_current_wal_lsn()").Scan(&end); err != nil {
		return "", err
	}
	r.say("%s rows written, %s per transaction, in %.1f s", number(float64(p.rows), 0), number(float64(p.perTx), 0), time.Since(start).Seconds())
	return end, nil
}

// phase is one backlog and those who drain it.
type phase struct {
	name      string
	rows      int
	perTx     int
	rounds    int
	consumers []string
}

// order rotates, so that nobody always comes first.
func (p *phase) order(round int) []string {
	k := round % len(p.consumers)
	return append(append([]string{}, p.consumers[k:]...), p.consumers[:k]...)
}

// backlog makes the slots, then the rows, and lets everybody drain them.
func (r *rig) backlog(ctx context.Context, p phase) ([]Drain, error) {
	slotOf := func(round int, consumer string) string {
		for i, c := range p.consumers {
			if c == consumer {
				return fmt.Sprintf("bench_%s_%d_%d", p.name, round, i)
			}
		}
		return ""
	}
	var slots []string
	for round := range p.rounds {
		for _, consumer := range p.consumers {
			name := slotOf(round, consumer)
			if err := r.createSlot(ctx, name); err != nil {
				return nil, err
			}
			slots = append(slots, name)
		}
	}
	end, err := r.fill(ctx, p.rows, p.perTx)
	if err != nil {
		return nil, err
	}
	var drains []Drain
	for round := range p.rounds {
		for _, consumer := range p.order(round) {
			d, err := r.drain(ctx, job{phase: p.name, consumer: consumer, slot: slotOf(round, consumer), rows: p.rows, round: round, end: end})
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", p.name, consumer, err)
			}
			drains = append(drains, d)
			r.say("%s: %s: %s rows/s, CPU %.2f s", p.name, consumer, number(d.rate(), 0), d.CPU)
		}
	}
	// The WAL goes with them.
	return drains, r.dropSlots(ctx, slots...)
}
