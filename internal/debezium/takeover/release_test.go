package takeover

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/slot"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// rig is a database with an outbox table, a publication and a slot that Debezium
// may have.
type rig struct {
	t      *testing.T
	config *pgx.ConnConfig
	slot   string
	log    *observer.ObservedLogs
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dsn := testkit.Postgres(t, 0).NewDB(t)
	r := &rig{t: t, slot: testkit.Unique("dbz")}
	testkit.Exec(t, dsn, "create table outbox (id uuid primary key, aggregatetype text, aggregateid text, payload text)",
		"create publication dbz for table outbox", "select pg_create_logical_replication_slot('"+r.slot+"', 'pgoutput')")
	var err error
	if r.config, err = pg.ParseDSN(dsn); err != nil {
		t.Fatal(err)
	}
	return r
}

// hold streams from the slot, as Debezium does, until the test ends or somebody
// ends the session. The channel is closed then.
func (r *rig) hold() <-chan struct{} {
	r.t.Helper()
	conf := pg.ReplicationConfig(r.config, "Debezium Streaming")
	// A slot that was taken from somebody is free when that session is over.
	var conn *pgconn.PgConn
	testkit.Await(r.t, "the slot for a second Debezium", func() bool {
		var err error
		if conn, err = pg.ConnectReplication(r.t.Context(), conf); err != nil {
			r.t.Fatal(err)
		}
		err = pglogrepl.StartReplication(r.t.Context(), conn, r.slot, 0, pglogrepl.StartReplicationOptions{
			PluginArgs: []string{"proto_version '1'", "publication_names 'dbz'"},
		})
		if err != nil {
			_ = conn.Close(context.Background())
		}
		return err == nil
	})
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		for {
			if _, err := conn.ReceiveMessage(ctx); err != nil {
				_ = conn.Close(context.Background())
				return
			}
		}
	}()
	r.t.Cleanup(func() { cancel(); <-ended })
	return ended
}

func (r *rig) release() *Release {
	core, log := observer.New(zap.DebugLevel)
	r.log = log
	return &Release{Config: r.config, Application: "walpost-takeover", Slot: r.slot, Interval: 10 * time.Millisecond, Log: zap.New(core)}
}

func (r *rig) said(message string) int { return r.log.FilterMessage(message).Len() }

func TestAwaitAFreeSlot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	release := r.release()
	release.Settle = 30 * time.Millisecond
	if err := release.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.said("the slot is free") != 1 {
		t.Errorf("said %v", r.log.All())
	}
}

func TestAwaitInTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ended := r.hold()
	release := r.release()
	release.Wait = 50 * time.Millisecond
	err := release.Await(t.Context())
	held, ok := errors.AsType[*HeldError](err)
	if !ok || !strings.Contains(held.Holder, "(Debezium Streaming from 127.0.0.1)") {
		t.Errorf("got %v", err)
	}
	if n := r.said("waiting until the slot is let go"); n != 1 {
		t.Errorf("the holder was named %d times", n)
	}
	select {
	case <-ended:
		t.Error("the session was ended")
	default:
	}
}

// A holder that comes back is ended again, also while the relay starts, and said.
func TestTerminate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ended := r.hold()
	release := r.release()
	release.Terminate = true
	if err := release.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-ended
	again := r.hold()
	guarding, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		release.Guard(guarding)
	}()
	<-again
	if n := r.said("ended the session that had the slot"); n != 1 {
		t.Errorf("the first end was said %d times", n)
	}
	testkit.Await(t, "a word about its return", func() bool { return r.said("ended the session that had the slot: it had come back") == 1 })
	// A walpost that has the slot ends the guard, and not the other way round.
	conf := pg.ReplicationConfig(r.config, "walpost/"+r.slot+"/x")
	conn, err := pg.ConnectReplication(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	testkit.Await(t, "the slot", func() bool {
		return pglogrepl.StartReplication(t.Context(), conn, r.slot, 0, pglogrepl.StartReplicationOptions{
			PluginArgs: []string{"proto_version '1'", "publication_names 'dbz'"},
		}) == nil
	})
	<-done
	stop()
	if info, err := slot.Inspect(t.Context(), r.connect(), r.slot); err != nil || !isOurs(info) {
		t.Errorf("the relay's session was ended: %+v, %v", info, err)
	}
	if err := release.Await(t.Context()); err != nil || r.said("a walpost has the slot: standing by") != 1 {
		t.Errorf("got %v, said %v", err, r.log.All())
	}
}

func TestTerminateNeedsARight(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ended := r.hold()
	role := testkit.Unique("nobody")
	conn := r.connect()
	if _, err := conn.Exec(t.Context(), "create role "+role+" login"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = conn.Exec(context.Background(), "drop role "+role) })
	release := r.release()
	release.Terminate = true
	release.Config = r.config.Copy()
	release.Config.User, release.Config.Password = role, ""
	err := release.Await(t.Context())
	if !errors.Is(err, slot.ErrDenied) || !strings.Contains(err.(interface{ Hint() string }).Hint(), "pg_signal_backend") {
		t.Errorf("got %v", err)
	}
	select {
	case <-ended:
		t.Error("the session was ended")
	default:
	}
}

func (r *rig) connect() *pgx.Conn {
	r.t.Helper()
	conn, err := pg.Connect(r.t.Context(), r.config, "test")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestAwaitAMissingSlot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	release := r.release()
	release.Slot = "no_such_slot"
	if err := release.Await(t.Context()); !errors.Is(err, slot.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	if err := r.release().Await(ctx); !errors.Is(err, stopped) {
		t.Errorf("after a stop: got %v", err)
	}
}

func TestDrop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ended := r.hold()
	if err := Drop(t.Context(), r.config, "test", r.slot); pg.SQLState(err) != "55006" {
		t.Errorf("a slot in use: got %v", err)
	}
	release := r.release()
	release.Terminate = true
	if err := release.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-ended
	for range 2 { // the second time it is gone
		if err := Drop(t.Context(), r.config, "test", r.slot); err != nil {
			t.Error(err)
		}
	}
	info, err := slot.Inspect(t.Context(), r.connect(), r.slot)
	if err != nil || info.Exists {
		t.Errorf("the slot is still there: %v", err)
	}
}
