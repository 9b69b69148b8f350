package relay

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

func TestI1NothingIsConfirmedBeforeItIsAcked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start()
	_, firstEnd := b.commit(row{"1", "a", "one"}, row{"2", "b", "two"})
	_, secondEnd := b.commit(row{"3", "c", "three"})
	b.awaitRecords(3)
	b.kafka.ack(2) // the later transaction first
	b.kafka.ack(1)
	if got := b.confirmed(); got != 100 {
		t.Fatalf("confirmed %v although event 1 is pending", got)
	}
	b.kafka.ack(0)
	b.awaitConfirmed(secondEnd)
	if firstEnd >= secondEnd {
		t.Fatal("the script is wrong")
	}
}

func TestI3UndecodableMessageIsNotSkipped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.kafka.auto = true
	b.start()
	_, end := b.commit(row{"1", "a", "one"})
	b.awaitConfirmed(end)
	b.raw([]byte{'?', 1, 2, 3})
	b.commit(row{"2", "a", "two"})
	b.await("holding", func() bool { return b.relay.Snapshot().State == Holding })
	s := b.relay.Snapshot()
	if s.Reason != "decode" || s.Ready {
		t.Errorf("reason %q, ready %v; want decode and not ready", s.Reason, s.Ready)
	}
	if got := b.kafka.values(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("published %q behind a message that cannot be decoded", got)
	}
	if b.confirmed() != end {
		t.Errorf("confirmed %v, want %v", b.confirmed(), end)
	}
}

func TestI3UnmappableEventHoldsAndIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.kafka.auto = true
	b.start()
	_, end := b.commit(row{"1", "a", "one"})
	commit, _ := b.commit(row{"2", "", "no aggregate id"})
	b.commit(row{"3", "a", "three"})
	b.await("holding", func() bool { return b.relay.Snapshot().State == Holding })
	s := b.relay.Snapshot()
	if s.Reason != "poison" || s.Ready || s.Poison == nil {
		t.Fatalf("snapshot %+v", s)
	}
	if s.Poison.EventID != "2" || s.Poison.Table != "public.outbox_events" || s.Poison.CommitLSN != commit || s.Poison.Ordinal != 1 {
		t.Errorf("poison %+v", *s.Poison)
	}
	if got := b.kafka.values(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("published %q", got)
	}
	b.awaitConfirmed(end)
	b.stop(nil) // and a soft stop does not wait for it
	if err := b.result(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if b.confirmed() != end {
		t.Errorf("confirmed %v, want %v", b.confirmed(), end)
	}
}

func TestI4IdleOutboxFollowsTheServer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start()
	lsn := b.keepalive(0)
	b.awaitConfirmed(lsn)
	b.commit(row{"1", "a", "one"})
	later := b.keepalive(0)
	b.awaitRecords(1)
	if b.confirmed() != lsn {
		t.Fatalf("confirmed %v with an event pending", b.confirmed())
	}
	b.kafka.ack(0)
	b.awaitConfirmed(later)
}

func TestI6LostSlotEndsTheRelay(t *testing.T) {
	t.Parallel()
	for _, kind := range []error{slot.ErrNotFound, slot.ErrLost, slot.ErrForeign, slot.ErrUnfit} {
		t.Run(kind.Error(), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.openErr = &slot.Error{Kind: kind, Text: "gone", Way: "the way out"}
			b.start()
			err := b.result()
			if !errors.Is(err, kind) || !NeedsDecision(err) {
				t.Errorf("got %v", err)
			}
			if n := b.sessions(); n != 1 {
				t.Errorf("opened %d times", n)
			}
		})
	}
}

func TestReconnectSkipsWhatIsInFlight(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start()
	b.commit(row{"1", "a", "one"})
	finish := b.begin(row{"2", "a", "two"}, row{"3", "b", "three"})
	b.awaitRecords(3)
	b.cut()
	b.await("second session", func() bool { return b.sessions() == 2 })
	finish()
	_, end := b.commit(row{"4", "a", "four"})
	b.awaitRecords(4)
	want := []string{"one", "two", "three", "four"}
	if got := b.kafka.values(); !slices.Equal(got, want) {
		t.Fatalf("submitted %q, want %q", got, want)
	}
	for i := range want {
		b.kafka.ack(i)
	}
	b.awaitConfirmed(end)
}

// TestServerCrashTakesTheSlotBack: the session starts at our own position.
func TestServerCrashTakesTheSlotBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.kafka.auto = true
	b.start()
	_, end := b.commit(row{"1", "a", "one"})
	b.awaitConfirmed(end)
	b.mu.Lock()
	b.slotAt = 100
	b.mu.Unlock()
	b.cut()
	b.await("second session", func() bool { return b.sessions() == 2 })
	_, end = b.commit(row{"2", "a", "two"})
	b.awaitConfirmed(end)
	if got := b.kafka.values(); !slices.Equal(got, []string{"one", "two"}) {
		t.Fatalf("submitted %q", got)
	}
}

func TestDrainFinishesTheTransactionUnderWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.kafka.auto = true
	b.start()
	finish := b.begin(row{"1", "a", "one"}, row{"2", "a", "two"})
	b.awaitRecords(2)
	b.stop(errors.New("SIGTERM"))
	b.await("draining", func() bool { return b.relay.Snapshot().State == Draining })
	before := b.confirmed()
	b.mu.Lock()
	end := b.lsn
	b.mu.Unlock()
	finish()
	b.commit(row{"3", "a", "not any more"})
	if err := b.result(); err != nil {
		t.Fatal(err)
	}
	if before >= end || b.confirmed() != end {
		t.Errorf("confirmed %v then %v, want the end %v only after the commit", before, b.confirmed(), end)
	}
	if got := b.kafka.values(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("submitted %q", got)
	}
}

func TestSecondSignalEndsADrainThatIsStuck(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start()
	b.commit(row{"1", "a", "never acked"})
	b.awaitRecords(1)
	b.stop(nil)
	b.await("draining", func() bool { return b.relay.Snapshot().State == Draining })
	b.kill()
	if err := b.result(); !errors.Is(err, ErrDrainIncomplete) {
		t.Errorf("got %v, want ErrDrainIncomplete", err)
	}
	if b.confirmed() != 100 {
		t.Errorf("confirmed %v", b.confirmed())
	}
}

func TestBrokenPublicationStopsConfirming(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start()
	b.commit(row{"1", "a", "one"})
	b.awaitRecords(1)
	b.monitor.broken(&slot.Error{Kind: slot.ErrPublication, Text: "publication gone", Way: "decide"})
	b.await("holding", func() bool { return b.relay.Snapshot().State == Holding })
	b.kafka.ack(0)
	s := b.relay.Snapshot()
	if s.Reason != "publication" || s.Detail != "publication gone" || s.Hint != "decide" {
		t.Errorf("snapshot: reason %q, detail %q, hint %q", s.Reason, s.Detail, s.Hint)
	}
	if b.confirmed() != 100 {
		t.Errorf("confirmed %v", b.confirmed())
	}
}

func TestSlotInUseWaitsAndTakesOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.kafka.auto = true
	b.openErr = &slot.Error{Kind: slot.ErrInUse, Text: `slot "walpost" is active for PID 42`}
	b.start()
	b.await("waiting", func() bool { return b.relay.Snapshot().State == WaitingForSlot })
	if s := b.relay.Snapshot(); s.Ready || !strings.Contains(s.Detail, "PID 42") {
		t.Errorf("ready %v, detail %q", s.Ready, s.Detail)
	}
	b.refuse(nil)
	_, end := b.commit(row{"1", "a", "one"})
	b.awaitConfirmed(end)
}

func TestPartitionsAreResolvedToTheirRoot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.kafka.auto = true
	b.monitor.roots = map[uint32]string{20001: "outbox_events", 20002: "somebody_elses", 20004: "outbox_events_detached"}
	b.monitor.former = map[uint32]bool{20004: true}
	b.start()
	b.raw(beginMessage(500))
	b.raw(relation(20001, "outbox_events_p1"))
	b.raw(insert(20001, row{"1", "a", "leaf"}))
	b.raw(relation(20002, "noise"))
	b.raw(insert(20002, row{"2", "a", "foreign"}))
	b.raw(relation(20003, "outbox_events_dropped"))
	b.raw(insert(20003, row{"3", "a", "dropped leaf"}))
	b.raw(relation(20004, "outbox_events_detached"))
	b.raw(insert(20004, row{"4", "a", "detached leaf"}))
	b.raw(commitMessage(500, 508))
	b.awaitConfirmed(508)
	if got := b.kafka.values(); !slices.Equal(got, []string{"leaf", "dropped leaf", "detached leaf"}) {
		t.Errorf("submitted %q", got)
	}
	if n := b.relay.Snapshot().Ignored["other_table"]; n != 1 {
		t.Errorf("ignored %d rows of other tables, want 1", n)
	}
}

func TestSnapshotShowsTheSinksPoison(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start()
	commit, _ := b.commit(row{"1", "a", "one"})
	b.awaitRecords(1)
	record := b.kafka.records[0]
	record.Headers = []sink.Header{{Name: "id", Value: []byte("1")}}
	b.kafka.mu.Lock()
	b.kafka.status = sink.Status{HoldCount: 1, Holds: []sink.Hold{{
		Topic: "t", Partition: 3, Class: sink.Poison, Reason: "MESSAGE_TOO_LARGE", Since: time.Now(), Poison: &record,
	}}}
	b.kafka.mu.Unlock()
	s := b.relay.Snapshot()
	if s.State != Holding || s.Reason != "poison" || s.Ready || s.Poison == nil {
		t.Fatalf("state %s, reason %q, ready %v, poison %v", s.State, s.Reason, s.Ready, s.Poison)
	}
	p := *s.Poison
	if p.EventID != "1" || p.Table != "public.outbox_events" || p.CommitLSN != commit || p.Topic != "t" || p.Partition != 3 {
		t.Errorf("poison %+v", p)
	}
}

// TestDrainTimeoutEndsAPumpThatWaitsForRoom: the sink takes no more records and
// acks none.
func TestDrainTimeoutEndsAPumpThatWaitsForRoom(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.relay.opt.DrainTimeout = time.Millisecond
	b.kafka.full = make(chan struct{})
	b.start()
	b.commit(row{"1", "a", "one"}, row{"2", "a", "two"})
	b.awaitRecords(1)
	b.stop(nil)
	if err := b.result(); !errors.Is(err, ErrDrainIncomplete) {
		t.Errorf("got %v, want ErrDrainIncomplete", err)
	}
}

// TestReconnectSealsTheRightTransaction: what the server sends again ends before
// the transaction that was received in part.
func TestReconnectSealsTheRightTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start()
	b.commit(row{"1", "a", "one"})
	finish := b.begin(row{"2", "a", "two"})
	b.awaitRecords(2)
	b.cut()
	b.await("second session", func() bool { return b.sessions() == 2 })
	finish()
	b.mu.Lock()
	end := b.lsn
	b.mu.Unlock()
	b.kafka.ack(0)
	b.kafka.ack(1)
	b.awaitConfirmed(end)
}

// TestLostStreamInAPartIsNotACleanStop: the rest of the transaction never came.
func TestLostStreamInAPartIsNotACleanStop(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.kafka.auto = true
	b.start()
	b.begin(row{"1", "a", "one"})
	b.awaitRecords(1)
	b.stop(nil)
	b.await("draining", func() bool { return b.relay.Snapshot().State == Draining })
	b.cut()
	if err := b.result(); !errors.Is(err, ErrDrainIncomplete) {
		t.Errorf("got %v, want ErrDrainIncomplete", err)
	}
}

// TestR6InFlightBelongsToTheServersHistory: a server that does not have the WAL
// of what is in flight, as after a failover, must not be streamed from: its own
// transactions at those positions would be taken for those in flight.
func TestR6InFlightBelongsToTheServersHistory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start()
	_, first := b.commit(row{"1", "a", "one"})
	b.awaitRecords(1)
	b.kafka.ack(0)
	b.awaitConfirmed(first)
	_, second := b.commit(row{"2", "a", "two"})
	b.begin(row{"3", "a", "three"})
	b.awaitRecords(3)
	b.mu.Lock()
	commit := b.lsn - 8 // of what was received in part
	b.mu.Unlock()
	b.cut()
	b.await("second session", func() bool { return b.sessions() == 2 })
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known.LSN != first || b.known.Reach != commit || commit <= second {
		t.Errorf("opened with %s and %s, want %s and %s", b.known.LSN, b.known.Reach, first, commit)
	}
}
