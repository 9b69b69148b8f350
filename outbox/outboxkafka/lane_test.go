package outboxkafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/outbox"
)

// script answers for a consumer: it is asked at each event, and looks at what is
// marked by then.
type script struct {
	marks *marks
	seen  []int64 // the offsets of the events, in the order of the calls
	at    []int64 // what was marked when each was begun
	do    func(offset int64) error
}

func (s *script) Process(_ context.Context, m outbox.Message, _ outbox.Handler) (outbox.Result, error) {
	s.seen = append(s.seen, m.Offset)
	s.marks.mu.Lock()
	s.at = append(s.at, s.marks.offsets["t"][0])
	s.marks.mu.Unlock()
	if err := s.do(m.Offset); err != nil {
		return outbox.Result{}, err
	}
	return outbox.Result{Message: m, Outcome: outbox.Applied}, nil
}

func (s *script) ProcessBatch(ctx context.Context, ms []outbox.Message, h outbox.Handler) ([]outbox.Result, error) {
	var results []outbox.Result
	for _, m := range ms {
		r, err := s.Process(ctx, m, h)
		if err != nil {
			return results, err
		}
		results = append(results, r)
	}
	return results, nil
}

func scripted(t *testing.T, o Options, do func(int64) error) (*lane, *script, *log) {
	t.Helper()
	lines := &log{}
	c, err := outbox.NewConsumer(outbox.BeginnerFunc(nil), outbox.ConsumerOptions{Name: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	o.Brokers, o.Group, o.Topics, o.Consumer, o.Handler = []string{"localhost:1"}, "g", []string{"t"}, c, effect
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{marks: newMarks(), do: do}
	r.consumer = s
	r.log = lines.logger()
	return &lane{runner: r, log: r.log, topic: "t", marks: s.marks}, s, lines
}

func queue(n int) batch {
	b := batch{next: int64(n)}
	for i := range n {
		m := event(0, "a", int64(i+1))
		m.Topic, m.Offset = "t", int64(i)
		b.records = append(b.records, m)
	}
	return b
}

// TestO8MarkAfterEffect: nothing is marked before it has been dealt with.
func TestO8MarkAfterEffect(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 4} {
		l, s, _ := scripted(t, Options{Batch: size}, func(int64) error { return nil })
		l.process(t.Context(), t.Context(), queue(6))
		if !slices.Equal(s.seen, []int64{0, 1, 2, 3, 4, 5}) {
			t.Errorf("batches of %d: saw %v", size, s.seen)
		}
		for i, marked := range s.at {
			if marked > s.seen[i] {
				t.Errorf("batches of %d: %d was marked when the event at offset %d was begun", size, marked, s.seen[i])
			}
		}
		if got := s.marks.take()["t"][0]; got != 6 {
			t.Errorf("batches of %d: marked %d in the end, want 6", size, got)
		}
	}
}

// TestLostPartition: what is in hand is finished and marked, what is queued is
// left to the next owner.
func TestLostPartition(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	l, s, _ := scripted(t, Options{}, func(offset int64) error {
		if offset == 2 {
			cancel()
		}
		return nil
	})
	l.process(ctx, t.Context(), queue(10))
	if !slices.Equal(s.seen, []int64{0, 1, 2}) {
		t.Errorf("saw %v, want what was begun before the partition was lost", s.seen)
	}
	if got := s.marks.take()["t"][0]; got != 3 {
		t.Errorf("marked %d, want 3", got)
	}
}

// TestGivenUp: an event that does not end in time is neither marked nor called a
// failure.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	l, s, lines := scripted(t, Options{}, func(offset int64) error {
		if offset < 2 {
			return nil
		}
		cancel()
		return errRevoked
	})
	l.process(ctx, t.Context(), queue(5))
	if got := s.marks.take()["t"][0]; got != 2 {
		t.Errorf("marked %d, want 2", got)
	}
	if lines.count("left to the next owner") != 1 || lines.count("stands still") != 0 {
		t.Errorf("log:\n%s", lines)
	}
}

// TestSameErrorIsLoggedOnce: a database that is down for hours fills no log.
func TestSameErrorIsLoggedOnce(t *testing.T) {
	t.Parallel()
	left := 4
	l, s, lines := scripted(t, Options{Batch: 3}, func(offset int64) error {
		if left--; offset == 1 && left >= 0 {
			return fmt.Errorf("down: %w", errDown)
		}
		return nil
	})
	l.process(t.Context(), t.Context(), queue(3))
	if got := s.marks.take()["t"][0]; got != 3 {
		t.Errorf("marked %d, want 3", got)
	}
	if lines.count("stands still") != 1 || lines.count("goes on") != 1 {
		t.Errorf("log:\n%s", lines)
	}
	if !slices.Equal(s.seen, []int64{0, 1, 1, 1, 1, 2}) {
		t.Errorf("saw %v: what was done must not be done again", s.seen)
	}
}

// TestStranger: the records around one that is no event keep their order and
// their marks.
func TestStranger(t *testing.T) {
	t.Parallel()
	b := queue(6)
	b.records[3].Headers = nil
	asked := 0
	refuse := errors.New("not yet")
	var l *lane
	var s *script
	l, s, _ = scripted(t, Options{Batch: 10, NotAnEvent: func(_ context.Context, m kafka.Message, _ error) error {
		if asked++; asked == 1 {
			if got := s.marks.offsets["t"][0]; got != 3 {
				t.Errorf("marked %d when the stranger's turn came, want 3", got)
			}
			return refuse
		}
		return nil
	}}, func(int64) error { return nil })
	l.process(t.Context(), t.Context(), b)
	if !slices.Equal(s.seen, []int64{0, 1, 2, 4, 5}) || asked != 2 {
		t.Errorf("saw %v, asked %d times", s.seen, asked)
	}
	if got := s.marks.take()["t"][0]; got != 6 {
		t.Errorf("marked %d, want 6", got)
	}
}
