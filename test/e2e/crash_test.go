package e2e

import (
	"syscall"
	"testing"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/testkit"
)

// TestKill9InATransaction: what is delivered of a large transaction is not sent
// again, although nothing of it can be confirmed.
func TestKill9InATransaction(t *testing.T) {
	t.Parallel()
	const rows = 60_000
	o := newOutbox(t, kafkaMajor)
	o.createTopic("order")
	r := o.start()
	r.awaitReady()
	o.insertMany("order", 1, rows, 997)
	for _, at := range []int{rows / 5, rows / 2} {
		o.awaitCount("order", at)
		r.kill()
		r = o.start()
	}
	o.awaitConfirmed()
	s := r.await("all published", func(s admin.Status) bool { return s.InFlight.Events == 0 })
	r.stop()
	if repeats := checkNumbers(t, o.read("order"), rows); repeats != 0 {
		t.Errorf("%d repeats", repeats)
	}
	t.Logf("the last relay published %d and found %d in Kafka", s.Published.Events, s.Ignored["already_in_kafka"])
}

// TestZombie: an instance is frozen with events in flight, another one takes
// over, and the first wakes up. It cannot write any more, and ends by itself.
func TestZombie(t *testing.T) {
	t.Parallel()
	o := newOutbox(t, kafkaMajor)
	o.createTopic("order")
	first := o.start()
	first.awaitReady()
	o.insertMany("order", 1, 30_000, 997)
	o.awaitCount("order", 3_000)
	first.signal(syscall.SIGSTOP)
	second := o.start()
	second.await("the takeover", func(s admin.Status) bool { return s.Slot.Streaming })
	o.insertMany("order", 30_001, 1_000, 997)
	o.awaitConfirmed()
	first.signal(syscall.SIGCONT)
	testkit.Await(t, "the end or the retreat of the frozen instance", func() bool {
		if !first.running() {
			return true
		}
		s, ok := first.status()
		return ok && s.State == "waiting_for_slot" && s.InFlight.Events == 0
	})
	if !first.running() {
		if code := first.wait(); code != 5 {
			t.Errorf("the frozen instance ended with code %d, want 5", code)
		}
	}
	o.awaitConfirmed()
	second.stop()
	if repeats := checkNumbers(t, o.read("order"), 31_000); repeats != 0 {
		t.Errorf("%d repeats", repeats)
	}
}
