package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/internal/testkit/proxy"
)

// fastStop is how long a fast shutdown may take on a busy test machine. Were it
// held up, it would take at least wal_sender_timeout.
const fastStop = 5 * time.Second

func stopFast(t *testing.T, server *pgserver.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fastStop)
	defer cancel()
	if err := server.Stop(ctx, pgserver.Fast); err != nil {
		t.Fatalf("fast shutdown: %v", err)
	}
}

// stalledKafka is a broker that accepts connections and says nothing until its
// proxy is resumed; then it names the shared broker, with which all goes well.
func stalledKafka(t *testing.T) *proxy.Proxy {
	t.Helper()
	p := newProxy(t, testkit.Kafka(t).Addr()[0])
	p.Stall()
	return p
}

// TestFastShutdown: an administrator can stop the server while events are stuck,
// be they few or all that the relay may hold, and afterwards all arrive once.
func TestFastShutdown(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		for _, tt := range []struct {
			name  string
			count int
			full  bool
		}{{"few events", 10, false}, {"no room", 40_000, true}} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				o, server := privateOutbox(t, pgserver.Options{Major: major})
				r := o.start("--in-flight-bytes", "1MiB") // and there is no topic
				o.insertMany("order", 1, tt.count/2, 7)
				o.insertMany("order", tt.count/2+1, tt.count/2, 7)
				last := uint64(0)
				r.await("events that are stuck", func(s admin.Status) bool {
					if !tt.full {
						return s.Received == uint64(tt.count)
					}
					// It has stopped reading when nothing has come since the last look.
					stuck := s.Received > 0 && s.Received < uint64(tt.count) && s.Received == last && s.InFlight.Bytes > s.InFlight.LimitBytes/2
					last = s.Received
					return stuck
				})
				held := o.confirmed()
				stopFast(t, server)
				r.await("not being ready", func(s admin.Status) bool { return !s.Ready })
				if err := server.StartAgain(t.Context()); err != nil {
					t.Fatal(err)
				}
				o.reconnect()
				if now := query[bool](o, `select confirmed_flush_lsn <= $1::pg_lsn from pg_replication_slots`, held); !now {
					t.Errorf("the shutdown confirmed more than %s", held)
				}
				o.createTopic("order")
				r.await("all events", func(s admin.Status) bool {
					return s.Ready && s.Published.Events == uint64(tt.count) && s.InFlight.Events == 0
				})
				o.awaitConfirmed()
				if repeats := checkNumbers(t, o.read("order"), tt.count); repeats != 0 {
					t.Errorf("%d repeats from a process that stayed up", repeats)
				}
			})
		}
	})
}

// TestFastShutdownIdle: a relay that has nothing to do does not hold it up
// either, also with other tables' WAL behind the last event.
func TestFastShutdownIdle(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		o, server := privateOutbox(t, pgserver.Options{Major: major})
		o.createTopic("order")
		r := o.start()
		o.insertMany("order", 1, 10, 1)
		r.awaitPublished(10)
		for i := range 3 {
			o.exec(`create table ` + fmt.Sprintf("noise%d", i) + ` as select generate_series(1, 10000)`)
			stopFast(t, server)
			if err := server.StartAgain(t.Context()); err != nil {
				t.Fatal(err)
			}
			o.reconnect()
			r.awaitReady()
			o.insertMany("order", 11+i, 1, 1)
			r.awaitPublished(uint64(11 + i))
		}
		r.stop()
		if repeats := checkNumbers(t, o.read("order"), 13); repeats != 0 {
			t.Errorf("%d repeats", repeats)
		}
	})
}

// TestServerRestarts: in each way that a server can go while events flow,
// nothing is lost, order stays, and the process, which stays up and knows what
// it has delivered, repeats nothing even if the slot comes back older.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		o, server := privateOutbox(t, pgserver.Options{Major: major})
		o.createTopic("order")
		r := o.start()
		pid := r.cmd.Process.Pid
		w := o.startTraffic("order")
		published := uint64(0)
		flow := func(what string) {
			t.Helper()
			published = r.await("events after "+what, func(s admin.Status) bool { return s.Ready && s.Published.Events >= published+100 }).Published.Events
		}
		flow("the start")
		for _, way := range []struct {
			name string
			do   func() error
		}{
			{"a fast restart", func() error { return server.Restart(t.Context(), pgserver.Fast) }},
			{"an immediate restart", func() error { return server.Restart(t.Context(), pgserver.Immediate) }},
			{"kill -9", func() error {
				if err := server.Kill9(t.Context()); err != nil {
					return err
				}
				return server.StartAgain(t.Context())
			}},
			{"a second kill -9", func() error {
				if err := server.Kill9(t.Context()); err != nil {
					return err
				}
				return server.StartAgain(t.Context())
			}},
		} {
			if err := way.do(); err != nil {
				t.Fatalf("%s: %v", way.name, err)
			}
			flow(way.name)
		}
		w.stop()
		o.reconnect()
		repeats := o.checkTraffic("order")
		t.Logf("%d repeats in %d events", repeats, len(o.committed()))
		if repeats != 0 {
			t.Errorf("%d repeats from a process that stayed up", repeats)
		}
		if !r.running() || r.cmd.Process.Pid != pid {
			t.Error("the process did not stay up")
		}
	})
}

// TestRelayAndServerKilled: the slot comes back older and nobody knows better:
// repeats, but nothing lost and order kept.
func TestRelayAndServerKilled(t *testing.T) {
	t.Parallel()
	o, server := privateOutbox(t, pgserver.Options{Major: 15})
	o.createTopic("order")
	w := o.startTraffic("order")
	for range 3 {
		r := o.start()
		r.awaitPublished(100)
		r.kill()
		if err := server.Kill9(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := server.StartAgain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.stop()
	o.reconnect()
	o.start()
	t.Logf("%d repeats", o.checkTraffic("order"))
}

// TestBackendsTerminated: the server ends the stream, and the connection for
// looking, again and again.
func TestBackendsTerminated(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		o := newOutbox(t, major)
		o.createTopic("order")
		r := o.start()
		w := o.startTraffic("order")
		published := uint64(0)
		terminate := func(kinds string) {
			t.Helper()
			testkit.Await(t, "something to terminate", func() bool {
				return query[int](o, `select count(pg_terminate_backend(pid)) from pg_stat_activity
					where application_name like 'walpost/'||$1||'/%' and backend_type like $2`, o.slot, kinds) > 0
			})
			published = r.await("more events", func(s admin.Status) bool { return s.Slot.Streaming && s.Published.Events >= published+10 }).Published.Events
		}
		for range 6 {
			terminate("client backend") // the side connection
			terminate("walsender")
			terminate("%")
		}
		w.stop()
		if repeats := o.checkTraffic("order"); repeats != 0 {
			t.Errorf("%d repeats from a process that stayed up", repeats)
		}
		r.stop()
	})
}

// TestSideConnectionTerminated: the stream goes on when only looking fails.
func TestSideConnectionTerminated(t *testing.T) {
	t.Parallel()
	o := newOutbox(t, 18)
	o.createTopic("order")
	r := o.start()
	r.awaitReady()
	walsender := query[int](o, `select active_pid from pg_replication_slots where slot_name = $1`, o.slot)
	for n := range 10 {
		testkit.Await(t, "the side connection", func() bool {
			return query[int](o, `select count(pg_terminate_backend(pid)) from pg_stat_activity
				where application_name like 'walpost/'||$1||'/%' and backend_type = 'client backend'`, o.slot) > 0
		})
		o.insertMany("order", 1+10*n, 10, 3)
		r.awaitPublished(uint64(10 * (n + 1)))
	}
	o.awaitConfirmed()
	if now := query[int](o, `select active_pid from pg_replication_slots where slot_name = $1`, o.slot); now != walsender {
		t.Errorf("the stream was opened anew: walsender %d, was %d", now, walsender)
	}
	if repeats := checkNumbers(t, o.read("order"), 100); repeats != 0 {
		t.Errorf("%d repeats", repeats)
	}
}
