package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestPolicies(t *testing.T) {
	t.Parallel()
	failing := errors.New("no stock")
	fails := func(err error) Handler { return func(context.Context, pgx.Tx, Message) error { return err } }
	type step struct {
		m    Message
		h    Handler
		want string // outcome, reason, attempts
	}
	ok := effect("billing")
	dup := message("a", 0)
	for name, c := range map[string]struct {
		options ConsumerOptions
		steps   []step
		applied string // versions, in order
	}{
		"both": {ConsumerOptions{}, []step{
			{message("a", 5), ok, "applied  1"}, {message("a", 4), ok, "stale  0"}, {message("a", 7), ok, "parked gap 0"},
			{message("a", 6), ok, "applied  1"}, {message("a", 8), ok, "applied  1"}, {message("a", 8), ok, "stale  0"},
		}, "5 6 7 8"},
		"by version": {ConsumerOptions{Dedup: ByVersion}, []step{
			{message("a", 1), ok, "applied  1"}, {message("a", 1), ok, "stale  0"}, {message("a", 2), ok, "applied  1"},
			{dup, ok, "applied  1"}, {dup, ok, "duplicate  0"},
		}, "1 2 0"},
		"by id": {ConsumerOptions{Dedup: ByID}, []step{
			{message("a", 5), ok, "applied  1"}, {message("a", 2), ok, "applied  1"},
		}, "5 2"},
		"first one": {ConsumerOptions{FirstVersion: FirstOne}, []step{
			{message("a", 2), ok, "parked gap 0"}, {message("a", 1), ok, "applied  1"}, {message("a", 3), ok, "applied  1"},
		}, "1 2 3"},
		"permanent": {ConsumerOptions{}, []step{
			{message("a", 1), fails(fmt.Errorf("wrapped: %w", Permanent(failing))), "parked failed 1"},
			{message("a", 2), ok, "parked gap 0"}, {message("b", 1), ok, "applied  1"},
		}, "1"},
		"attempts": {ConsumerOptions{MaxAttempts: 3}, []step{{message("a", 1), fails(failing), "parked failed 3"}}, ""},
		"first seen fails": {ConsumerOptions{MaxAttempts: 1}, []step{
			{message("a", 9), fails(failing), "parked failed 1"}, {message("a", 10), ok, "parked gap 0"}, {message("a", 8), ok, "stale  0"},
		}, ""},
		"held": {ConsumerOptions{MaxAttempts: 1}, []step{
			{message("a", 0), fails(failing), "parked failed 1"}, {message("a", 0), ok, "held held 0"}, {message("b", 0), ok, "applied  1"},
		}, "0"},
		"swallowed": {ConsumerOptions{MaxAttempts: 2}, []step{
			{message("a", 1), func(ctx context.Context, tx pgx.Tx, _ Message) error {
				_, _ = tx.Exec(ctx, "select 1/0")
				return nil
			}, "parked failed 2"},
		}, ""},
		"floor": {ConsumerOptions{Floor: day}, []step{
			{old("a", 0, 2*day), ok, "too_old too_old 0"}, {message("a", 0), ok, "applied  1"},
			{old("b", 1, 2*day), ok, "too_old too_old 0"}, {message("b", 2), ok, "applied  1"},
			{old("b", 3, 2*day), ok, "applied  1"}, // exactly the next
		}, "0 2 3"},
		"no age": {ConsumerOptions{Floor: day}, []step{{func() Message { m := message("a", 0); m.ID = DeriveID(time.Now(), "x"); return m }(), ok, "too_old too_old 0"}}, ""},
		"deferred": {ConsumerOptions{Versions: DeferGaps, GapWait: time.Minute}, []step{
			{message("a", 1), ok, "applied  1"}, {message("a", 3), ok, "parked gap 0"},
		}, "1"},
		"ignored": {ConsumerOptions{Versions: IgnoreVersions}, []step{{message("a", 3), ok, "applied  1"}, {message("a", 1), ok, "applied  1"}}, "3 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			seen := 0
			c.options.Observe = func(r Result) {
				if r.Consumer != "billing" || r.Outcome == 0 {
					t.Errorf("observed %+v", r)
				}
				seen++
			}
			consumer := b.consumer(c.options)
			clock := time.Now()
			consumer.now = func() time.Time { return clock }
			consumer.sleep = func(_ context.Context, d time.Duration) error { clock = clock.Add(d + time.Second); return nil }
			for i, s := range c.steps {
				r, err := consumer.Process(b.ctx, s.m, s.h)
				if got := fmt.Sprint(r.Outcome, " ", r.Reason, " ", r.Attempts); err != nil || got != s.want {
					t.Errorf("step %d: got %s, %v, want %s", i+1, got, err, s.want)
				}
				// The offset was not committed: it comes again, and changes nothing.
				if again, err := consumer.Process(b.ctx, s.m, ok); err != nil || again.Outcome == Applied {
					t.Errorf("step %d again: got %s, %v", i+1, again.Outcome, err)
				}
			}
			if seen < 2*len(c.steps) {
				t.Errorf("observed %d results of %d", seen, 2*len(c.steps))
			}
			b.expect(c.applied, `select coalesce(string_agg(version::text, ' ' order by n), '') from effects`)
		})
	}
}

func TestRejectedGap(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.consumer(ConsumerOptions{Versions: RejectGaps})
	m := message("a", 3)
	for _, want := range []error{nil, ErrGap} {
		next := message("a", 1)
		if want != nil {
			next = m
		}
		if _, err := c.Process(b.ctx, next, effect("billing")); !errors.Is(err, want) {
			t.Fatalf("got %v, want %v", err, want)
		}
	}
	for _, next := range []Message{message("a", 2), m} {
		if r, err := c.Process(b.ctx, next, effect("billing")); err != nil || r.Outcome != Applied {
			t.Errorf("%+v %v", r, err)
		}
	}
}

func TestBadCalls(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]ConsumerOptions{
		"name": {}, "blank": {Name: " "}, "nul": {Name: "\x00"}, "policy": {Name: "a", Dedup: 9},
		"contradiction": {Name: "a", Dedup: ByVersion, Versions: IgnoreVersions}, "negative": {Name: "a", Floor: -1},
	} {
		if _, err := NewConsumer(BeginnerFunc(nil), o); err == nil || err.(*Error).Hint() == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, o := range map[string]WriterOptions{
		"table": {Table: "a.b.c"}, "quote": {Table: `"a`}, "long": {Table: strings.Repeat("a", 64)}, "payload": {Payload: "xml"}, "size": {MaxBytes: -1},
	} {
		if _, err := NewWriter(o); err == nil || err.(*Error).Hint() == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := must(NewConsumer(BeginnerFunc(nil), ConsumerOptions{Name: "a"}))
	if _, err := c.Process(t.Context(), Message{}, effect("")); !errors.Is(err, ErrNotAnEvent) {
		t.Errorf("no id: %v", err)
	}
	if _, err := c.Process(t.Context(), message("a", 1), nil); err == nil {
		t.Error("no handler")
	}
	if _, err := c.Sweep(t.Context(), SweepPolicy{Processed: time.Hour}, false); err == nil || err.(*Error).Hint() == "" {
		t.Errorf("sweep without a floor: %v", err)
	}
}

func TestTablesMissing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec("drop table processed_events")
	_, err := b.consumer(ConsumerOptions{}).Process(b.ctx, message("a", 1), effect("billing"))
	if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Hint(), "outbox.Migrate") {
		t.Errorf("got %v", err)
	}
}

func TestProcessTx(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.consumer(ConsumerOptions{})
	process := func(m Message, h Handler, want Outcome, commit bool) {
		t.Helper()
		failed := errors.New("rolled back")
		err := b.in(func(tx pgx.Tx) error {
			r, err := c.ProcessTx(b.ctx, tx, m, h)
			if err != nil || r.Outcome != want {
				t.Errorf("got %s, %v, want %s", r.Outcome, err, want)
			}
			if !commit {
				return failed
			}
			return err
		})
		if commit && err != nil || !commit && !errors.Is(err, failed) {
			t.Errorf("commit: %v", err)
		}
	}
	one, two, three := message("a", 1), message("a", 2), message("a", 3)
	ok := effect("billing")
	process(one, ok, Applied, false)
	process(one, ok, Applied, true)
	process(one, ok, Duplicate, true)
	process(three, ok, Parked, false)
	process(three, ok, Parked, true)
	process(three, ok, Parked, true)
	process(two, ok, Applied, true)
	process(three, ok, Applied, true) // its turn has come
	process(message("a", 1), ok, Stale, true)
	no := errors.New("no")
	if err := b.in(func(tx pgx.Tx) error {
		_, err := c.ProcessTx(b.ctx, tx, message("a", 4), func(context.Context, pgx.Tx, Message) error { return no })
		return err
	}); !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
	b.expect("1 2 3", `select string_agg(version::text, ' ' order by n) from effects`)
	b.expect("0", `select count(*)::text from parked_events where resolved_at is null`)
}

func TestProcessBatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	transactions := 0
	b.pool.fault = func(step string) error {
		if step == "commit" {
			transactions++
		}
		return nil
	}
	c := b.consumer(ConsumerOptions{MaxAttempts: 1})
	bad := message("c", 1)
	h := func(ctx context.Context, tx pgx.Tx, m Message) error {
		if m.ID == bad.ID {
			return errors.New("no")
		}
		return effect("billing")(ctx, tx, m)
	}
	outcomes := func(rs []Result, err error) string {
		list := []string{fmt.Sprint(err)}
		for _, r := range rs {
			list = append(list, r.Outcome.String())
		}
		return strings.Join(list, " ")
	}
	one := message("a", 1)
	for _, step := range []struct {
		ms      []Message
		want    string
		commits int
	}{
		{[]Message{one, message("a", 2), message("b", 7), one, message("a", 3)}, "<nil> applied applied applied duplicate applied", 1},
		{[]Message{message("a", 5), message("b", 8)}, "<nil> parked applied", 2},
		{[]Message{message("a", 4), message("b", 9)}, "<nil> applied applied", 2}, // and version 5 behind it
		{[]Message{message("b", 10), bad, message("c", 2), message("b", 11)}, "<nil> applied parked parked applied", 4},
		{[]Message{message("d", 1), {}, message("d", 2)}, "message at /0 offset 0: it has no event id applied", 1},
		{nil, "<nil>", 0},
	} {
		transactions = 0
		if got := outcomes(c.ProcessBatch(b.ctx, step.ms, h)); got != step.want || transactions != step.commits {
			t.Errorf("got %s in %d transactions, want %s in %d", got, transactions, step.want, step.commits)
		}
	}
	b.expect("1 2 3 4 5", `select string_agg(version::text, ' ' order by n) from effects where aggregate_id = 'a'`)
}

// A message that ends the process is found and parked, and those around it are
// applied; also when offsets are committed only now and then.
func TestCrashGuard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ batch, commit int }{{1, 1}, {1, 5}, {4, 4}, {3, 100}, {100, 100}} {
		t.Run(fmt.Sprint("batches of ", c.batch, " committed every ", c.commit), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var log []Message
			for i := range 12 {
				m := message(fmt.Sprint("a", i%2), int64(1+i/2))
				m.Offset = int64(100 + i)
				log = append(log, m)
			}
			killer := log[7] // version 4 of a1
			h := func(ctx context.Context, tx pgx.Tx, m Message) error {
				if m.ID == killer.ID {
					panic("out of memory")
				}
				return effect("billing")(ctx, tx, m)
			}
			committed, starts := 0, 0
			process := func() (ended bool) {
				defer func() { ended = recover() != nil }()
				starts++
				consumer := b.consumer(ConsumerOptions{CrashGuard: true})
				for at := committed; at < len(log); {
					rs, err := consumer.ProcessBatch(b.ctx, log[at:min(at+c.batch, len(log))], h)
					if err != nil {
						t.Fatal(err)
					}
					if at += len(rs); at-committed >= c.commit || at == len(log) {
						committed = at
					}
				}
				return false
			}
			for process() {
				if starts == 8 {
					t.Fatal("the event is not found")
				}
			}
			b.expect("6 3", `select concat_ws(' ', count(*) filter (where aggregate_id = 'a0'), count(*) filter (where aggregate_id = 'a1')) from effects`)
			b.expect("crash 4 gap 5 gap 6", `select string_agg(reason || ' ' || aggregate_version, ' ' order by aggregate_version) from parked_events`)
		})
	}
}

// Starts, stops and errors that end nothing park nothing.
func TestCrashGuardLeavesTheInnocentAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := message("a", 1)
	first.Offset = 100
	for range 6 { // the group is reset, and each process stops in order
		c := b.consumer(ConsumerOptions{CrashGuard: true})
		for i := range 5 {
			m := message("a", int64(1+i))
			if m.Offset = int64(100 + i); i == 0 {
				m = first
			}
			if r, err := c.Process(b.ctx, m, effect("billing")); err != nil || r.Outcome == Parked {
				t.Errorf("%s, %v", r.Outcome, err)
			}
		}
		ctx, stop := context.WithCancel(b.ctx)
		m := message("z", 1)
		m.Offset = 200
		if _, err := c.Process(ctx, m, func(context.Context, pgx.Tx, Message) error { stop(); return ctx.Err() }); !errors.Is(err, context.Canceled) {
			t.Errorf("stopped: %v", err)
		}
	}
	b.expect("0", `select count(*)::text from parked_events`)
}

func TestParkedEventsAndDiscard(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.consumer(ConsumerOptions{MaxAttempts: 1})
	no := func(context.Context, pgx.Tx, Message) error { return errors.New("no stock") }
	ms := []Message{message("a", 1), message("a", 2), message("a", 3)}
	for _, m := range ms {
		if _, err := c.Process(b.ctx, m, no); err != nil {
			t.Fatal(err)
		}
	}
	list := must(c.Parked(b.ctx, ParkedFilter{Reasons: []Reason{Failed}}))
	if len(list) != 1 || list[0].Message.ID != ms[0].ID || list[0].Err != "no stock" || list[0].Attempts != 1 {
		t.Errorf("parked %+v", list)
	}
	if s := must(c.Stats(b.ctx)); s.Parked[Failed] != 1 || s.Parked[Gap] != 2 || s.OldestGap <= 0 || !s.Floor.IsZero() {
		t.Errorf("stats %+v", s)
	}
	if err := c.Discard(b.ctx, ms[1].ID, "obsolete"); !errors.Is(err, ErrNotHead) {
		t.Errorf("discard behind the head: %v", err)
	}
	if err := c.Discard(b.ctx, ms[0].ID, "obsolete"); err != nil {
		t.Error(err)
	}
	if err := c.Discard(b.ctx, ms[0].ID, "obsolete"); !errors.Is(err, ErrNotParked) {
		t.Errorf("discard again: %v", err)
	}
	if r, err := c.Process(b.ctx, ms[0], effect("billing")); err != nil || r.Outcome != Duplicate {
		t.Errorf("discarded, and sent again: %s %v", r.Outcome, err)
	}
	b.expect("2 3", `select string_agg(version::text, ' ' order by n) from effects`)
	b.expect("discarded: obsolete", `select resolution from parked_events where event_id = $1::uuid`, ms[0].ID.String())
}

func TestSweep(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.consumer(ConsumerOptions{Floor: day})
	for i := range 25 {
		must(c.Process(b.ctx, message(fmt.Sprint(i), 1), effect("billing")))
	}
	must(c.Process(b.ctx, message("0", 3), effect("billing"))) // parked
	other := b.consumer(ConsumerOptions{Name: "mail"})
	must(other.Process(b.ctx, message("0", 1), effect("mail")))
	b.exec(`update processed_events set processed_at = processed_at - interval '3 days'`)
	b.exec(`update consumer_positions set updated_at = updated_at - interval '3 days'`)
	policy := SweepPolicy{Processed: 2 * day, Positions: 2 * day, Resolved: day, Batch: 10}
	dry := must(c.Sweep(b.ctx, policy, true))
	b.expect("26 26", `select concat_ws(' ', (select count(*) from processed_events), (select count(*) from consumer_positions))`)
	b.expect("0", `select count(*)::text from consumer_floors`)
	wet := must(c.Sweep(b.ctx, policy, false))
	for _, r := range []SweepReport{dry, wet} {
		// The position with a parked event stays.
		if r.Processed != 25 || r.Positions != 24 || r.Resolved != 0 || r.Floor.IsZero() {
			t.Errorf("%+v", r)
		}
	}
	b.expect("1 2", `select concat_ws(' ', (select count(*) from processed_events), (select count(*) from consumer_positions))`)
}
