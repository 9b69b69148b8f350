package slot

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/testkit/pgserver"
)

// watch runs a Monitor; looked receives after each thing that it did.
func watch(t *testing.T, srv *pgserver.Server, opt MonitorOptions, set func(*Monitor)) (m *Monitor, looked <-chan struct{}) {
	t.Helper()
	cfg, err := pg.ParseDSN(srv.DSN("app"))
	if err != nil {
		t.Fatal(err)
	}
	ticks := make(chan struct{}, 1)
	opt.Config, opt.Slot, opt.Publication, opt.Tables = cfg, "orders", "p", []Table{{"public", "events"}}
	opt.Now = func() time.Time {
		select {
		case ticks <- struct{}{}:
		default:
		}
		return time.Now()
	}
	m = NewMonitor(opt)
	if set != nil {
		set(m)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("the test is over")
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel(stopped)
		if err := <-done; !errors.Is(err, stopped) && !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
	})
	return m, ticks
}

// until waits for an observation.
func until(t *testing.T, m *Monitor, looked <-chan struct{}, what string, ok func(Observation) bool) Observation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		if o := m.Latest(); ok(o) {
			return o
		}
		select {
		case <-looked:
		case <-ctx.Done():
			t.Fatalf("never seen: %s; last %+v", what, m.Latest())
		}
	}
}

func TestMonitor(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, srv *pgserver.Server) {
		conn := database(t, srv, "app")
		exec(t, conn, "create table events (id int)", "create publication p for table events with (publish = 'insert')")
		if _, err := Create(t.Context(), conn, CreateOptions{Name: "orders"}); err != nil {
			t.Fatal(err)
		}
		broken, shutdown := make(chan error, 100), make(chan struct{}, 100)
		m, looked := watch(t, srv, MonitorOptions{Interval: 20 * time.Millisecond}, func(m *Monitor) {
			m.OnPublicationBroken(func(err error) { broken <- err })
			m.OnServerShutdown(func() { shutdown <- struct{}{} })
		})
		o := until(t, m, looked, "a first look", func(o Observation) bool { return o.Info != nil })
		if o.Err != nil || !o.Info.Exists || o.Published == nil || o.PublicationErr != nil || o.Failures != 0 || o.At.IsZero() {
			t.Errorf("first look: %+v", o)
		}
		m.Expect(o.Published)

		// The server comes back; the monitor follows, and keeps what it knew.
		if err := srv.Stop(t.Context(), pgserver.Immediate); err != nil {
			t.Fatal(err)
		}
		o = until(t, m, looked, "a failure", func(o Observation) bool { return o.Failures > 0 })
		if o.Err == nil || o.Info == nil || o.Published == nil || !pg.IsPassing(o.Err) {
			t.Errorf("while the server is down: %+v", o)
		}
		if err := srv.StartAgain(t.Context()); err != nil {
			t.Fatal(err)
		}
		until(t, m, looked, "a look after the restart", func(o Observation) bool { return o.Failures == 0 && o.Err == nil })

		conn = connect(t, srv.DSN("app"))
		exec(t, conn, "drop publication p")
		o = until(t, m, looked, "the missing publication", func(o Observation) bool { return o.PublicationErr != nil })
		if o.Published != nil || !errors.Is(o.PublicationErr, ErrPublication) {
			t.Errorf("without the publication: %+v", o)
		}
		if err := <-broken; !errors.Is(err, ErrPublication) {
			t.Errorf("told %v", err)
		}
		exec(t, conn, "create publication p for table events with (publish = 'insert')")
		o = until(t, m, looked, "the new publication", func(o Observation) bool {
			return o.PublicationErr != nil && o.PublicationErr.Error() == `publication "p" was dropped and made anew`
		})
		if o.Err != nil {
			t.Errorf("a look that succeeded: %+v", o)
		}
		if len(broken) != 0 {
			t.Error("told more than once")
		}
	})
}

// A fast shutdown waits for walsenders, which are not told of it. The monitor's
// session is told.
func TestMonitorSeesAShutdownAtOnce(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, srv *pgserver.Server) {
		database(t, srv, "app")
		shutdown := make(chan struct{}, 100)
		// Nothing but the server's own word can wake it within the hour.
		m, looked := watch(t, srv, MonitorOptions{Interval: time.Hour}, func(m *Monitor) {
			m.OnServerShutdown(func() { shutdown <- struct{}{} })
		})
		until(t, m, looked, "a first look", func(o Observation) bool { return o.Info != nil })
		if err := srv.Stop(t.Context(), pgserver.Fast); err != nil {
			t.Fatal(err)
		}
		select {
		case <-shutdown:
		case <-t.Context().Done():
			t.Fatal("not told")
		}
		if o := m.Latest(); pg.SQLState(o.Err) != "57P01" && o.Failures < 2 {
			t.Errorf("%+v", o)
		}
	})
}

func TestMonitorRoot(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, srv *pgserver.Server) {
		conn := database(t, srv, "app")
		exec(t, conn, "create table parts (id int) partition by range (id)",
			"create table parts_1 partition of parts for values from (0) to (10)")
		var oid uint32
		if err := conn.QueryRow(t.Context(), "select 'parts_1'::regclass::oid").Scan(&oid); err != nil {
			t.Fatal(err)
		}
		// It is asked from the start on, by many, and answers although it has an
		// hour to wait for.
		m, looked := watch(t, srv, MonitorOptions{Interval: time.Hour}, nil)
		ask := func() {
			var all sync.WaitGroup
			for range 40 {
				all.Go(func() {
					root, published, ok, err := m.Root(t.Context(), oid)
					if err != nil || !ok || published || root != (Table{"public", "parts"}) {
						t.Errorf("%s %v %v %v", root, published, ok, err)
					}
				})
			}
			all.Wait()
		}
		ask()
		until(t, m, looked, "a first look", func(o Observation) bool { return o.Info != nil })
		ask()
		// A session that is ended in between is replaced.
		exec(t, conn, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'walpost/orders/monitor'")
		ask()

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := srv.Stop(t.Context(), pgserver.Immediate); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := m.Root(ended, oid); !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: %v", err)
		}
	})
}
