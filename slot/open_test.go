package slot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/internal/testkit/proxy"
)

func streamOptions(t *testing.T, dsn string) StreamOptions {
	t.Helper()
	cfg, err := pg.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return StreamOptions{
		Config: cfg, Slot: "orders", Publication: "pub", Application: "walpost/orders/test",
		Tables: []Table{{"public", "events"}},
	}
}

// TestRowsWithoutAPublication: rows that the server leaves out, because there was
// no publication when they were written, end the stream. From 18 on it only
// warns, and neither the role nor the DSN can turn that off.
func TestRowsWithoutAPublication(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, srv *pgserver.Server) {
		conn := database(t, srv, "app")
		exec(t, conn, "create table events (id int)",
			"create role quiet login replication", "alter role quiet set client_min_messages = error",
			"select pg_create_logical_replication_slot('orders', 'pgoutput')",
			"insert into events values (1)",
			"create publication pub for table events with (publish = 'insert')")
		var text string
		if err := conn.QueryRow(t.Context(), "select pg_current_wal_insert_lsn()::text").Scan(&text); err != nil {
			t.Fatal(err)
		}
		end, err := pglogrepl.ParseLSN(text)
		if err != nil {
			t.Fatal(err)
		}
		code := "42704"
		if srv.Major() >= 18 {
			code = "55000"
		}
		for name, dsn := range map[string]string{
			"role":      srv.DSNAs("app", "quiet", ""),
			"parameter": srv.DSN("app") + "&Client_Min_Messages=error",
			"options":   srv.DSN("app") + "&options=-c%20client_min_messages%3Derror",
		} {
			opt := streamOptions(t, dsn)
			opt.Application += "/" + name
			s, err := Open(t.Context(), opt)
			for errors.Is(err, ErrInUse) { // the walsender of the case before
				s, err = Open(t.Context(), opt)
			}
			if err != nil {
				t.Fatalf("%s: %s", name, twoLines(err))
			}
			for err == nil {
				var m Message
				if m, err = s.Receive(); err == nil && m.Keepalive && m.ServerWALEnd >= end {
					t.Errorf("%s: the server has gone beyond the row, and nobody noticed", name)
					break
				}
			}
			s.Abort()
			if e, ok := errors.AsType[*Error](err); err != nil && (!ok || !errors.Is(e, ErrPublication) || e.SQLState != code) {
				t.Errorf("%s: %s", name, twoLines(err))
			}
		}
	})
}

// TestOpenWhileInUse: who waits for the slot is told who has it, and takes no
// walsender to find out.
func TestOpenWhileInUse(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, srv *pgserver.Server) {
		conn := database(t, srv, "app")
		exec(t, conn, "create table events (id int)",
			"create publication pub for table events with (publish = 'insert')",
			"select pg_create_logical_replication_slot('orders', 'pgoutput')")
		holder, err := Open(t.Context(), streamOptions(t, srv.DSN("app")))
		if err != nil {
			t.Fatal(twoLines(err))
		}
		t.Cleanup(holder.Abort)
		p, err := proxy.New(srv.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		waiting := streamOptions(t, srv.DSNVia(p.Addr(), "app", pgserver.Superuser, ""))
		waiting.Application = "walpost/orders/waiting"
		_, err = Open(t.Context(), waiting)
		want := fmt.Sprintf("error: slot \"orders\" is active for PID %d (walpost/orders/test from 127.0.0.1)\n"+
			"hint: another instance is relaying; this one takes over when it stops", holder.conn.PID())
		if got := twoLines(err); got != want || !errors.Is(err, ErrInUse) || !IsPassing(err) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if n := p.Accepted(); n != 1 {
			t.Errorf("%d connections to look at a slot that is in use, want 1", n)
		}
		// The refusal of who looked a moment too early says the same.
		s := &Stream{opt: waiting}
		refusal := s.inUse(t.Context(), &pgconn.PgError{Code: "55006", Message: "in use"})
		if got := twoLines(refusal); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		// What is wrong besides is not kept until it is our turn.
		waiting.Publication = "none"
		if _, err := Open(t.Context(), waiting); !errors.Is(err, ErrPublication) {
			t.Errorf("without the publication: %v", err)
		}
		unfit := errors.New("no column for the payload")
		waiting.Publication, waiting.Fits = "pub", func(*Definition) error { return unfit }
		if _, err := Open(t.Context(), waiting); !errors.Is(err, ErrTable) || !strings.Contains(err.Error(), unfit.Error()) {
			t.Errorf("with a table that does not fit: %v", err)
		}
	})
}

// TestSettle: what a predecessor was sent before the slot became ours lies below
// WALEnd, however long after our first look that was.
func TestSettle(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, srv *pgserver.Server) {
		conn := database(t, srv, "app")
		exec(t, conn, "select pg_create_logical_replication_slot('orders', 'pgoutput')")
		before, err := Inspect(t.Context(), conn, "orders")
		if err != nil {
			t.Fatal(err)
		}
		s := &Stream{opt: StreamOptions{Slot: "orders"}, walEnd: before.CurrentLSN, start: *before.ConfirmedFlushLSN}
		exec(t, conn, "select pg_logical_emit_message(true, 'x', repeat('x', 10000))",
			"select pg_replication_slot_advance('orders', pg_current_wal_flush_lsn())")
		now, err := Inspect(t.Context(), conn, "orders")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.settle(context.Background(), conn); err != nil {
			t.Fatal(err)
		}
		if s.WALEnd() < *now.ConfirmedFlushLSN || s.WALEnd() < before.CurrentLSN+10000 {
			t.Errorf("the WAL ended at %s, and what is delivered at %s; settled at %s", before.CurrentLSN, now.ConfirmedFlushLSN, s.WALEnd())
		}
		if s.start != *now.ConfirmedFlushLSN || s.History().LSN != s.start {
			t.Errorf("begins at %s, want %s", s.start, now.ConfirmedFlushLSN)
		}
		// Another server of the DSN may be behind.
		end := now.CurrentLSN + 1<<40
		s.walEnd = end
		if err := s.settle(t.Context(), conn); err != nil || s.WALEnd() != end {
			t.Errorf("the end of the WAL went back to %s, %v", s.WALEnd(), err)
		}
	})
}
