package outbox

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// ProcessBatch is Process for consecutive messages of one partition, in one
// transaction for all of them. When anything but applying and passing over
// duplicates is to be done, or something fails, that transaction is rolled back
// and they are processed one by one. The results are those of the messages that
// have been dealt with, from the first on: their offsets may be committed, also
// when there is an error.
func (c *Consumer) ProcessBatch(ctx context.Context, ms []Message, h Handler) ([]Result, error) {
	began := c.now()
	if err := c.checkCall(h, ms...); err != nil && h == nil {
		return nil, err
	} else if err == nil && len(ms) > 1 && !c.suspect(ms) {
		guard, err := c.enter(ctx, &ms[0])
		if err != nil {
			return nil, err
		}
		if guard.ended == 0 && !guard.suspect {
			results, more, err := c.together(ctx, ms, h)
			if left := c.leave(ctx, &ms[0], guard, err == nil); err == nil && results != nil && left == nil {
				return c.finish(ctx, ms, results, more, h, func(r Result) Result { return c.done(r, began) })
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
		} else if err := c.leave(ctx, &ms[0], guard, false); err != nil {
			return nil, err
		}
	}
	results := make([]Result, 0, len(ms))
	for _, m := range ms {
		r, err := c.Process(ctx, m, h)
		if err != nil {
			return results, err
		}
		results = append(results, r)
	}
	return results, nil
}

// finish shows the results and applies what waited for them.
func (c *Consumer) finish(ctx context.Context, ms []Message, results []Result, more []bool, h Handler, done func(Result) Result) ([]Result, error) {
	for i := range results {
		results[i] = done(results[i])
	}
	for i := range more {
		if more[i] {
			if err := c.drain(ctx, &ms[i], h); err != nil {
				return results[:i], err
			}
		}
	}
	return results, nil
}

// together gives no results when the messages have to be processed one by one.
func (c *Consumer) together(ctx context.Context, ms []Message, h Handler) (results []Result, more []bool, err error) {
	var tx pgx.Tx
	found, known := c.peek(ctx, ms)
	if !known {
		if tx, found, err = c.open(ctx, ms); tx != nil {
			defer rollback(ctx, tx)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	results, more = make([]Result, len(ms)), make([]bool, len(ms))
	keep := false
	for i, f := range found {
		out, _ := outcome(f)
		if out != Applied && out != Duplicate && out != Stale || f.own != "" {
			return nil, nil, nil
		}
		results[i] = Result{Message: ms[i], Outcome: out, Position: max(f.position, 0)}
		more[i] = f.waiting || out == Applied && f.frozen
		keep = keep || out == Applied || out == Stale && c.keeps(&ms[i], &f)
	}
	c.repeating.Store(!keep)
	if !keep {
		return results, more, nil
	}
	for i := range ms {
		if results[i].Outcome != Applied {
			continue
		}
		results[i].Attempts = 1
		if err := h(ctx, tx, ms[i]); err != nil {
			return nil, nil, err
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, nil, err
	}
	return results, more, nil
}
