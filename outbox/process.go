package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// conflicts is how often a transaction is begun anew because others got in its
// way, before Process gives the error back. They are no attempts.
const conflicts = 30

// errChanged says that what a decision rested on is not so any more.
var errChanged = errors.New("the aggregate changed meanwhile")

// Process takes the message's id, checks its version and runs h, in one
// transaction of its own. A nil error means that the message has been dealt
// with: commit the offset. An error means that nothing happened or that nobody
// knows: do not commit the offset, call again. Errors of h are not returned: they
// are tried again, and then the event is parked.
//
// When the message was what parked events of its aggregate waited for, they are
// applied too, each in its own transaction.
func (c *Consumer) Process(ctx context.Context, m Message, h Handler) (Result, error) {
	began := c.now()
	if err := c.checkCall(h, m); err != nil {
		return c.done(Result{Message: m, Err: err}, began), err
	}
	return c.single(ctx, m, h)
}

func (c *Consumer) checkCall(h Handler, ms ...Message) error {
	if h == nil {
		return &Error{Text: "consumer " + c.opt.Name + ": there is no handler", Way: "pass the function that applies an event"}
	}
	for i := range ms {
		if err := ms[i].check(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Consumer) single(ctx context.Context, m Message, h Handler) (Result, error) {
	began := c.now()
	guard, err := c.enter(ctx, &m)
	if err != nil {
		return c.done(Result{Message: m, Err: err}, began), err
	}
	r, err := c.settle(ctx, m, h, guard.ended)
	if left := c.leave(ctx, &m, guard, err == nil); err == nil {
		err = left
	}
	if err == nil && r.more {
		err = c.drain(ctx, &m, h)
	}
	r.Err = errors.Join(r.Err, err)
	return c.done(r.Result, began), err
}

// done completes a result and shows it.
func (c *Consumer) done(r Result, began time.Time) Result {
	r.Consumer, r.Took = c.opt.Name, c.now().Sub(began)
	c.opt.Observe(r)
	return r
}

// settled is a Result, and whether parked events of the aggregate may be next.
type settled struct {
	Result
	more bool
}

// settle repeats attempts until one of them decides. ended is how often the
// process ended in the message: above 0 it is not tried once more.
func (c *Consumer) settle(ctx context.Context, m Message, h Handler, ended int) (settled, error) {
	if ended > 0 {
		h = func(context.Context, pgx.Tx, Message) error { return errEnded }
	}
	r := settled{Result: Result{Message: m}}
	retries, attempts := c.backoff(), c.backoff()
	retries.least = min(retries.least, 5*time.Millisecond)
	var gapSince time.Time
	for turn := 0; ; {
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		f, handlerErr, err := c.attempt(ctx, m, h)
		r.Position = max(f.position, 0)
		reason := Reason("")
		switch {
		case handlerErr != nil && ctx.Err() != nil:
			return r, context.Cause(ctx)
		case handlerErr != nil && ended > 0:
			r.Outcome, r.Attempts = Parked, ended
			r.Err = fmt.Errorf("the process ended in this event %d times", ended)
			reason = Crash
		case handlerErr != nil:
			r.Attempts++
			r.Err = handlerErr
			if !isPermanent(handlerErr) && r.Attempts < c.opt.MaxAttempts {
				if err := c.sleep(ctx, attempts.next()); err != nil {
					return r, err
				}
				continue
			}
			r.Outcome, reason = Parked, Failed
		case err != nil:
		case f.verdict == isGap && c.opt.Versions == RejectGaps:
			return r, &Error{
				Text: fmt.Sprintf("%s: the aggregate is at version %d", &m, max(f.position, 0)),
				Way:  "find the missing events and send them again, or change the consumer's version policy", Kind: ErrGap,
			}
		case f.verdict == isGap && c.opt.Versions == DeferGaps && (gapSince.IsZero() || c.now().Sub(gapSince) < c.opt.GapWait):
			if gapSince.IsZero() {
				gapSince = c.now()
			}
			if err := c.sleep(ctx, attempts.next()); err != nil {
				return r, err
			}
			continue
		default:
			r.Outcome, reason = outcome(f)
		}
		if err == nil && reason != "" && f.verdict != isParked {
			err = c.parkAlone(ctx, &m, reason, r.Err, r.Attempts)
		}
		if err == nil {
			r.Reason = reason
			if r.Outcome == Applied {
				r.Attempts, r.Err = r.Attempts+1, nil
			}
			// A duplicate may be the second delivery of what was applied by a process
			// that ended before it came to those behind.
			r.more = r.Outcome == Applied && (f.waiting || f.frozen) || f.waiting && (r.Outcome == Duplicate || r.Outcome == Stale)
			return r, nil
		}
		r.Outcome = 0
		if !isConflict(err) && !errors.Is(err, errChanged) || turn == conflicts {
			return r, missing(fmt.Sprintf("process %s", &m), err)
		}
		turn++
		if err := c.sleep(ctx, retries.next()); err != nil {
			return r, err
		}
	}
}

var errEnded = Permanent(errors.New("not tried again"))

func outcome(f finding) (Outcome, Reason) {
	switch f.verdict {
	case isDuplicate:
		return Duplicate, ""
	case isStale:
		return Stale, ""
	case isGap:
		return Parked, Gap
	case isHeld:
		return Held, Behind
	case isTooOld:
		return TooOld, Age
	case isParked:
		switch f.own {
		case Behind:
			return Held, f.own
		case Age:
			return TooOld, f.own
		}
		return Parked, f.own
	}
	return Applied, ""
}

// attempt is one transaction. handlerErr counts as an attempt of the handler; err
// does not.
func (c *Consumer) attempt(ctx context.Context, m Message, h Handler) (f finding, handlerErr, err error) {
	found, known := c.peek(ctx, []Message{m})
	if known {
		return found[0], nil, nil
	}
	tx, found, err := c.open(ctx, []Message{m})
	if tx != nil {
		defer rollback(ctx, tx)
	}
	if err != nil {
		return finding{}, nil, err
	}
	f = found[0]
	c.repeating.Store(f.verdict == isDuplicate || f.verdict == isStale)
	switch f.verdict {
	case apply:
		if err := h(ctx, tx, m); err != nil {
			if isConflict(err) || broken(tx, err) {
				return f, nil, err
			}
			return f, err, nil
		}
	case isStale:
		if !c.keeps(&m, &f) {
			return f, nil, nil
		}
		// The id stays taken, so that the next delivery is a duplicate.
	default:
		return f, nil, nil
	}
	if f.own != "" {
		how := "applied"
		if f.verdict == isStale {
			how = "stale"
		}
		if _, err := tx.Exec(ctx, c.sql.resolve, c.opt.Name, m.ID.String(), how); err != nil {
			return f, nil, err
		}
	}
	err = tx.Commit(ctx)
	if errors.Is(err, pgx.ErrTxCommitRollback) {
		return f, fmt.Errorf("the handler kept an error of a statement to itself: %w", err), nil
	}
	if err != nil {
		return f, nil, fmt.Errorf("commit: %w", err)
	}
	return f, nil, nil
}

// broken says whether the connection is what failed, and not the handler.
func broken(tx pgx.Tx, err error) bool {
	if conn := tx.Conn(); conn != nil && conn.IsClosed() {
		return true
	}
	state := sqlState(err)
	return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57P")
}

// ProcessTx is Process inside of the caller's transaction: the message counts as
// dealt with when that commits. An error of h is returned, and the caller must
// roll back, so it cannot be parked; neither can DeferGaps wait: it parks. What
// waited for the message stays parked until the next message of the aggregate,
// or Resume.
func (c *Consumer) ProcessTx(ctx context.Context, tx pgx.Tx, m Message, h Handler) (Result, error) {
	began := c.now()
	r := Result{Message: m}
	err := c.checkCall(h, m)
	if err == nil && tx == nil {
		err = noTransaction("nil")
	}
	for turn := 0; err == nil; turn++ {
		r, err = c.processIn(ctx, tx, m, h)
		if !errors.Is(err, errChanged) || turn == conflicts {
			break
		}
		err = nil
	}
	r.Err = errors.Join(r.Err, err)
	return c.done(r, began), err
}

func (c *Consumer) processIn(ctx context.Context, tx pgx.Tx, m Message, h Handler) (Result, error) {
	r := Result{Message: m}
	// What the claim did is undone when the message is parked.
	inner, err := tx.Begin(ctx)
	if err != nil {
		return r, missing(fmt.Sprintf("process %s", &m), err)
	}
	defer rollback(ctx, inner)
	found, err := c.claim(ctx, inner, []Message{m}, false)
	if err != nil {
		return r, missing(fmt.Sprintf("process %s", &m), err)
	}
	f := found[0]
	r.Position = max(f.position, 0)
	out, reason := outcome(f)
	if out == Applied || out == Stale {
		if err := inner.Commit(ctx); err != nil {
			return r, err
		}
		if out == Applied {
			r.Attempts = 1
			if err := h(ctx, tx, m); err != nil {
				return r, err
			}
		}
		if f.own != "" {
			if _, err := tx.Exec(ctx, c.sql.resolve, c.opt.Name, m.ID.String(), out.String()); err != nil {
				return r, err
			}
		}
		r.Outcome = out
		return r, nil
	}
	if err := inner.Rollback(ctx); err != nil {
		return r, err
	}
	if f.verdict == isGap && c.opt.Versions == RejectGaps {
		return r, &Error{Text: fmt.Sprintf("%s: the aggregate is at version %d", &m, r.Position), Way: "find the missing events and send them again", Kind: ErrGap}
	}
	if reason != "" && f.verdict != isParked {
		park, err := tx.Begin(ctx) // what it locked is let go when it changes its mind
		if err != nil {
			return r, err
		}
		defer rollback(ctx, park)
		if err := c.park(ctx, park, &m, reason, nil, 0); err != nil {
			return r, err
		}
		if err := park.Commit(ctx); err != nil {
			return r, err
		}
	}
	r.Outcome, r.Reason = out, reason
	return r, nil
}
