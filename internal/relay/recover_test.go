package relay

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

// TestFencedWhileRecoveringEnds: whoever is fenced while it looks at Kafka does
// not take the id again. It would fence the other one, and that one it.
func TestFencedWhileRecoveringEnds(t *testing.T) {
	t.Parallel()
	l := &left{recovering: func(context.Context) error {
		return &sink.FencedError{TransactionalID: "walpost-7000-walpost", Err: kafkaAnswer{}}
	}}
	b := withLeft(t, l)
	b.start()
	b.commit(row{"1", "a", "x"})
	err := b.result()
	if !IsFenced(err) || NeedsDecision(err) {
		t.Errorf("the relay ended with %v", err)
	}
	want := []string{"load", "open, remembering 0/0", "claim 7000 in k", "recover 0 partitions"}
	if got := l.noted(); !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	if b.confirmed() != 100 {
		t.Errorf("confirmed %v", b.confirmed())
	}
}

// TestFencedWhileStoppingIsToldSo: a stop that comes at the same time does not
// hide who relays now.
func TestFencedWhileStoppingIsToldSo(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	l := &left{recovering: func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		return &sink.FencedError{TransactionalID: "walpost-7000-walpost", Err: kafkaAnswer{}}
	}}
	b := withLeft(t, l)
	b.start()
	<-begun
	b.stop(nil)
	if err := b.result(); !IsFenced(err) {
		t.Errorf("the relay ended with %v", err)
	}
}

// TestKafkaThatRefusesIsNamed: what Kafka answers while the relay looks at it is
// not said of PostgreSQL, and is tried again.
func TestKafkaThatRefusesIsNamed(t *testing.T) {
	t.Parallel()
	var refuse = make(chan struct{}, 1)
	refuse <- struct{}{}
	held := make(chan Snapshot, 1)
	l := &left{}
	b := withLeft(t, l)
	l.recovering = func(context.Context) error {
		select {
		case <-refuse:
			return kafkaAnswer{}
		default:
			held <- b.relay.Snapshot()
			return nil
		}
	}
	b.start()
	b.await("holding", func() bool { s := b.relay.Snapshot(); return s.State == Holding && s.Reason == "kafka_refuses" })
	_, end := b.commit(row{"1", "a", "x"})
	b.awaitConfirmed(end)
	if s := <-held; s.Ready {
		t.Error("ready before Kafka was read")
	}
}

// TestStopWhileRecovering: the stream is closed in good order, which needs
// somebody who reads the server's answer (the fake's Close sees to that).
func TestStopWhileRecovering(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	l := &left{recovering: func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		return context.Cause(ctx)
	}}
	b := withLeft(t, l)
	b.start()
	<-begun
	b.commit(row{"1", "a", "x"})
	b.keepalive(0)
	b.stop(errors.New("SIGTERM"))
	if err := b.result(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if got := b.kafka.values(); len(got) != 0 {
		t.Errorf("submitted %q although Kafka was not read", got)
	}
	if b.confirmed() != 100 {
		t.Errorf("confirmed %v", b.confirmed())
	}
}

// TestHeartbeatUnderWayPutsRecoveryOff: the sink must not be recovered over
// records that it is sending, also where they belong to no transaction.
func TestHeartbeatUnderWayPutsRecoveryOff(t *testing.T) {
	t.Parallel()
	l := &left{}
	b := withLeft(t, l)
	b.start()
	_, end := b.commit(row{"1", "a", "x"})
	b.awaitConfirmed(end)
	first := l.noted()
	b.kafka.inFlight(1)
	b.refuse(slot.ErrInUse)
	opened := b.sessions()
	b.cut()
	b.await("the look after the loss", func() bool { return b.sessions() >= opened+2 })
	for _, call := range l.noted()[len(first):] {
		if call == "load" {
			t.Error("the relay begins anew with a record in flight")
		}
	}
	b.kafka.inFlight(0)
	b.await("a new beginning", func() bool { return slices.Contains(l.noted()[len(first):], "load") })
	b.beginsAnew(l)
}

// inFlight is what Status will say.
func (k *kafka) inFlight(n int) {
	k.mu.Lock()
	k.status.InFlightRecords = n
	k.mu.Unlock()
}

// TestStoreIsAskedForALimitedTime: a connection that hangs must not hold a
// session for ever.
func TestStoreIsAskedForALimitedTime(t *testing.T) {
	t.Parallel()
	l := &left{loaded: leftAt(50, 0), claimed: leftAt(50, 0), grown: map[sink.Partition]int64{{Topic: "t"}: 5}}
	b := withLeft(t, l)
	b.start()
	_, end := b.commit(row{"1", "a", "x"})
	b.awaitConfirmed(end)
	b.stop(nil)
	if err := b.result(); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unbounded {
		t.Error("a call of the store has no deadline")
	}
}

// TestTakenOverAtTheEndIsToldSo: what ended the relay and what it found out are
// there at once, and which is seen first must not be chance.
func TestTakenOverAtTheEndIsToldSo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 {
		r := &recovery{succeeded: make(chan error, 1)}
		r.takenOver(&sink.FencedError{Err: kafkaAnswer{}})
		if err := r.run(ctx); !IsFenced(err) {
			t.Fatalf("ended with %v", err)
		}
	}
	if err := (&recovery{}).run(ctx); err != nil {
		t.Errorf("an ordinary end gives %v", err)
	}
}
