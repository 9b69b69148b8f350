package outboxkafka

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/topic"
	"github.com/walpost/walpost/outbox"
)

// TestO6Rebalances: members come and go under load, and every event has its
// effect once, in order.
func TestO6Rebalances(t *testing.T) {
	t.Parallel()
	r := setup(t, 4)
	const rounds = 6
	published := make(chan struct{})
	go func() {
		defer close(published)
		for v := range int64(rounds * 20) {
			r.publish(r.some(v+1, v+1)...)
		}
	}()
	first := r.start(Options{})
	second := r.start(Options{Batch: 7})
	testkit.Await(t, "both to have partitions", func() bool { return first.owned() == 2 && second.owned() == 2 })
	first.stop()
	testkit.Await(t, "the one that is left to have all", func() bool { return second.owned() == 4 })
	third := r.start(Options{Balancers: []kafka.GroupBalancer{kafka.RangeGroupBalancer{}}})
	testkit.Await(t, "the new one to have some", func() bool { return third.owned() == 2 && second.owned() == 2 })
	second.stop()
	<-published
	r.awaitEffects(4 * rounds * 20)
	third.stop()
	r.check(4 * rounds * 20)
	if got := r.committed(); !slices.Equal(got, []int64{rounds * 20, rounds * 20, rounds * 20, rounds * 20}) {
		t.Errorf("committed %v, want %d for each", got, rounds*20)
	}
}

// stuck is a handler that hangs until its context ends, the first time.
type stuck struct{ hung, freed atomic.Int64 }

func (s *stuck) handle(ctx context.Context, tx pgx.Tx, m outbox.Message) error {
	if s.hung.Add(1) == 1 {
		<-ctx.Done()
		s.freed.Add(1)
		return context.Cause(ctx)
	}
	return effect(ctx, tx, m)
}

// TestDrain: an event that takes too long does not keep the partition from its
// next owner, nor the runner from stopping. It is rolled back and comes again.
func TestDrain(t *testing.T) {
	t.Parallel()
	t.Run("rebalance", func(t *testing.T) {
		t.Parallel()
		r := setup(t, 2)
		r.publish(r.some(1, 5)...)
		var s stuck
		first := r.start(Options{Handler: s.handle, Drain: 100 * time.Millisecond})
		testkit.Await(t, "the handler to hang", func() bool { return s.hung.Load() > 0 })
		second := r.start(Options{})
		testkit.Await(t, "both to have a partition", func() bool { return first.owned() == 1 && second.owned() == 1 })
		r.awaitEffects(10)
		first.stop()
		second.stop()
		r.check(10)
		if s.freed.Load() != 1 || first.log.count("left to the next owner") != 1 {
			t.Errorf("freed %d times; log:\n%s", s.freed.Load(), first.log)
		}
	})
	t.Run("stop", func(t *testing.T) {
		t.Parallel()
		r := setup(t, 1)
		r.publish(r.some(1, 5)...)
		var s stuck
		m := r.start(Options{Handler: s.handle, Drain: 100 * time.Millisecond})
		testkit.Await(t, "the handler to hang", func() bool { return s.hung.Load() > 0 })
		m.stop()
		r.check(0)
		if got := r.committed()[0]; got > 0 {
			t.Errorf("committed %d, but nothing was done", got)
		}
		m = r.start(Options{})
		r.awaitEffects(5)
		m.stop()
		r.check(5)
	})
}

// TestReset: offsets that are set back bring everything again, and nothing happens.
func TestReset(t *testing.T) {
	t.Parallel()
	r := setup(t, 2)
	r.publish(r.some(1, 10)...)
	m := r.start(Options{})
	r.awaitEffects(20)
	m.stop()
	r.setOffsets(0, 0)
	var duplicates atomic.Int64
	m = r.start(Options{Batch: 4, Consumer: r.consumer(outbox.ConsumerOptions{Observe: func(result outbox.Result) {
		if result.Outcome == outbox.Duplicate {
			duplicates.Add(1)
		}
	}})})
	testkit.Await(t, "all to have come again", func() bool { return duplicates.Load() == 20 })
	m.stop()
	r.check(20)
	if got := r.committed(); !slices.Equal(got, []int64{10, 10}) {
		t.Errorf("committed %v, want 10 for each", got)
	}
}

// setOffsets sets the offsets of a group without members.
func (r *rig) setOffsets(offsets ...int64) {
	r.Helper()
	var list []kafka.OffsetCommit
	for p, offset := range offsets {
		list = append(list, kafka.OffsetCommit{Partition: p, Offset: offset})
	}
	r.again("set offsets", func() error {
		response, err := r.client.OffsetCommit(r.Context(), &kafka.OffsetCommitRequest{
			GroupID: r.group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{r.topic: list},
		})
		if err != nil {
			return err
		}
		for _, p := range response.Topics[r.topic] {
			err = errors.Join(err, p.Error)
		}
		return err
	})
}

// TestNewPartitions: a topic that does not exist yet, and one that grows.
func TestNewPartitions(t *testing.T) {
	t.Parallel()
	r := setup(t, 1)
	later := testkit.Unique("later")
	m := r.start(Options{Topics: []string{r.topic, later}, WatchEvery: 50 * time.Millisecond})
	testkit.Await(t, "the first partition", func() bool { return m.owned() == 1 })
	if m.log.count("topics do not exist yet") != 1 {
		t.Errorf("log:\n%s", m.log)
	}
	r.publish(event(0, "a", 1))
	r.awaitEffects(1)
	response, err := r.client.CreatePartitions(t.Context(), &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{
		Name: r.topic, Count: 2, TopicPartitionAssignments: nil,
	}}})
	if err == nil {
		err = response.Errors[r.topic]
	}
	if err != nil {
		t.Fatal(err)
	}
	testkit.CreateTopicSpec(t, r.brokers, topic.Spec{Name: later, Partitions: 1})
	testkit.Await(t, "three partitions", func() bool { return m.owned() == 3 })
	other := *r
	other.topic = later
	other.publish(event(0, "c", 1))
	r.publish(event(1, "b", 1))
	r.awaitEffects(3)
	m.stop()
	r.check(3)
}

// TestRunTwice: one Runner is one member.
func TestRunTwice(t *testing.T) {
	t.Parallel()
	r := setup(t, 1)
	m := r.start(Options{})
	testkit.Await(t, "the partition", func() bool { return m.owned() == 1 })
	err := m.Run(t.Context())
	var hinted interface{ Hint() string }
	if !errors.As(err, &hinted) {
		t.Errorf("%v, want an error with a hint", err)
	}
	m.stop()
	if err := m.Run(canceled()); err != nil {
		t.Errorf("again, after it has ended: %v", err)
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
