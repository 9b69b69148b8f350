package e2e

import (
	"testing"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/proxy"
	"github.com/walpost/walpost/internal/testkit/topic"
)

// TestBrokerOutages: the only broker goes and comes back, in three ways, and one
// relay lives through all of them: nothing lost, nothing twice, in order.
func TestBrokerOutages(t *testing.T) {
	t.Parallel()
	cluster := privateKafka(t, kafkaserver.Options{})
	o := newOutboxAt(t, testkit.Postgres(t, 15).NewDB(t), cluster.Addr())
	o.createTopic("order")
	r := o.start("--kafka-request-timeout", "2s")
	r.awaitReady()

	// Stopped for a while.
	o.insertMany("order", 1, 500, 31)
	r.awaitPublished(500)
	need(t, cluster.Term(t.Context(), 0))
	for n := 501; n <= 1000; n += 50 {
		o.insertMany("order", n, 50, 31)
	}
	r.awaitReason("kafka_unreachable")
	s := r.await("all events to wait", func(s admin.Status) bool { return s.InFlight.Events == 500 })
	if s.State != "holding" || value(s.Detail) == "" {
		t.Errorf("state %s, detail %q", s.State, value(s.Detail))
	}
	r.probesWhileHolding("kafka_unreachable")
	need(t, cluster.StartAgain(t.Context()))
	r.awaitPublished(1000)
	r.awaitReady()
	o.noRepeats("order", 1000)

	// Killed under load.
	l := o.startLoad("order", 1001, 20, 31)
	l.awaitMore(500)
	need(t, cluster.Kill9(t.Context(), 0))
	l.awaitMore(500)
	need(t, cluster.StartAgain(t.Context()))
	l.awaitMore(500)
	r.await("progress after the kill", func(s admin.Status) bool { return s.Published.Events > 2000 })

	// Frozen under load, for longer than a request may take.
	need(t, cluster.Pause(0))
	timeouts := r.metric("walpost_publish_errors_total")
	testkit.Await(t, "requests that time out", func() bool { return r.metric("walpost_publish_errors_total") > timeouts })
	r.awaitReason("kafka_unreachable")
	l.awaitMore(200)
	need(t, cluster.Resume(0))
	at := l.count()
	written := l.stop()
	if written < at {
		t.Fatal("the load went backwards")
	}
	o.awaitConfirmed()
	r.awaitReady()
	t.Logf("%d events; the broker recognised %.0f batches", written, r.metric("walpost_broker_duplicates_total"))
	if lost := r.metric("walpost_sequence_errors_total"); lost != 0 {
		t.Errorf("%.0f unexplained sequence errors", lost)
	}
	r.stop()
	o.noRepeats("order", written)
}

// TestConnectionsCut: connections break in the middle of requests and of
// answers, and go silent in one direction. The broker's memory of batches keeps
// everything once.
func TestConnectionsCut(t *testing.T) {
	t.Parallel()
	cluster := privateKafka(t, kafkaserver.Options{Proxied: true})
	o := newOutboxAt(t, testkit.Postgres(t, kafkaMajor).NewDB(t), cluster.Addr())
	o.createTopic("order")
	r := o.start("--kafka-request-timeout", "2s")
	r.awaitReady()
	l := o.startLoad("order", 1, 20, 101)
	p := cluster.Proxy(0)
	progress := func() {
		t.Helper()
		now, _ := r.status()
		r.await("progress after a fault", func(s admin.Status) bool { return s.Published.Events > now.Published.Events+200 })
	}
	progress()
	for i := range int64(6) {
		p.DropAfter(1000+i*1777, proxy.ToServer)
		progress()
		p.DropAfter(10+i*37, proxy.ToClient)
		progress()
		p.Cut()
		progress()
	}
	for _, d := range []proxy.Direction{proxy.ToClient, proxy.ToServer} {
		failed := r.metric("walpost_publish_errors_total")
		p.StallTo(d)
		testkit.Await(t, "a request that times out", func() bool { return r.metric("walpost_publish_errors_total") > failed })
		p.Resume()
		progress()
	}
	written := l.stop()
	o.awaitConfirmed()
	duplicates, failures := r.metric("walpost_broker_duplicates_total"), r.metric("walpost_publish_errors_total")
	t.Logf("%d events, %.0f failed batches, %.0f recognised by the broker", written, failures, duplicates)
	if duplicates == 0 || failures == 0 {
		t.Error("no fault hit a batch: the test proves nothing")
	}
	if lost := r.metric("walpost_sequence_errors_total"); lost != 0 {
		t.Errorf("%.0f unexplained sequence errors", lost)
	}
	r.stop()
	o.noRepeats("order", written)
}

// TestThreeBrokers: min.insync.replicas is 2. One broker may go, also the leader
// of what is being written; with two gone nothing is confirmed, and everything
// arrives once they are back.
func TestThreeBrokers(t *testing.T) {
	t.Parallel()
	cluster := privateKafka(t, kafkaserver.Options{Brokers: 3})
	o := newOutboxAt(t, testkit.Postgres(t, 15).NewDB(t), cluster.Addr())
	testkit.CreateTopicSpec(t, o.brokers, topic.Spec{
		Name: o.topic("order"), Partitions: 6, Replication: 3, Config: map[string]string{"min.insync.replicas": "2"},
	})
	r := o.start("--kafka-request-timeout", "3s")
	r.awaitReady()
	l := o.startLoad("order", 1, 10, 101)
	published := func() uint64 {
		s, _ := r.status()
		return s.Published.Events
	}
	// Every partition is led anew by somebody else when each broker has been away.
	for i := range 3 {
		l.awaitMore(100)
		need(t, cluster.Kill9(t.Context(), i))
		at := uint64(l.count())
		r.await("events written after a broker was killed", func(s admin.Status) bool { return s.Published.Events > at+200 })
		need(t, cluster.StartAgain(t.Context(), i))
		awaitInSync(t, cluster, o.topic("order"), 3)
	}
	for _, i := range []int{0, 1} {
		need(t, cluster.Kill9(t.Context(), i))
	}
	s := r.awaitReason("kafka_unreachable")
	if s.State != "holding" {
		t.Errorf("state %s with two of three brokers gone", s.State)
	}
	r.probesWhileHolding("kafka_unreachable")
	t.Logf("two brokers gone: %s", value(s.Detail))
	held := published()
	lsn := o.walNow()
	o.confirmedBelow(lsn)
	l.awaitMore(100)
	if now := published(); now != held {
		t.Errorf("%d events were acked with one of three replicas", now-held)
	}
	need(t, cluster.StartAgain(t.Context()))
	written := l.stop()
	o.awaitConfirmed()
	r.awaitReady()
	t.Logf("%d events; the broker recognised %.0f batches", written, r.metric("walpost_broker_duplicates_total"))
	if lost := r.metric("walpost_sequence_errors_total"); lost != 0 {
		t.Errorf("%.0f unexplained sequence errors", lost)
	}
	r.stop()
	o.noRepeats("order", written)
}
