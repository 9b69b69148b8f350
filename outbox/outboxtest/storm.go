package outboxtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/outbox"
)

// Storm delivers events to a consumer as a bad day does, and then calls check,
// which looks at what the handler was to do: every event's effect, once.
//
//   - The first time that the handler has done an event, its connection is cut
//     before the commit, as when the process is killed there. The event comes
//     again.
//   - Every event comes twice, and the two copies at the same time.
//   - Of two events of an aggregate that have versions, the later one comes first.
//     The first event of an aggregate and events without a version keep their
//     place: nothing could know about them.
//   - Aggregates are worked on at the same time.
//   - At the end everything comes once more from the start, as when the group's
//     offsets are reset.
//
// The events are in the order in which they happened and complete: a version that
// is missing among them fails the test, as does every event that is parked in the
// end. The consumer's database must be a pool, such as a *pgxpool.Pool or a
// *Database. A consumer of the same name that knows the events already would make
// the storm pointless, and fails it, too.
func Storm(t testing.TB, c *outbox.Consumer, h outbox.Handler, events []outbox.Message, check func()) {
	t.Helper()
	if c == nil || h == nil || check == nil || len(events) == 0 {
		t.Fatalf("outboxtest: Storm needs a consumer, a handler, events and a check")
	}
	s := &storm{consumer: c, handler: h, applied: map[uuid.UUID]int{}, killed: map[uuid.UUID]bool{}}
	// The first one comes alone: a consumer without a pool is found out before
	// anything uses its one connection at the same time.
	s.note(s.deliver(t.Context(), events[0]))
	if s.problem == nil {
		s.wind(t.Context(), events)
	}
	if s.problem == nil {
		s.reset(t.Context(), events)
	}
	if s.problem == nil {
		s.look(t.Context(), events)
	}
	if s.problem != nil {
		t.Fatalf("outboxtest: %v", s.problem)
	}
	t.Logf("storm over %d events: %d deliveries, %d kills before the commit", len(events), s.deliveries, len(s.killed))
	check()
}

type storm struct {
	consumer *outbox.Consumer
	handler  outbox.Handler

	mu         sync.Mutex
	deliveries int
	applied    map[uuid.UUID]int
	killed     map[uuid.UUID]bool
	problem    error // the first one
}

// lanes is how many aggregates are worked on at the same time.
const lanes = 6

// wind is everything but the reset.
func (s *storm) wind(ctx context.Context, events []outbox.Message) {
	type aggregate struct{ kind, id string }
	var order []aggregate
	of := map[aggregate][]outbox.Message{}
	for _, m := range events {
		a := aggregate{m.AggregateType, m.AggregateID}
		if of[a] == nil {
			order = append(order, a)
		}
		of[a] = append(of[a], m)
	}
	var running sync.WaitGroup
	free := make(chan struct{}, lanes)
	for _, a := range order {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			s.lane(ctx, of[a])
		})
	}
	running.Wait()
}

// lane delivers the events of one aggregate.
func (s *storm) lane(ctx context.Context, ms []outbox.Message) {
	for i := 0; i < len(ms) && !s.failed(); i++ {
		if i > 0 && i+1 < len(ms) && ms[i].Version > 0 && ms[i+1].Version > 0 {
			s.swapped(ctx, ms[i], ms[i+1])
			i++
			continue
		}
		s.note(s.twice(ctx, ms[i]))
	}
}

// headStart is what the later event gets before the earlier one comes. It need
// not be done by then: a consumer that defers gaps waits for the earlier one.
const headStart = 100 * time.Millisecond

func (s *storm) swapped(ctx context.Context, early, late outbox.Message) {
	ahead := make(chan error, 1)
	go func() { ahead <- s.twice(ctx, late) }()
	timer := time.NewTimer(headStart)
	defer timer.Stop()
	var err error
	select {
	case err = <-ahead:
		s.note(s.twice(ctx, early))
	case <-timer.C:
		s.note(s.twice(ctx, early))
		err = <-ahead
	}
	if err != nil && !errors.Is(err, outbox.ErrGap) {
		s.note(err)
		return
	}
	// A consumer that rejects gaps gets the event again, as from Kafka.
	s.note(s.deliver(ctx, late))
}

// twice delivers two copies at the same time.
func (s *storm) twice(ctx context.Context, m outbox.Message) error {
	var both sync.WaitGroup
	var errs [2]error
	for i := range errs {
		both.Go(func() { errs[i] = s.deliver(ctx, m) })
	}
	both.Wait()
	return errors.Join(errs[:]...)
}

// tries is how often a delivery is repeated that failed, which is more than there
// are kills and copies to collide with.
const tries = 12

// deliver repeats a delivery until the offset could be committed. A gap is given
// back: what is missing is the storm's to deliver.
func (s *storm) deliver(ctx context.Context, m outbox.Message) error {
	wait := 5 * time.Millisecond
	for try := 1; ; try++ {
		r, err := s.consumer.Process(ctx, m, s.killing)
		s.mu.Lock()
		s.deliveries++
		if err == nil && r.Outcome == outbox.Applied {
			s.applied[m.ID]++
		}
		again := s.applied[m.ID] > 1
		s.mu.Unlock()
		switch {
		case again:
			return fmt.Errorf("%s was applied twice", &m)
		case err == nil || errors.Is(err, outbox.ErrGap):
			return err
		case try == tries || ctx.Err() != nil:
			return fmt.Errorf("%s could not be delivered in %d attempts: %w (the consumer needs a pool: connections are cut)", &m, try, err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		wait = min(2*wait, 500*time.Millisecond)
	}
}

// killing is the handler in a process that is killed, once per event, when the
// work is done and not committed.
func (s *storm) killing(ctx context.Context, tx pgx.Tx, m outbox.Message) error {
	if err := s.handler(ctx, tx, m); err != nil {
		return err
	}
	s.mu.Lock()
	before := s.killed[m.ID]
	s.killed[m.ID] = true
	s.mu.Unlock()
	if before {
		return nil
	}
	conn := tx.Conn()
	if conn == nil {
		return outbox.Permanent(errors.New("outboxtest: the transaction tells no connection, so it cannot be cut: use a pool of pgx"))
	}
	_ = conn.PgConn().Conn().Close() // the server sees that somebody has died
	_ = conn.Close(ctx)              // and pgx learns of it
	return errors.New("outboxtest: the process is killed before the commit")
}

// reset delivers everything once more, in order.
func (s *storm) reset(ctx context.Context, events []outbox.Message) {
	for _, m := range events {
		s.note(s.deliver(ctx, m))
	}
}

// look finds what the storm has left behind.
func (s *storm) look(ctx context.Context, events []outbox.Message) {
	ours := map[uuid.UUID]bool{}
	for _, m := range events {
		ours[m.ID] = true
	}
	parked, err := s.consumer.Parked(ctx, outbox.ParkedFilter{Limit: 1 << 20})
	s.note(err)
	for _, p := range parked {
		if ours[p.Message.ID] {
			s.note(fmt.Errorf("%s is parked in the end (%s): %s", &p.Message, p.Reason, p.Err))
		}
	}
	for _, m := range events {
		if !s.killed[m.ID] {
			s.note(fmt.Errorf("%s was passed over as known or stale, but the handler never did it", &m))
		}
	}
}

func (s *storm) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem == nil && err != nil {
		s.problem = err
	}
}

func (s *storm) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem != nil
}
