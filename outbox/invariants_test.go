package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// variant is a consumer, or a broken one. deliver is what a runner does with a
// record: nil says that it commits the offset, and never comes back to it.
type variant struct {
	name    string
	options func(*ConsumerOptions)
	change  func(*Consumer)
	deliver func(b *bench, c *Consumer, ctx context.Context, m Message, h Handler) error
}

func (v variant) consumer(b *bench, o ConsumerOptions) *Consumer {
	if v.options != nil {
		v.options(&o)
	}
	c := b.consumer(o)
	if v.change != nil {
		v.change(c)
	}
	return c
}

func (v variant) process(b *bench, c *Consumer, m Message, h Handler) error {
	if v.deliver != nil {
		return v.deliver(b, c, b.ctx, m, h)
	}
	_, err := c.Process(b.ctx, m, h)
	return err
}

// invariantO6: one side effect per event and consumer, whatever is delivered how
// often, at the same time, with handlers that are killed before their commit.
func invariantO6(b *bench, v variant) error {
	const events = 24
	var messages []Message
	for i := range events {
		m := message(fmt.Sprint(i%5), 0)
		m.Offset = int64(i)
		messages = append(messages, m)
	}
	var group sync.WaitGroup
	var failure atomic.Pointer[error]
	for _, name := range []string{"billing", "mail"} {
		c := v.consumer(b, ConsumerOptions{Name: name})
		for lane := range 3 { // three owners of the same partition, each of which delivers twice
			group.Go(func() {
				killed := map[uuid.UUID]bool{}
				for i := range 2 * events {
					m := messages[i/2]
					handler := func(ctx context.Context, tx pgx.Tx, m Message) error {
						if err := effect(name)(ctx, tx, m); err != nil {
							return err
						}
						if lane == 0 && !killed[m.ID] {
							killed[m.ID] = true
							_ = tx.Conn().PgConn().Conn().Close()
							_, err := tx.Exec(ctx, "select 1")
							return err
						}
						return nil
					}
					for turn := 0; ; turn++ {
						err := v.process(b, c, m, handler)
						if err == nil {
							break
						}
						if turn == 100 || b.ctx.Err() != nil {
							failure.Store(&err)
							return
						}
					}
				}
			})
		}
	}
	group.Wait()
	if err := failure.Load(); err != nil {
		return *err
	}
	if got, want := b.text(`select concat_ws(' ', count(*), count(distinct (consumer, event_id))) from effects`), fmt.Sprint(2*events, 2*events); got != strings.ReplaceAll(want, "  ", " ") {
		return fmt.Errorf("effects and events: %s, want %s", got, want)
	}
	return nil
}

// invariantO6Killed is the same for one owner, whose process is killed in the
// handler: the case that needs no luck.
func invariantO6Killed(b *bench, v variant) error {
	c := v.consumer(b, ConsumerOptions{})
	m := message("a", 0)
	killed := false
	handler := func(ctx context.Context, tx pgx.Tx, m Message) error {
		if err := effect("billing")(ctx, tx, m); err != nil || killed {
			return err
		}
		killed = true
		_ = tx.Conn().PgConn().Conn().Close()
		_, err := tx.Exec(ctx, "select 1")
		return err
	}
	for range 3 {
		if v.process(b, c, m, handler) == nil {
			break
		}
	}
	for range 2 { // and once more, after a group reset
		if err := v.process(b, c, m, handler); err != nil && v.deliver == nil {
			return err
		}
		if v.name == offsetFirst.name {
			break // nothing ever comes back to it
		}
	}
	if v.name == offsetFirst.name {
		b.exec("truncate effects")
		killed = false
		m = message("a", 0)
		if v.process(b, c, m, handler) != nil {
			return errors.New("the mutant commits no offset")
		}
	}
	if got := b.text(`select count(*)::text from effects where event_id = $1::uuid`, m.ID.String()); got != "1" {
		return fmt.Errorf("%s effects", got)
	}
	return nil
}

// invariantO7: versions apply in order and without holes, from whichever came
// first, and what waited for a version follows it.
func invariantO7(b *bench, v variant) error {
	c := v.consumer(b, ConsumerOptions{})
	random := rand.New(rand.NewPCG(1, 2))
	starts := map[string]int64{"a": 1, "b": 5, "c": 900}
	const length, hole = 9, 4
	var rest, holes []Message
	for aggregate, first := range starts {
		if err := v.process(b, c, message(aggregate, first), effect("billing")); err != nil {
			return err
		}
		for i := int64(1); i < length; i++ {
			if m := message(aggregate, first+i); i == hole {
				holes = append(holes, m)
			} else {
				rest = append(rest, m, m)
			}
		}
	}
	random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	for _, m := range rest {
		if err := v.process(b, c, m, effect("billing")); err != nil {
			return err
		}
	}
	check := func(n int64) error {
		for aggregate, first := range starts {
			var want []string
			for i := range n {
				want = append(want, fmt.Sprint(first+i))
			}
			if got := b.text(`select coalesce(string_agg(version::text, ' ' order by n), '') from effects where aggregate_id = $1`, aggregate); got != strings.Join(want, " ") {
				return fmt.Errorf("aggregate %s: applied %s, want %s", aggregate, got, strings.Join(want, " "))
			}
		}
		return nil
	}
	if err := check(hole); err != nil {
		return err
	}
	for _, m := range holes {
		if err := v.process(b, c, m, effect("billing")); err != nil {
			return err
		}
	}
	if err := check(length); err != nil {
		return err
	}
	if n := b.text(`select count(*)::text from parked_events where resolved_at is null`); n != "0" {
		return fmt.Errorf("%s events are left parked", n)
	}
	return nil
}

// invariantO8: the offset may be committed exactly when the effect, or the
// parked event, is durable; whatever fails after whichever statement.
func invariantO8(b *bench, v variant) error {
	handlers := map[string]Handler{
		"applies": effect("billing"),
		"parks":   func(context.Context, pgx.Tx, Message) error { return Permanent(errors.New("no")) },
		"gap":     effect("billing"),
	}
	for name, h := range handlers {
		for at := 0; ; at++ {
			aggregate, version := fmt.Sprint(name, at), int64(1)
			c := v.consumer(b, ConsumerOptions{})
			if name == "gap" {
				if err := v.process(b, c, message(aggregate, 1), h); err != nil {
					return err
				}
				version = 3
			}
			m := message(aggregate, version)
			faults := 0
			b.pool.fault = func(step string) error {
				if faults++; faults == at+1 {
					return errors.New("fault at " + step)
				}
				return nil
			}
			err := v.process(b, c, m, h)
			b.pool.fault = nil
			there := func() string {
				return b.text(`select ((select count(*) from effects where event_id = $1::uuid)
 + (select count(*) from parked_events where event_id = $1::uuid and resolved_at is null))::text`, m.ID.String())
			}
			if err == nil && there() != "1" {
				return fmt.Errorf("%s, fault %d: the offset is committed, and nothing is there", name, at)
			}
			if err != nil {
				if err := v.process(b, c, m, h); err != nil {
					return fmt.Errorf("%s, fault %d: again: %w", name, at, err)
				}
			}
			if n := there(); n != "1" {
				return fmt.Errorf("%s, fault %d: %s effects and parked events", name, at, n)
			}
			if faults <= at {
				break // there are no more steps
			}
		}
	}
	return nil
}

// old is a message whose id was made that long ago.
func old(aggregate string, version int64, ago time.Duration) Message {
	m := message(aggregate, version)
	ms := uint64(time.Now().Add(-ago).UnixMilli())
	for i := range 6 {
		m.ID[5-i] = byte(ms >> (8 * i))
	}
	return m
}

const day = 24 * time.Hour

// invariantO10: an event below the floor is never applied again, however long the
// consumer was away and whatever was swept.
func invariantO10(b *bench, v variant) error {
	c := v.consumer(b, ConsumerOptions{Floor: 7 * day})
	m := message("a", 0)
	if err := v.process(b, c, m, effect("billing")); err != nil {
		return err
	}
	// Ten days later.
	b.exec(`update processed_events set processed_at = processed_at - interval '10 days'`)
	aged := old("a", 0, 10*day)
	b.exec(`update processed_events set event_id = $1::uuid`, aged.ID.String())
	b.exec(`update effects set event_id = $1::uuid`, aged.ID.String())
	report, err := c.Sweep(b.ctx, SweepPolicy{Processed: 8 * day}, false)
	if err != nil || report.Processed != 1 {
		return fmt.Errorf("sweep: %+v, %v", report, err)
	}
	// An instance that nobody told of the floor knows it all the same.
	for _, o := range []ConsumerOptions{{Floor: 7 * day}, {}} {
		if err := v.process(b, v.consumer(b, o), aged, effect("billing")); err != nil {
			return err
		}
	}
	if got := b.text(`select count(*)::text from effects`); got != "1" {
		return fmt.Errorf("applied %s times", got)
	}
	if got := b.text(`select reason from parked_events where event_id = $1::uuid`, aged.ID.String()); got != "too_old" {
		return fmt.Errorf("parked for %s", got)
	}
	return nil
}

// invariantO11: a retry keeps the aggregate's order and stops at the first
// failure, also when it is asked for a later event.
func invariantO11(b *bench, v variant) error {
	for _, versions := range [][]int64{{1, 2, 3}, {0, 0, 0}} {
		b.exec(`truncate effects`)
		name := fmt.Sprint("billing", versions[0])
		c := v.consumer(b, ConsumerOptions{Name: name, MaxAttempts: 2})
		ms := make([]Message, 3)
		bad := true
		handler := func(ctx context.Context, tx pgx.Tx, m Message) error {
			if m.ID == ms[0].ID && bad {
				return errors.New("no stock")
			}
			return effect("billing")(ctx, tx, m)
		}
		for i := range ms {
			ms[i] = message("a", versions[i])
			if err := v.process(b, c, ms[i], handler); err != nil {
				return err
			}
		}
		if err := v.process(b, c, message("b", 1), handler); err != nil {
			return err
		}
		report, err := c.Resume(b.ctx, handler, ParkedFilter{ID: ms[1].ID})
		if err != nil || report != (ResumeReport{Failed: 1}) {
			return fmt.Errorf("versions %v: resume with a bad head: %+v, %v", versions, report, err)
		}
		bad = false
		if report, err = c.Resume(b.ctx, handler, ParkedFilter{}); err != nil || report != (ResumeReport{Applied: 3}) {
			return fmt.Errorf("versions %v: resume: %+v, %v", versions, report, err)
		}
		want := ms[0].ID.String() + ms[1].ID.String() + ms[2].ID.String()
		if got := b.text(`select string_agg(event_id::text, '' order by n) from effects where aggregate_id = 'a'`); got != want {
			return fmt.Errorf("versions %v: applied in the order %s, want %s", versions, got, want)
		}
	}
	return nil
}

type invariant func(*bench, variant) error

func hold(t *testing.T, check invariant) {
	t.Parallel()
	if err := check(setup(t), variant{}); err != nil {
		t.Error(err)
	}
}

func TestO6OneEffectPerEventAndConsumer(t *testing.T) { hold(t, invariantO6) }
func TestO6AlsoWhenTheProcessIsKilled(t *testing.T)   { hold(t, invariantO6Killed) }
func TestO7VersionsApplyInOrder(t *testing.T)         { hold(t, invariantO7) }
func TestO8OffsetIffEffectOrPark(t *testing.T)        { hold(t, invariantO8) }
func TestO10NothingBelowTheFloor(t *testing.T)        { hold(t, invariantO10) }
func TestO11RetryInOrder(t *testing.T)                { hold(t, invariantO11) }
