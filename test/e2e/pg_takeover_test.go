package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/testkit"
)

// takeover is how soon after the slot is free the standby must stream.
const takeover = 5 * time.Second

// awaitWaiting waits until the relay is a standby, and checks what its probes
// say.
func (o *outbox) awaitWaiting(r *relay) {
	o.t.Helper()
	r.await("waiting for the slot", func(s admin.Status) bool {
		return s.State == "waiting_for_slot" && s.StandbyReady && s.Slot.ActivePID != nil
	})
	holder := query[int32](o, `select active_pid from pg_replication_slots where slot_name = $1`, o.slot)
	code, body := r.readyz("")
	if code != 503 || body.Ready || body.State != "waiting_for_slot" || body.Reason != "waiting_for_slot" || body.HolderPID != holder {
		o.t.Errorf("readyz: %d %+v, want 503 with the holder's PID %d", code, body, holder)
	}
	if code, body := r.readyz("?standby=ok"); code != 200 || !body.Ready {
		o.t.Errorf("readyz?standby=ok: %d %+v", code, body)
	}
	if code, _, err := r.get("/livez"); code != 200 || err != nil {
		o.t.Errorf("livez: %d, %v", code, err)
	}
}

func (r *relay) awaitTakeover() {
	r.t.Helper()
	testkit.AwaitWithin(r.t, takeover, "takeover", func() bool {
		s, ok := r.status()
		return ok && s.Slot.Streaming
	})
}

// TestTakeover: a second instance waits and takes over, again and again, when
// the first one is stopped and when it is killed.
func TestTakeover(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		o := newOutbox(t, major)
		o.createTopic("order")
		active := o.start()
		active.awaitReady()
		w := o.startTraffic("order")
		for range 2 {
			standby := o.start()
			o.awaitWaiting(standby)
			active.stop()
			standby.awaitTakeover()
			active = standby
			active.awaitPublished(50)
		}
		w.stop()
		if repeats := o.checkTraffic("order"); repeats != 0 {
			t.Errorf("%d repeats after clean stops", repeats)
		}
		w = o.startTraffic("order2")
		o.createTopic("order2")
		active.await("more events", func(s admin.Status) bool { return s.Published.Events > 100 })
		for range 2 {
			standby := o.start()
			o.awaitWaiting(standby)
			active.kill()
			standby.awaitTakeover()
			active = standby
			active.awaitPublished(50)
		}
		w.stop()
		var events []event
		for _, e := range o.committed() {
			if e.aggregateType == "order2" {
				events = append(events, e)
			}
		}
		o.awaitConfirmed()
		t.Logf("%d repeats after kills", check(t, o.read("order2"), events))
	})
}

// TestFrozenInstance: the server frees the slot of an instance that does not
// move; the standby takes it, and the first one, thawed, becomes the standby.
func TestFrozenInstance(t *testing.T) {
	t.Parallel()
	o := newOutbox(t, 15)
	o.createTopic("order")
	first := o.start()
	w := o.startTraffic("order")
	first.awaitPublished(50)
	second := o.start()
	o.awaitWaiting(second)
	first.signal(syscall.SIGSTOP)
	// The relay asks the server for a wal_sender_timeout of 10 s.
	testkit.AwaitWithin(t, 10*time.Second+takeover+2*time.Second, "takeover from a frozen instance", func() bool {
		s, ok := second.status()
		return ok && s.Slot.Streaming && s.Published.Events > 0
	})
	first.signal(syscall.SIGCONT)
	// With events in flight it finds itself fenced off and ends; without any it
	// waits for its turn.
	testkit.Await(t, "the end or the retreat of the frozen instance", func() bool {
		s, ok := first.status()
		return !first.running() || ok && s.State == "waiting_for_slot" && s.InFlight.Events == 0
	})
	if !first.running() {
		if code := first.wait(); code != 5 {
			t.Errorf("the frozen instance ended with code %d, want 5", code)
		}
		first = o.start()
	}
	o.awaitWaiting(first)
	second.kill()
	first.awaitTakeover()
	w.stop()
	if repeats := o.checkTraffic("order"); repeats != 0 {
		t.Errorf("%d repeats", repeats)
	}
	first.stop()
}
