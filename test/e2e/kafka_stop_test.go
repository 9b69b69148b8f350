package e2e

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
)

// TestKill9InTheMiddle: 50,000 events, and the relay is killed three times while
// they are on their way. None is lost, each key keeps its order, and none comes
// twice; without the checkpoint, what comes twice comes as an ordered suffix of
// what had been sent, and the status says that it can.
func TestKill9InTheMiddle(t *testing.T) {
	t.Parallel()
	t.Run("checkpoint", func(t *testing.T) {
		t.Parallel()
		repeats, s := kill9InTheMiddle(t, newOutbox(t, kafkaMajor))
		if repeats != 0 {
			t.Errorf("%d repeats", repeats)
		}
		if p := s.Protection; p.Fence != nil || p.Tail != nil || p.Checkpoint != nil {
			t.Errorf("protection: fence %q, tail %q, checkpoint %q", value(p.Fence), value(p.Tail), value(p.Checkpoint))
		}
	})
	t.Run("no checkpoint", func(t *testing.T) {
		t.Parallel()
		o := bareOutbox(t, testkit.Postgres(t, kafkaMajor).NewDB(t), testkit.Kafka(t).Addr())
		o.must("init", "--create-table", "--checkpoint=false")
		if _, s := kill9InTheMiddle(t, o); s.Protection.Checkpoint == nil {
			t.Error("the status does not say that there is no checkpoint")
		}
	})
}

func kill9InTheMiddle(t *testing.T, o *outbox) (repeats int, last admin.Status) {
	t.Helper()
	const kills, perRound = 3, 12_500
	o.createTopic("order")
	r := o.start()
	r.awaitReady()
	for round := range kills + 1 {
		written := round * perRound
		var writer sync.WaitGroup
		writer.Go(func() {
			for n := 1; n <= perRound; n += 250 {
				o.insertMany("order", written+n, 250, 997)
			}
		})
		if round < kills {
			o.awaitCount("order", written+perRound/4)
			r.kill()
		}
		writer.Wait()
		if round < kills {
			r = o.start()
		}
	}
	o.awaitConfirmed()
	last, _ = r.status()
	r.stop()
	records := o.read("order")
	repeats = checkNumbers(t, records, (kills+1)*perRound)
	if back := checkSuffixes(t, records); back > kills {
		t.Errorf("a partition goes back %d times for %d kills", back, kills)
	}
	t.Logf("%d events, %d kills, %d repeats", (kills+1)*perRound, kills, repeats)
	return repeats, last
}

// TestStopUnderLoad: SIGTERM in the middle of a load ends cleanly, and nothing
// comes twice after the next start.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	o := newOutbox(t, 15)
	o.createTopic("order")
	r := o.start()
	l := o.startLoad("order", 1, 20, 101)
	for range 4 {
		l.awaitMore(400)
		r.await("events", func(s admin.Status) bool { return s.Published.Events > 100 })
		r.stop()
		if text := r.logText(); !strings.Contains(text, `"msg":"stopped"`) {
			t.Errorf("the log does not tell of the end:\n%s", text)
		}
		r = o.start()
	}
	written := l.stop()
	o.awaitConfirmed()
	r.stop()
	o.noRepeats("order", written)
}

// TestKafkaDown is about a relay whose only broker is away: how it stops, and
// what it needs meanwhile.
func TestKafkaDown(t *testing.T) {
	t.Parallel()
	cluster := privateKafka(t, kafkaserver.Options{})
	dsn := testkit.Postgres(t, kafkaMajor).NewDB(t)
	o := newOutboxAt(t, dsn, cluster.Addr())
	o.createTopic("order")
	o.createTopic("bulk")

	r := o.start("--drain-timeout", "2s")
	o.insertMany("order", 1, 100, 7)
	r.awaitPublished(100)
	need(t, cluster.Kill9(t.Context(), 0))
	o.insertMany("order", 101, 50, 7)
	r.await("events in flight", func(s admin.Status) bool { return s.InFlight.Events == 50 })
	behind := o.walNow()
	r.signal(syscall.SIGTERM)
	if code := r.wait(); code != 1 {
		t.Errorf("exit code %d after a drain that could not end, want 1", code)
	}
	for _, want := range []string{"stopped before everything was delivered", "50 events are pending", "published at the next start"} {
		if !strings.Contains(r.logText(), want) {
			t.Errorf("no %q in the log:\n%s", want, r.logText())
		}
	}
	o.confirmedBelow(behind)

	// A second signal does not wait for the drain timeout.
	need(t, cluster.StartAgain(t.Context()))
	r = o.start("--drain-timeout", "10m")
	r.awaitPublished(50)
	need(t, cluster.Kill9(t.Context(), 0))
	o.insertMany("order", 151, 50, 7)
	r.await("events in flight", func(s admin.Status) bool { return s.InFlight.Events == 50 })
	r.signal(syscall.SIGTERM)
	r.await("draining", func(s admin.Status) bool { return s.State == "draining" })
	r.signal(syscall.SIGTERM)
	testkit.AwaitWithin(t, 20*time.Second, "end after the second signal", func() bool { return !r.running() })
	if code := r.wait(); code != 1 {
		t.Errorf("exit code %d after the second signal, want 1", code)
	}

	// A backlog of which only a part fits in memory.
	const backlog = 200_000
	need(t, cluster.StartAgain(t.Context()))
	r = o.startBinary(binary(t, true), nil, "--in-flight-bytes", "16MiB")
	r.awaitPublished(50)
	need(t, cluster.Kill9(t.Context(), 0))
	o.insertMany("bulk", 1, backlog, 1000)
	full := r.await("a full budget", func(s admin.Status) bool { return s.InFlight.Bytes > s.InFlight.LimitBytes*9/10 })
	s := r.awaitReason("kafka_unreachable")
	if s.State != "holding" || s.InFlight.LimitBytes != 16<<20 || s.InFlight.Bytes > s.InFlight.LimitBytes {
		t.Errorf("state %s, %d bytes in flight of %d", s.State, s.InFlight.Bytes, s.InFlight.LimitBytes)
	}
	if s.InFlight.Events < full.InFlight.Events {
		t.Errorf("events in flight went from %d to %d without a broker", full.InFlight.Events, s.InFlight.Events)
	}
	r.probesWhileHolding("kafka_unreachable")
	r.peak(fmt.Sprintf("Kafka away, %d of %d events in flight", s.InFlight.Events, backlog), 80)
	need(t, cluster.StartAgain(t.Context()))
	o.awaitConfirmed()
	r.peak("after the backlog", 80)
	r.stop()
	o.noRepeats("order", 200)
	o.noRepeats("bulk", backlog)
}
