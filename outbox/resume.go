package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// ParkedFilter chooses parked events; what is zero does not count.
type ParkedFilter struct {
	ID            uuid.UUID
	AggregateType string
	AggregateID   string
	Reasons       []Reason
	// Limit of events that Consumer.Parked gives, or of aggregates that Resume
	// takes on; 1000.
	Limit int
}

const chosen = ` from {schema}parked_events where consumer = $1 and resolved_at is null
   and ($2::text = '' or event_id = nullif($2::text, '')::uuid) and ($3::text = '' or aggregate_type = $3) and ($4::text = '' or aggregate_id = $4)
   and ($5::text[] is null or reason = any($5::text[]))`

const (
	listParked = `select {parked}` + chosen + ` order by seq limit $6`
	aggregates = `select aggregate_type, aggregate_id` + chosen + ` group by 1, 2 order by min(seq) limit $6`
	// head is the event of an aggregate that is next. Events without a version
	// keep the order in which they came. What is too old holds nobody up.
	head = `select {parked} from {schema}parked_events where consumer = $1 and aggregate_type = $2 and aggregate_id = $3
   and resolved_at is null and (reason <> 'too_old' or $4::boolean) order by aggregate_version nulls first, seq limit 1`
	lockParked = `select {parked} from {schema}parked_events where consumer = $1 and event_id = $2::uuid and resolved_at is null for update`
)

func (f *ParkedFilter) args(consumer string) []any {
	id := ""
	if f.ID != uuid.Nil {
		id = f.ID.String()
	}
	var reasons []string
	for _, r := range f.Reasons {
		reasons = append(reasons, string(r))
	}
	limit := f.Limit
	if limit <= 0 {
		limit = 1000
	}
	return []any{consumer, id, f.AggregateType, f.AggregateID, reasons, limit}
}

// Parked lists parked events that nobody has resolved, in the order in which they
// were parked.
func (c *Consumer) Parked(ctx context.Context, f ParkedFilter) ([]ParkedEvent, error) {
	var list []ParkedEvent
	err := c.inTx(ctx, "list parked events", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, c.sql.fill(listParked), f.args(c.opt.Name)...)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scanParked)
		return err
	})
	return list, err
}

// ResumeReport says what Resume did.
type ResumeReport struct {
	Applied int // events whose handler ran
	Settled int // events that turned out to be duplicates or stale
	Failed  int // aggregates that stopped at an error of the handler
	Waiting int // aggregates that still miss a version
}

// Resume applies the parked events of every aggregate that has one which the
// filter chooses: from its first on, in order, each in its own transaction, and
// no further than the first failure, whatever the filter chose. The error of a
// handler is kept with its event. Events that are TooOld are left alone unless
// the filter names the reason: only a person can know that they were not applied.
func (c *Consumer) Resume(ctx context.Context, h Handler, f ParkedFilter) (ResumeReport, error) {
	var report ResumeReport
	if err := c.checkCall(h); err != nil {
		return report, err
	}
	type key struct{ aggregateType, aggregateID string }
	var keys []key
	err := c.inTx(ctx, "find parked events", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, c.sql.fill(aggregates), f.args(c.opt.Name)...)
		if err != nil {
			return err
		}
		keys, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (k key, err error) {
			err = row.Scan(&k.aggregateType, &k.aggregateID)
			return k, err
		})
		return err
	})
	if err != nil {
		return report, err
	}
	for _, k := range keys {
		how := resuming{old: slices.Contains(f.Reasons, Age)}
		if err := c.resume(ctx, k.aggregateType, k.aggregateID, h, how, &report); err != nil {
			return report, err
		}
	}
	return report, nil
}

// drain applies what waited for m. It does not touch events whose own handler
// failed before: a person decides about these.
func (c *Consumer) drain(ctx context.Context, m *Message, h Handler) error {
	return c.resume(ctx, m.AggregateType, m.AggregateID, h, resuming{unasked: true}, &ResumeReport{})
}

// resuming says on whose behalf.
type resuming struct {
	unasked bool // nobody's
	old     bool // somebody's who knows that old events were not applied
}

// progress says whether the aggregate's next event can be taken on.
type progress int

const (
	goOn progress = iota
	nothingLeft
	stopWaiting
	stopFailed
)

func (c *Consumer) resume(ctx context.Context, aggregateType, aggregateID string, h Handler, how resuming, report *ResumeReport) error {
	retries := 0
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p, err := c.resumeNext(ctx, aggregateType, aggregateID, h, how, report)
		if err != nil {
			if retries++; isConflict(err) && retries < conflicts {
				if err := c.sleep(ctx, c.backoff().next()); err != nil {
					return err
				}
				continue
			}
			return missing(fmt.Sprintf("resume %s %s", aggregateType, aggregateID), err)
		}
		switch p {
		case stopWaiting:
			report.Waiting++
			return nil
		case stopFailed:
			report.Failed++
			return nil
		case nothingLeft:
			return nil
		}
	}
}

func (c *Consumer) resumeNext(ctx context.Context, aggregateType, aggregateID string, h Handler, how resuming, report *ResumeReport) (progress, error) {
	began := c.now()
	tx, err := c.db.Begin(ctx)
	if err != nil {
		return goOn, err
	}
	defer rollback(ctx, tx)
	p, err := c.one(ctx, tx, head, c.opt.Name, aggregateType, aggregateID, how.old)
	if errors.Is(err, pgx.ErrNoRows) {
		return nothingLeft, nil
	}
	if err != nil {
		return goOn, err
	}
	if how.unasked && p.Reason != Gap && p.Reason != Behind {
		return nothingLeft, nil
	}
	id := p.Message.ID
	// Somebody else may be just resuming it: take it, or see that it is gone.
	p, err = c.one(ctx, tx, lockParked, c.opt.Name, id.String())
	if errors.Is(err, pgx.ErrNoRows) {
		return goOn, nil
	}
	if err != nil {
		return goOn, err
	}
	found, err := c.claim(ctx, tx, []Message{p.Message}, true)
	if err != nil {
		return goOn, err
	}
	r := Result{Message: p.Message, Position: max(found[0].position, 0), Released: true, Attempts: p.Attempts}
	switch found[0].verdict {
	case isGap:
		return stopWaiting, nil
	case isDuplicate:
		r.Outcome = Duplicate
	case isStale:
		r.Outcome = Stale
	default:
		r.Outcome = Applied
		r.Attempts++
		if err := h(ctx, tx, p.Message); err != nil {
			if isConflict(err) || broken(tx, err) || ctx.Err() != nil {
				return goOn, err
			}
			rollback(ctx, tx)
			return stopFailed, c.failAgain(ctx, r, err, began)
		}
	}
	if _, err := tx.Exec(ctx, c.sql.resolve, c.opt.Name, id.String(), r.Outcome.String()); err != nil {
		return goOn, err
	}
	if err := tx.Commit(ctx); err != nil {
		if errors.Is(err, pgx.ErrTxCommitRollback) {
			return stopFailed, c.failAgain(ctx, r, err, began)
		}
		return goOn, err
	}
	if r.Outcome == Applied {
		report.Applied++
	} else {
		report.Settled++
	}
	c.done(r, began)
	return goOn, nil
}

func (c *Consumer) one(ctx context.Context, tx pgx.Tx, sql string, args ...any) (ParkedEvent, error) {
	rows, err := tx.Query(ctx, c.sql.fill(sql), args...)
	if err != nil {
		return ParkedEvent{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanParked)
}

// failAgain keeps the handler's error with the event.
func (c *Consumer) failAgain(ctx context.Context, r Result, why error, began time.Time) error {
	err := c.inTx(ctx, "keep the error of "+r.Message.String(), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, c.sql.fail, c.opt.Name, r.Message.ID.String(), storable(why.Error()))
		return err
	})
	if err == nil {
		r.Outcome, r.Reason, r.Err = Parked, Failed, why
		c.done(r, began)
	}
	return err
}

// Discard says of a parked event that it will not be applied, and why. It counts
// as dealt with from now on, so that what waits behind it can be resumed; its row
// stays, with who and when. Only an aggregate's next event can be discarded.
func (c *Consumer) Discard(ctx context.Context, id uuid.UUID, why string) error {
	return c.inTx(ctx, "discard event "+id.String(), func(tx pgx.Tx) error {
		p, err := c.one(ctx, tx, lockParked, c.opt.Name, id.String())
		if errors.Is(err, pgx.ErrNoRows) {
			return &Error{Text: "there is no such event of consumer " + c.opt.Name, Way: "see what Parked lists", Kind: ErrNotParked}
		}
		if err != nil {
			return err
		}
		if p.Reason != Age {
			first, err := c.one(ctx, tx, head, c.opt.Name, p.Message.AggregateType, p.Message.AggregateID, false)
			if err != nil {
				return err
			}
			found, err := c.claim(ctx, tx, []Message{p.Message}, true)
			if err != nil {
				return err
			}
			if first.Message.ID != id || found[0].verdict == isGap {
				return &Error{
					Text: fmt.Sprintf("%s: the aggregate is at version %d, and its first parked event is %s", &p.Message, max(found[0].position, 0), first.Message.ID),
					Way:  "resume or discard those before it", Kind: ErrNotHead,
				}
			}
		}
		_, err = tx.Exec(ctx, c.sql.resolve, c.opt.Name, id.String(), "discarded: "+storable(why))
		return err
	})
}
