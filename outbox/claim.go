package outbox

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// statements of a consumer. The tables' names are filled in once.
type statements struct {
	claimBoth, claimVersion, claimID string
	look, peek                       string
	unclaim, lockPosition, baseline  string
	lockHeads, park, resolve, fail   string
	fill                             func(string) string
}

// Each claim is one statement: it takes the event's id and moves the aggregate
// to its version, and neither happens for a duplicate, which so writes nothing.
// Whoever comes second waits here for the first one's end.
const (
	claimed = `with claimed as (
  insert into {schema}processed_events (consumer, event_id) values ($1, $2::uuid)
  on conflict (consumer, event_id) do nothing returning 1)`
	moved = `, moved as (
  insert into {schema}consumer_positions as p (consumer, aggregate_type, aggregate_id, version)
  select $1, $3::text, $4::text, $5::bigint from claimed
   where $6::boolean or $5::bigint = 1 or exists (
         select from {schema}consumer_positions where consumer = $1 and aggregate_type = $3 and aggregate_id = $4)
  on conflict (consumer, aggregate_type, aggregate_id) do update
     set version = excluded.version, updated_at = now() where p.version = excluded.version - 1
  returning xmax = 0 as fresh)
select exists (select from claimed), exists (select from moved), exists (select from moved where fresh)`
	claimVersion = `with claimed as (select where $2::uuid is not null)`
	claimID      = claimed + ` select exists (select from claimed), false, true`

	// look comes after the claim, so that it sees what was committed while the
	// claim waited. The floor is also by the clock, which is the same for every
	// isolation level.
	look = `select
  (select version from {schema}consumer_positions where consumer = $1 and aggregate_type = $3 and aggregate_id = $4),
  exists (select from {schema}parked_events where consumer = $1 and aggregate_type = $3 and aggregate_id = $4
             and resolved_at is null and event_id <> $2::uuid and reason <> 'too_old'),
  coalesce((select reason from {schema}parked_events where consumer = $1 and event_id = $2::uuid and resolved_at is null), ''),
  coalesce($5::timestamptz, '-infinity') < greatest(
      case when $6::float8 > 0 then clock_timestamp() - make_interval(secs => $6::float8) end,
      (select floor from {schema}consumer_floors where consumer = $1), '-infinity'),
  current_setting('transaction_isolation') <> 'read committed'`

	// peek is look, and whether the id is taken.
	peek = `select exists (select from {schema}processed_events where consumer = $1 and event_id = $2::uuid),`

	unclaim  = `delete from {schema}processed_events where consumer = $1 and event_id = $2::uuid`
	baseline = `insert into {schema}consumer_positions (consumer, aggregate_type, aggregate_id, version) values ($1, $2, $3, $4)
on conflict (consumer, aggregate_type, aggregate_id) do nothing`
	lockPosition = `select version from {schema}consumer_positions where consumer = $1 and aggregate_type = $2 and aggregate_id = $3 for update`
	lockHeads    = `select 1 from {schema}parked_events where consumer = $1 and aggregate_type = $2 and aggregate_id = $3
   and resolved_at is null and reason <> 'too_old' and event_id <> $4::uuid for share`
	park = `insert into {schema}parked_events as p (consumer, event_id, aggregate_type, aggregate_id, aggregate_version, event_type, schema_version,
  occurred_at, tenant_id, traceparent, tracestate, topic, kafka_partition, kafka_offset, record_time, key, value, headers, reason, error, attempts)
values ($1, $2::uuid, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18::jsonb, $19, $20, $21)
on conflict (consumer, event_id) do update set reason = excluded.reason, error = excluded.error, attempts = excluded.attempts,
  parked_at = now(), resolved_at = null, resolved_by = null, resolution = null
 where p.resolved_at is not null and excluded.reason <> 'too_old'`
	resolve = `update {schema}parked_events set resolved_at = now(), resolved_by = session_user, resolution = $3
 where consumer = $1 and event_id = $2::uuid and resolved_at is null`
	fail = `update {schema}parked_events set reason = 'failed', error = $3, attempts = attempts + 1
 where consumer = $1 and event_id = $2::uuid and resolved_at is null`
	parkedColumns = `event_id::text, aggregate_type, aggregate_id, aggregate_version, event_type, schema_version, occurred_at, tenant_id, traceparent, tracestate,
  topic, kafka_partition, kafka_offset, record_time, key, value, headers::text, reason, error, attempts, parked_at`
)

func newStatements(schema string) statements {
	fill := strings.NewReplacer("{schema}", schema, "{parked}", parkedColumns).Replace
	return statements{
		claimBoth: fill(claimed + moved), claimVersion: fill(claimVersion + moved), claimID: fill(claimID),
		look: fill(look), peek: fill(peek + strings.TrimPrefix(look, "select")), unclaim: fill(unclaim), lockPosition: fill(lockPosition), baseline: fill(baseline),
		lockHeads: fill(lockHeads), park: fill(park), resolve: fill(resolve), fail: fill(fail), fill: fill,
	}
}

// verdict is what the database says about a message.
type verdict int

const (
	apply verdict = iota
	isDuplicate
	isStale
	isGap
	isHeld
	isTooOld
	isParked // it is among the parked already, and nothing has changed for it
)

// finding is a verdict and what it rests on.
type finding struct {
	verdict  verdict
	position int64  // of the aggregate before the message; -1: it has none
	waiting  bool   // others of the aggregate are parked
	own      Reason // the message itself is
	frozen   bool   // the transaction may not see what was parked since it began
}

// claim takes the messages in tx, in one round trip, and says what is to be done
// about each. Resuming, a message is not held by what stands behind it, and its
// age was decided when it was parked.
func (c *Consumer) claim(ctx context.Context, tx pgx.Tx, ms []Message, resuming bool) ([]finding, error) {
	var batch pgx.Batch
	c.queueClaims(&batch, ms)
	return c.readClaims(tx.SendBatch(ctx, &batch), ms, resuming)
}

func (c *Consumer) queueClaims(batch *pgx.Batch, ms []Message) {
	for i := range ms {
		m := &ms[i]
		sql, args := c.sql.claimID, []any{c.opt.Name, m.ID.String()}
		if c.versioned(m) {
			sql, args = c.sql.claimBoth, append(args, m.AggregateType, m.AggregateID, m.Version, c.opt.FirstVersion == FirstAny)
			if !c.byID(m) {
				sql = c.sql.claimVersion
			}
		}
		batch.Queue(sql, args...)
		batch.Queue(c.sql.look, c.lookArgs(m)...)
	}
}

func (c *Consumer) lookArgs(m *Message) []any {
	return []any{c.opt.Name, m.ID.String(), m.AggregateType, m.AggregateID, m.known(), c.opt.Floor.Seconds()}
}

func (c *Consumer) readClaims(results pgx.BatchResults, ms []Message, resuming bool) ([]finding, error) {
	found := make([]finding, len(ms))
	for i := range ms {
		var got, moved, fresh, below bool
		f := &found[i]
		err := results.QueryRow().Scan(&got, &moved, &fresh)
		if err == nil {
			below, err = f.read(results.QueryRow())
		}
		if err != nil {
			_ = results.Close() // gives the same error
			return nil, err
		}
		if moved && f.position >= 0 {
			f.position = ms[i].Version - 1
		}
		f.verdict = c.decide(&ms[i], f, got, moved, fresh, below, resuming)
	}
	return found, results.Close()
}

// read takes a row of look, with more columns before it if there are, and gives
// whether the message is below the floor.
func (f *finding) read(row pgx.Row, more ...any) (below bool, err error) {
	var position *int64
	var own string
	err = row.Scan(append(more, &position, &f.waiting, &own, &below, &f.frozen)...)
	f.own, f.position = Reason(own), -1
	if position != nil {
		f.position = *position
	}
	return below, err
}

func (c *Consumer) decide(m *Message, f *finding, got, moved, fresh, below, resuming bool) verdict {
	versioned := c.versioned(m)
	switch {
	case !got:
		return isDuplicate
	case versioned && !moved && f.position >= m.Version:
		return isStale
	case f.own != "" && !resuming && (f.own != Gap || !moved):
		return isParked
	case versioned && !moved:
		return isGap
	case resuming:
		return apply
	case below && (!versioned || fresh):
		// Exactly the next version was certainly not applied before, however old.
		return isTooOld
	case !versioned && f.waiting && m.AggregateID != "":
		return isHeld
	}
	return apply
}
