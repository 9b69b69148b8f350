package outboxkafka

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/outbox"
)

// TestRun: everything arrives, in order, once; the offsets follow, and a member
// that comes later finds nothing to do.
func TestRun(t *testing.T) {
	t.Parallel()
	for name, batch := range map[string]int{"one by one": 1, "in batches": 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setup(t, 3)
			r.publish(r.some(1, 40)...)
			var results atomic.Int64
			c := r.consumer(outbox.ConsumerOptions{Observe: func(outbox.Result) { results.Add(1) }})
			m := r.start(Options{Consumer: c, Batch: batch})
			r.awaitEffects(120)
			r.publish(r.some(41, 50)...)
			r.awaitEffects(150)
			testkit.Await(t, "the lanes to be at the end", func() bool {
				return !slices.ContainsFunc(m.Partitions(), func(p Partition) bool { return p.Next != 50 || p.End != 50 || p.Err != nil })
			})
			m.stop()
			r.check(150)
			if got := r.committed(); !slices.Equal(got, []int64{50, 50, 50}) {
				t.Errorf("committed %v, want 50 for each", got)
			}
			if m.owned() != 0 {
				t.Errorf("a stopped member has %d partitions", m.owned())
			}
			before := results.Load()
			second := r.start(Options{Consumer: c})
			testkit.Await(t, "the second member to have the partitions", func() bool { return second.owned() == 3 })
			second.stop()
			if results.Load() != before {
				t.Errorf("%d events came again after a graceful stop", results.Load()-before)
			}
		})
	}
}

// faulty fails the transactions that it is asked to.
type faulty struct {
	outbox.Beginner
	fail atomic.Bool
}

var errDown = errors.New("the database is down")

func (f *faulty) Begin(ctx context.Context) (pgx.Tx, error) {
	if f.fail.Load() {
		return nil, errDown
	}
	return f.Beginner.Begin(ctx)
}

// TestO8OffsetAfterEffect: an offset is committed only when the effect is, or the
// event is durably parked: also by the last commit of a stop.
func TestO8OffsetAfterEffect(t *testing.T) {
	t.Parallel()
	for name, batch := range map[string]int{"one by one": 1, "in batches": 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setup(t, 1)
			r.publish(r.some(1, 3)...)
			db := &faulty{Beginner: r.db}
			m := r.start(Options{Consumer: r.consumerOn(db, outbox.ConsumerOptions{}), Batch: batch})
			r.awaitEffects(3)
			testkit.Await(t, "the first three to be committed", func() bool { return r.committed()[0] == 3 })
			db.fail.Store(true)
			r.publish(r.some(4, 6)...)
			m.awaitLog("partition stands still")
			if p := m.Partitions()[0]; p.Next != 3 || !errors.Is(p.Err, errDown) || p.Since.IsZero() {
				t.Errorf("the lane is at %+v, want 3 and the error", p)
			}
			m.stop()
			if got := r.committed()[0]; got != 3 {
				t.Errorf("committed %d although the effect of offset 3 never was", got)
			}
			r.check(3)

			db.fail.Store(false)
			m = r.start(Options{Consumer: r.consumerOn(db, outbox.ConsumerOptions{}), Batch: batch})
			r.awaitEffects(6)
			m.stop()
			if got := r.committed()[0]; got != 6 {
				t.Errorf("committed %d, want 6", got)
			}
			r.check(6)
		})
	}
}

// TestPartitionGoesOn: a database that comes back is enough.
func TestPartitionGoesOn(t *testing.T) {
	t.Parallel()
	r := setup(t, 2)
	db := &faulty{Beginner: r.db}
	db.fail.Store(true)
	r.publish(r.some(1, 5)...)
	m := r.start(Options{Consumer: r.consumerOn(db, outbox.ConsumerOptions{})})
	m.awaitLog("partition stands still")
	db.fail.Store(false)
	m.awaitLog("partition goes on")
	r.awaitEffects(10)
	m.stop()
	r.check(10)
}

// TestPoison: an event whose handler fails is parked, those of its aggregate queue
// behind it, and all others go on.
func TestPoison(t *testing.T) {
	t.Parallel()
	r := setup(t, 1)
	var broken atomic.Bool
	broken.Store(true)
	handler := func(ctx context.Context, tx pgx.Tx, m outbox.Message) error {
		if m.AggregateID == "bad" && m.Version == 1 && broken.Load() {
			return errors.New("no such customer")
		}
		return effect(ctx, tx, m)
	}
	var records []kafka.Message
	for v := int64(1); v <= 3; v++ {
		records = append(records, event(0, "bad", v), event(0, "good", v))
	}
	r.publish(records...)
	c := r.consumer(outbox.ConsumerOptions{MaxAttempts: 2})
	m := r.start(Options{Consumer: c, Handler: handler})
	testkit.Await(t, "all six to be committed", func() bool { return r.committed()[0] == 6 })
	m.stop()
	if n := r.scalar("select count(*) from effects where aggregate = 'good'"); n != 3 {
		t.Errorf("%d effects of the good one, want 3", n)
	}
	if n := m.log.count("event parked"); n != 3 {
		t.Errorf("%d parked events were logged, want 3", n)
	}
	broken.Store(false)
	report, err := c.Resume(t.Context(), handler, outbox.ParkedFilter{})
	if err != nil || report.Applied != 3 {
		t.Errorf("resume: %+v, %v; want 3 applied", report, err)
	}
	r.check(6)
}

// TestRejectedGap: the partition stands still, tells why, and others do not; the
// missing event cures it.
func TestRejectedGap(t *testing.T) {
	t.Parallel()
	r := setup(t, 2)
	missing := event(0, "a0", 2)
	r.publish(event(0, "a0", 1), event(0, "a0", 3))
	r.publish(event(1, "a1", 1), event(1, "a1", 2))
	c := r.consumer(outbox.ConsumerOptions{Versions: outbox.RejectGaps})
	m := r.start(Options{Consumer: c, Batch: 5})
	m.awaitLog("find the missing events")
	r.awaitEffects(3)
	testkit.Await(t, "the offsets of what was done", func() bool { return slices.Equal(r.committed(), []int64{1, 2}) })
	if p := m.Partitions()[0]; !errors.Is(p.Err, outbox.ErrGap) {
		t.Errorf("partition 0: %+v, want ErrGap", p)
	}
	message, err := parse(&missing)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Process(t.Context(), message, effect); err != nil {
		t.Fatal(err)
	}
	r.awaitEffects(5)
	m.stop()
	r.check(5)
}

// TestNotAnEvent: nothing is skipped unless somebody says so.
func TestNotAnEvent(t *testing.T) {
	t.Parallel()
	r := setup(t, 1)
	stranger := kafka.Message{Value: []byte("hello")}
	r.publish(event(0, "a0", 1), stranger, event(0, "a0", 2), event(0, "a0", 3), stranger)
	m := r.start(Options{Batch: 10})
	m.awaitLog("partition stands still")
	m.stop()
	r.check(1)
	if got := r.committed()[0]; got != 1 {
		t.Errorf("committed %d, want 1", got)
	}
	var skipped atomic.Int64
	m = r.start(Options{Batch: 10, NotAnEvent: func(_ context.Context, record kafka.Message, why error) error {
		if string(record.Value) != "hello" || !errors.Is(why, outbox.ErrNotAnEvent) {
			t.Errorf("asked about %q: %v", record.Value, why)
		}
		skipped.Add(1)
		return nil
	}})
	testkit.Await(t, "all to be committed", func() bool { return r.committed()[0] == 5 })
	m.stop()
	r.check(3)
	if skipped.Load() != 2 {
		t.Errorf("%d records were passed over, want 2", skipped.Load())
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	c, err := outbox.NewConsumer(outbox.BeginnerFunc(func(context.Context) (pgx.Tx, error) { return nil, errDown }), outbox.ConsumerOptions{Name: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	good := Options{Brokers: []string{"localhost:9092"}, Group: "g", Topics: []string{"b", "a", "b"}, Consumer: c, Handler: effect}
	runner, err := New(good)
	if err != nil {
		t.Fatal(err)
	}
	if o := runner.opt; !slices.Equal(o.Topics, []string{"a", "b"}) || o.Start != kafka.FirstOffset || o.Batch != 1 || o.Log == nil || o.Dialer == nil {
		t.Errorf("defaults: %+v", o)
	}
	for want, change := range map[string]func(*Options){
		"no brokers":     func(o *Options) { o.Brokers = nil },
		"has no name":    func(o *Options) { o.Group = "" },
		"no topics":      func(o *Options) { o.Topics = []string{""} },
		"no consumer":    func(o *Options) { o.Consumer = nil },
		"no handler":     func(o *Options) { o.Handler = nil },
		"start 7":        func(o *Options) { o.Start = 7 },
		"negative":       func(o *Options) { o.Batch = -1 },
		"drain":          func(o *Options) { o.Drain = o.SessionTimeout + 1<<40 },
		"is not shorter": func(o *Options) { o.SessionTimeout = 1 << 30 },
	} {
		o := good
		change(&o)
		_, err := New(o)
		var hinted interface{ Hint() string }
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &hinted) || hinted.Hint() == "" {
			t.Errorf("%v: want one with %q and a hint", err, want)
		}
	}
}

// TestI7FetchBytes: whatever the number of partitions, what is held is bounded.
func TestI7FetchBytes(t *testing.T) {
	t.Parallel()
	o := Options{MaxBytes: defaultMaxBytes}
	for lanes, want := range map[int]int64{0: maxFetch, 1: maxFetch, 32: maxFetch, 64: maxFetch / 2, 1000: 33554, 1 << 20: minFetch} {
		if got := o.fetchBytes(lanes); got != want {
			t.Errorf("%d lanes: %d bytes, want %d", lanes, got, want)
		}
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	m := newMarks()
	m.set("t", 0, 5)
	m.set("t", 0, 3)
	m.set("t", 1, 1)
	first := m.take()
	if first["t"][0] != 5 || first["t"][1] != 1 || len(m.take()) != 0 {
		t.Errorf("took %v", first)
	}
	m.set("t", 0, 7)
	m.giveBack(first)
	if got := m.take(); got["t"][0] != 7 || got["t"][1] != 1 {
		t.Errorf("after giving back: %v", got)
	}
}
