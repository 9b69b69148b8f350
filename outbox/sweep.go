package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// sweepMargin is how much longer a row is kept than events are refused: for
// clocks that differ, and for transactions that were long on the way.
const sweepMargin = time.Hour

// SweepPolicy says how long rows are kept; 0 keeps them for ever. What is parked
// and not resolved is always kept.
type SweepPolicy struct {
	// Processed is for processed_events: at least ConsumerOptions.Floor and an
	// hour. It should be longer than the topic keeps records.
	Processed time.Duration
	// Positions is for aggregates of which nothing has come for so long; also at
	// least Floor and an hour. Only consumers that accept any first version may
	// forget positions.
	Positions time.Duration
	// Resolved is for parked events that have been applied or discarded.
	Resolved time.Duration
	// Batch is how many rows one transaction deletes; 1000.
	Batch int
}

// SweepReport counts what was deleted, or would be.
type SweepReport struct {
	Processed, Positions, Resolved int64
	// Floor is since when events can be known again; zero when processed_events
	// is kept for ever.
	Floor  time.Time
	DryRun bool
	// Busy says that another instance is sweeping, so this one did nothing.
	Busy bool
}

const (
	sweepLock  = `select pg_try_advisory_xact_lock(hashtextextended($1::text, 0))`
	raiseFloor = `insert into {schema}consumer_floors as f (consumer, floor) values ($1, now() - make_interval(secs => $2::float8))
on conflict (consumer) do update set floor = greatest(f.floor, excluded.floor) returning floor`
	wouldRaise = `select greatest(now() - make_interval(secs => $2::float8), (select floor from {schema}consumer_floors where consumer = $1))`
)

// sweeping is one table's part: the rows that may go, by the age in $2.
type sweeping struct {
	table, where string
	age          time.Duration
	count        *int64
}

// Sweep deletes what the policy does not keep, in batches. Instances may call it
// at the same time: one of them sweeps. Dry, it only counts.
//
// Before it deletes from processed_events it raises the consumer's floor, for
// every instance and for good: events below it are refused from then on, because
// nobody can know any more whether they were applied.
func (c *Consumer) Sweep(ctx context.Context, p SweepPolicy, dry bool) (SweepReport, error) {
	report := SweepReport{DryRun: dry}
	if err := c.checkSweep(p); err != nil {
		return report, err
	}
	if p.Batch == 0 {
		p.Batch = 1000
	}
	if p.Processed > 0 {
		sql := raiseFloor
		if dry {
			sql = wouldRaise
		}
		err := c.sweepTx(ctx, dry, &report, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, c.sql.fill(sql), c.opt.Name, (p.Processed - sweepMargin).Seconds()).Scan(&report.Floor)
		})
		if err != nil || report.Busy {
			return report, err
		}
	}
	for _, s := range []sweeping{
		{"processed_events", "consumer = $1 and processed_at < now() - make_interval(secs => $2::float8)", p.Processed, &report.Processed},
		// A position goes with everything that hangs on it, or not at all.
		{"consumer_positions", `consumer = $1 and updated_at < now() - make_interval(secs => $2::float8) and not exists (
 select from {schema}parked_events p where p.consumer = t.consumer and p.aggregate_type = t.aggregate_type and p.aggregate_id = t.aggregate_id and p.resolved_at is null)`,
			p.Positions, &report.Positions},
		{"parked_events", "consumer = $1 and resolved_at < now() - make_interval(secs => $2::float8)", p.Resolved, &report.Resolved},
	} {
		if s.age == 0 {
			continue
		}
		if err := c.sweepTable(ctx, s, p.Batch, dry, &report); err != nil || report.Busy {
			return report, err
		}
	}
	return report, nil
}

func (c *Consumer) checkSweep(p SweepPolicy) error {
	wrong := func(text, way string) error {
		return &Error{Text: "sweep consumer " + c.opt.Name + ": " + text, Way: way}
	}
	if p.Processed < 0 || p.Positions < 0 || p.Resolved < 0 || p.Batch < 0 {
		return wrong("a number is negative", "leave it 0 to keep the rows for ever")
	}
	if (p.Processed > 0 || p.Positions > 0) && c.opt.Floor == 0 {
		return wrong("the consumer has no floor, so it would apply again what is forgotten", "set ConsumerOptions.Floor on every instance first")
	}
	least := c.opt.Floor + sweepMargin
	for _, age := range []time.Duration{p.Processed, p.Positions} {
		if age > 0 && age < least {
			return wrong(fmt.Sprintf("%s is less than %s, the floor and an hour", age, least), "keep the rows longer, or lower the floor")
		}
	}
	if p.Positions > 0 && c.opt.FirstVersion == FirstOne {
		return wrong("a consumer that wants version 1 first cannot forget positions", "leave Positions 0: there is one row for each aggregate")
	}
	return nil
}

func (c *Consumer) sweepTable(ctx context.Context, s sweeping, batch int, dry bool, report *SweepReport) error {
	for {
		var n int64
		began := c.now()
		err := c.sweepTx(ctx, dry, report, func(tx pgx.Tx) error {
			if dry {
				return tx.QueryRow(ctx, c.sql.fill("select count(*) from {schema}"+s.table+" t where "+s.where), c.opt.Name, s.age.Seconds()).Scan(&n)
			}
			tag, err := tx.Exec(ctx, c.sql.fill("delete from {schema}"+s.table+" where ctid = any(array(select ctid from {schema}"+s.table+" t where "+s.where+" limit $3 for update skip locked))"),
				c.opt.Name, s.age.Seconds(), batch)
			n = tag.RowsAffected()
			return err
		})
		*s.count += n
		if err != nil || dry || report.Busy || n < int64(batch) {
			return err
		}
		// The consumers come first: rest as long as the batch took.
		if err := c.sleep(ctx, c.now().Sub(began)); err != nil {
			return err
		}
	}
}

func (c *Consumer) sweepTx(ctx context.Context, dry bool, report *SweepReport, f func(pgx.Tx) error) error {
	return c.inTx(ctx, "sweep consumer "+c.opt.Name, func(tx pgx.Tx) error {
		if !dry {
			var got bool
			if err := tx.QueryRow(ctx, sweepLock, "walpost.sweep."+c.opt.Schema+"."+c.opt.Name).Scan(&got); err != nil {
				return err
			}
			if !got {
				report.Busy = true
				return nil
			}
		}
		return f(tx)
	})
}

// Stats is what a consumer's tables hold, for metrics.
type Stats struct {
	Parked    map[Reason]int64
	OldestGap time.Duration // since the longest parked gap was found
	Processed int64         // rows of processed_events, as the planner estimates them, of all consumers
	Floor     time.Time     // zero: nothing has been forgotten
}

const stats = `select
  coalesce((select jsonb_object_agg(reason, n) from (select reason, count(*) as n from {schema}parked_events
             where consumer = $1 and resolved_at is null group by 1) r), '{}')::text,
  coalesce((select extract(epoch from max(now() - parked_at))::float8 from {schema}parked_events
             where consumer = $1 and resolved_at is null and reason = 'gap'), 0),
  greatest((select reltuples from pg_class where oid = to_regclass($2)), 0)::bigint,
  (select floor from {schema}consumer_floors where consumer = $1)`

// Stats reads what there is. It costs a scan of what is parked.
func (c *Consumer) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	var parked string
	var seconds float64
	var floor *time.Time
	err := c.row(ctx, stats, c.opt.Name, c.sql.fill("{schema}processed_events")).Scan(&parked, &seconds, &s.Processed, &floor)
	if err == nil {
		err = json.Unmarshal([]byte(parked), &s.Parked)
	}
	if err != nil {
		return s, missing("read the state of consumer "+c.opt.Name, err)
	}
	s.OldestGap = time.Duration(seconds * float64(time.Second))
	if floor != nil {
		s.Floor = *floor
	}
	return s, nil
}
