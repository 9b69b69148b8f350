package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/checkpoint"
	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

// left is a store and a sink that recovers; it writes down what is asked of it.
type left struct {
	mu      sync.Mutex
	calls   []string
	loaded  *checkpoint.Checkpoint
	claimed *checkpoint.Checkpoint
	claim   error
	save    error
	// unreadable is the error of loaded.
	unreadable error
	// recovering answers Recover.
	recovering func(context.Context) error
	unbounded  bool // a call of Load or Claim had no deadline
	plan       sink.Recovery
	grown      map[sink.Partition]int64
}

func (l *left) note(format string, args ...any) {
	l.mu.Lock()
	l.calls = append(l.calls, fmt.Sprintf(format, args...))
	l.mu.Unlock()
}

func (l *left) noted() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls)
}

func (l *left) Load(ctx context.Context) (*checkpoint.Checkpoint, error) {
	l.note("load")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bound(ctx)
	return l.loaded, l.unreadable
}

// bound looks whether a call can hang. l.mu is held.
func (l *left) bound(ctx context.Context) {
	if _, ok := ctx.Deadline(); !ok {
		l.unbounded = true
	}
}

func (l *left) Claim(ctx context.Context, of checkpoint.Checkpoint, _ string) (*checkpoint.Checkpoint, error) {
	l.note("claim %s in %s", of.SystemID, of.KafkaCluster)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bound(ctx)
	l.loaded = l.claimed
	return l.claimed, l.claim
}

func (l *left) Save(ctx context.Context, _ checkpoint.Checkpoint, _ bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bound(ctx)
	return l.save
}

func (l *left) Close(context.Context) {}

func (l *left) Recover(ctx context.Context, plan sink.Recovery) error {
	l.note("recover %d partitions", len(plan.Offsets))
	l.mu.Lock()
	l.plan = plan
	recovering := l.recovering
	l.mu.Unlock()
	if recovering != nil {
		return recovering(ctx)
	}
	return nil
}

func (l *left) Progress(uint64) map[sink.Partition]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grown
}

func (l *left) ReplayOver(uint64)                         {}
func (l *left) Expect([]string)                           {}
func (l *left) ClusterID(context.Context) (string, error) { return "k", nil }

func (l *left) OffsetsSince(context.Context, sink.Since) (map[sink.Partition]int64, error) {
	return nil, nil
}

// withLeft is a bench whose relay finds what is left there, and writes down from
// where each session starts.
func withLeft(t *testing.T, l *left) *bench {
	b := setup(t)
	b.kafka.auto = true
	b.relay.opt.Store, b.relay.recovery.store, b.relay.recovery.sink = l, l, l
	open := b.relay.opt.Open
	b.relay.opt.Open = func(ctx context.Context, known slot.History, remembered func() (slot.History, error), expected *slot.Published) (Stream, error) {
		h, err := remembered()
		if err != nil {
			return nil, err
		}
		l.note("open, remembering %s", h.LSN)
		return open(ctx, known, remembered, expected)
	}
	return b
}

func leftAt(lsn pglogrepl.LSN, partitions ...int32) *checkpoint.Checkpoint {
	c := &checkpoint.Checkpoint{SystemID: "7000", Timeline: 1, LSN: lsn, KafkaCluster: "k", Offsets: map[checkpoint.Partition]int64{}}
	for _, p := range partitions {
		c.Offsets[checkpoint.Partition{Topic: "t", Number: p}] = 10
	}
	return c
}

// The checkpoint is claimed before Kafka is asked anything, and what is made of
// it is what the claim gave: the predecessor went on behind the first look.
func TestClaimComesBeforeTheFence(t *testing.T) {
	t.Parallel()
	l := &left{loaded: leftAt(50, 0), claimed: leftAt(90, 0, 1, 2)}
	b := withLeft(t, l)
	b.start()
	_, end := b.commit(row{"1", "a", "x"})
	b.awaitConfirmed(end)
	want := []string{"load", "open, remembering 0/32", "claim 7000 in k", "recover 3 partitions"}
	if diff := cmp.Diff(want, l.noted()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// A position that the predecessor saved after the first look, and that the slot
// does not have, is where the session has to start.
func TestCheckpointMovesWhileTheSlotIsTaken(t *testing.T) {
	t.Parallel()
	l := &left{loaded: leftAt(50, 0), claimed: leftAt(120, 0)}
	b := withLeft(t, l)
	b.start()
	b.commit(row{"1", "a", "x"})
	b.awaitRecords(1)
	want := []string{
		"load", "open, remembering 0/32", "claim 7000 in k",
		"load", "open, remembering 0/78", "claim 7000 in k", "recover 1 partitions",
	}
	if diff := cmp.Diff(want, l.noted()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// Whoever finds that the checkpoint is another one's stops publishing, be it on
// the timer or before the first record to a partition.
func TestSucceededRelayEnds(t *testing.T) {
	t.Parallel()
	taken := fmt.Errorf("%w: other has claimed it", checkpoint.ErrSucceeded)
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T, l *left)
	}{
		{"timer", func(_ *testing.T, l *left) {
			l.mu.Lock()
			l.save, l.grown = taken, map[sink.Partition]int64{{Topic: "t"}: 5}
			l.mu.Unlock()
		}},
		{"register", func(t *testing.T, l *left) {
			l.mu.Lock()
			l.save = taken
			register := l.plan.Register
			l.mu.Unlock()
			if err := register(t.Context(), map[sink.Partition]int64{{Topic: "t", Number: 7}: 0}); !errors.Is(err, checkpoint.ErrSucceeded) {
				t.Errorf("register: %v", err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := &left{}
			b := withLeft(t, l)
			b.start()
			_, end := b.commit(row{"1", "a", "x"})
			b.awaitConfirmed(end)
			test.spoil(t, l)
			err := b.result()
			if !IsFenced(err) || !errors.Is(err, checkpoint.ErrSucceeded) {
				t.Fatalf("the relay ended with %v", err)
			}
			var hinted interface{ Hint() string }
			if !errors.As(err, &hinted) || hinted.Hint() == "" {
				t.Error("no hint")
			}
			if NeedsDecision(err) {
				t.Error("a decision is asked for")
			}
		})
	}
}

// Without the right to claim, the relay says so, uses what it may read, and
// makes nothing known.
func TestClaimDenied(t *testing.T) {
	t.Parallel()
	l := &left{loaded: leftAt(50, 0, 1), claim: fmt.Errorf("claim checkpoint: %w: permission denied", checkpoint.ErrNoStore)}
	b := withLeft(t, l)
	b.start()
	_, end := b.commit(row{"1", "a", "x"})
	b.awaitConfirmed(end)
	want := []string{"load", "open, remembering 0/32", "claim 7000 in k", "recover 2 partitions"}
	if diff := cmp.Diff(want, l.noted()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.plan.Register != nil {
		t.Error("partitions would be registered")
	}
	if why := b.relay.recovery.why(); why != "claim checkpoint: no checkpoint table: permission denied" {
		t.Errorf("why: %q", why)
	}
}

// beginsAnew lets the server open streams again, and demands that the relay claims
// and recovers before it delivers.
func (b *bench) beginsAnew(l *left) {
	b.t.Helper()
	b.refuse(nil)
	_, end := b.commit(row{"2", "a", "y"})
	b.awaitConfirmed(end)
	calls := l.noted()
	if want := []string{"claim 7000 in k", "recover 0 partitions"}; !slices.Equal(calls[len(calls)-2:], want) {
		b.t.Errorf("the last calls are %q", calls)
	}
}

// An instance that had the slot before, and has it again, claims anew; nothing is
// saved in between under a claim that may be gone.
func TestNothingIsSavedBeforeTheClaim(t *testing.T) {
	t.Parallel()
	l := &left{}
	b := withLeft(t, l)
	b.start()
	_, end := b.commit(row{"1", "a", "x"})
	b.awaitConfirmed(end)
	l.mu.Lock()
	register := l.plan.Register
	l.mu.Unlock()
	b.refuse(slot.ErrInUse)
	b.cut()
	b.await("the look after the loss", func() bool {
		calls := l.noted()
		return len(calls) > 5 && calls[len(calls)-1] == "open, remembering 0/0" && calls[len(calls)-2] == "load"
	})
	if err := register(t.Context(), map[sink.Partition]int64{{Topic: "t", Number: 7}: 0}); err == nil {
		t.Error("a partition was made known by an instance that waits")
	}
	b.beginsAnew(l)
}

// TestCheckpointUnreadable: a stream that was opened meanwhile is given up with
// the checkpoint, and nothing is read without it.
func TestCheckpointUnreadable(t *testing.T) {
	t.Parallel()
	l := &left{unreadable: errors.New("cut")}
	b := setup(t)
	b.kafka.auto = true
	b.relay.opt.Store, b.relay.recovery.store, b.relay.recovery.sink = l, l, l
	if err := b.relay.session(t.Context(), t.Context()); !errors.Is(err, l.unreadable) {
		t.Fatalf("session ended with %v, want the store's error", err)
	}
	if diff := cmp.Diff([]string{"load"}, l.noted()); diff != "" {
		t.Error(diff)
	}
	if b.relay.expected != nil {
		t.Error("the session began all the same")
	}
}

func TestTopicsOfCheckpoint(t *testing.T) {
	t.Parallel()
	c := &checkpoint.Checkpoint{Offsets: map[checkpoint.Partition]int64{{Topic: "a"}: 1, {Topic: "a", Number: 1}: 1, {Topic: "b"}: 1}}
	names := topicsOf(c)
	slices.Sort(names)
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Error(diff)
	}
	for i := range 2 * sink.MaxExpected {
		c.Offsets[checkpoint.Partition{Topic: fmt.Sprint(i)}] = 1
	}
	if n := len(topicsOf(c)); n != sink.MaxExpected {
		t.Errorf("%d topics, want at most %d", n, sink.MaxExpected)
	}
}
