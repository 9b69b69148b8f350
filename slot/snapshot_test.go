package slot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/testkit/pgserver"
)

// snapshotOf opens one of the tables.
func snapshotOf(t *testing.T, dsn string, change func(*SnapshotOptions), tables ...string) (*Snapshot, error) {
	t.Helper()
	cfg, err := pg.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	opt := SnapshotOptions{Config: cfg, Application: "walpost/test", Slot: "s"}
	conn := connect(t, dsn)
	for _, name := range tables {
		def, err := FindTable(t.Context(), conn, Table{"public", name})
		if err != nil || def == nil {
			t.Fatal(name, err)
		}
		opt.Tables = append(opt.Tables, def)
	}
	if change != nil {
		change(&opt)
	}
	s, err := OpenSnapshot(t.Context(), opt)
	if err == nil {
		t.Cleanup(func() { s.Close(context.Background()) })
	}
	return s, err
}

// rows reads the first column.
func (s *Snapshot) rows(t *testing.T, i int) (list []string) {
	t.Helper()
	err := s.Rows(t.Context(), s.opt.Tables[i], func(row [][]byte) error {
		list = append(list, string(row[0]))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func value[T any](t *testing.T, conn *pgx.Conn, sql string) (v T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// TestSnapshot: it shows what was there, the slot begins exactly behind, and
// nothing else is left.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, srv *pgserver.Server) {
		conn := connect(t, srv.DSN("postgres"))
		exec(t, conn, "create table out (id text, n int)", "create publication p for table out with (publish = 'insert')", "insert into out select n::text, n from generate_series(1, 5) n")
		s, err := snapshotOf(t, srv.DSN("postgres"), func(o *SnapshotOptions) { o.Failover = true }, "out")
		if err != nil {
			t.Fatal(err)
		}
		exec(t, conn, "insert into out values ('later', 6)", "delete from out where n < 3")
		if diff := cmp.Diff([]string{"1", "2", "3", "4", "5"}, s.rows(t, 0)); diff != "" {
			t.Error(diff)
		}
		if n := value[int](t, conn, "select count(*) from pg_replication_slots where slot_name = 's'"); n != 0 {
			t.Error("there is a slot before everything is delivered")
		}
		if err := s.MakeSlot(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Close(t.Context())
		if at := value[string](t, conn, "select confirmed_flush_lsn::text from pg_replication_slots where slot_name = 's'"); at != s.Start().String() || at != s.History().LSN.String() {
			t.Errorf("the slot begins at %s, the snapshot is of %s", at, s.History().LSN)
		}
		if srv.Major() >= 17 && !value[bool](t, conn, "select failover from pg_replication_slots where slot_name = 's'") {
			t.Error("no failover")
		}
		for deadline := time.Now().Add(20 * time.Second); value[int](t, conn, "select count(*) from pg_replication_slots where temporary") > 0; {
			if time.Now().After(deadline) {
				t.Fatal("the temporary slot is left")
			}
		}
		inserts := value[int](t, conn, `select count(*) filter (where get_byte(data, 0) = ascii('I'))
			from pg_logical_slot_peek_binary_changes('s', null, null, 'proto_version', '1', 'publication_names', 'p')`)
		if inserts != 1 {
			t.Errorf("the slot gives %d inserts, want the one behind the snapshot", inserts)
		}
	})
}

// TestSnapshotOrder: rows come as they were written, as far as the table tells.
func TestSnapshotOrder(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs servers: run without -short")
	}
	srv := startServer(t, 18, nil)
	conn := connect(t, srv.DSN("postgres"))
	exec(t, conn,
		"create table identity (n text, id uuid primary key default gen_random_uuid(), seq bigint generated always as identity)",
		"create table serial (n text, id uuid primary key default gen_random_uuid(), seq serial)",
		"create table numbered (n text, b int, a int, primary key (a, b) include (n))",
		"create table random (n text, id uuid primary key default gen_random_uuid())",
		"create table bare (n text)",
		`create table computed (n text, id int primary key, other int default 1, twice int generated always as (id * 2) stored)`,
		"create table root (n text, id uuid, primary key (n, id)) partition by range (n)",
		"create table root_1 partition of root for values from ('0') to ('5')", "create table root_2 partition of root default",
	)
	tables := []string{"identity", "serial", "numbered", "random", "bare", "computed", "root"}
	columns := map[string]string{"numbered": "n, b, a", "computed": "n, id", "root": "n, id"}
	values := map[string]string{"numbered": "n::text, 0, n", "computed": "n::text, n", "root": "n::text, gen_random_uuid()"}
	for _, table := range tables {
		c, v := columns[table], values[table]
		if c == "" {
			c, v = "n", "n::text"
		}
		exec(t, conn, "insert into "+table+" ("+c+") select "+v+" from generate_series(1, 9) n")
	}
	exec(t, conn, "update numbered set b = 1 where a = 3", "update identity set n = n where n = '3'", "update serial set n = n where n = '4'") // they move to the end
	s, err := snapshotOf(t, srv.DSN("postgres"), nil, tables...)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split("123456789", "")
	for i, table := range tables {
		if got := s.rows(t, i); !slices.Equal(got, want) {
			t.Errorf("%s: %v", table, got)
		}
	}
}

// TestSnapshotRefused: what stands in the way is found before any row is read,
// and named.
func TestSnapshotRefused(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs servers: run without -short")
	}
	srv := startServer(t, 18, map[string]string{"max_replication_slots": "2"})
	dsn := srv.DSN("postgres")
	conn := connect(t, dsn)
	exec(t, conn, "create table out (id int)", "insert into out values (1)")
	refused := func(change func(*SnapshotOptions), kind error, text, way string) {
		t.Helper()
		_, err := snapshotOf(t, dsn, change, "out")
		e, ok := errors.AsType[*Error](err)
		if !ok || !errors.Is(err, kind) || !strings.Contains(e.Error(), text) || !strings.Contains(e.Hint(), way) {
			t.Errorf("got  %s\nwant %s: %s, %s", twoLines(err), kind, text, way)
		}
	}
	open, err := connect(t, dsn).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open.Exec(t.Context(), "insert into out values (2)"); err != nil {
		t.Fatal(err)
	}
	short := func(o *SnapshotOptions) { o.Wait = 300 * time.Millisecond }
	refused(short, ErrInUse, "waited 300ms for transactions that were open before; the oldest is that of PID", "let it end")
	if err := open.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, err := snapshotOf(t, dsn, nil, "out")
	if err != nil {
		t.Fatal(err)
	}
	refused(nil, ErrInUse, "another instance takes the snapshot", "waits")
	refused(func(o *SnapshotOptions) { o.Slot = "other" }, ErrServer, "two free replication slots, one of them for the time being: 1 of 2 are used", "raise max_replication_slots")
	if err := first.MakeSlot(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.Close(t.Context())
	refused(nil, ErrInUse, `slot "s" was made by another instance`, "waits")
	refused(func(o *SnapshotOptions) { o.Slot = "Nonsense" }, ErrUnfit, "cannot be the name of a slot", "lower case")
}

// TestSnapshotRewrite: a table that is rewritten looks empty to an older
// snapshot. Who would rewrite one waits until it is read.
func TestSnapshotRewrite(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs servers: run without -short")
	}
	srv := startServer(t, 18, nil)
	conn := connect(t, srv.DSN("postgres"))
	exec(t, conn, "create table first (id int)", "create table second (id int)", "insert into second select generate_series(1, 100)")
	s, err := snapshotOf(t, srv.DSN("postgres"), nil, "first", "second")
	if err != nil {
		t.Fatal(err)
	}
	exec(t, conn, "set lock_timeout = '100ms'")
	for _, statement := range []string{"alter table second alter id type bigint", "truncate second", "cluster second using none"} {
		if _, err := conn.Exec(t.Context(), statement); err == nil {
			t.Errorf("%s went through", statement)
		}
	}
	s.rows(t, 0)
	if n := len(s.rows(t, 1)); n != 100 {
		t.Errorf("%d rows", n)
	}
}
