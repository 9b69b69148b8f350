package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/slot"
)

// setup is a server with a database for each test.
type setup struct {
	srv *pgserver.Server
}

func onServers(t *testing.T, settings map[string]string, f func(t *testing.T, s setup)) {
	if testing.Short() {
		t.Skip("needs servers: run without -short")
	}
	for _, major := range []int{14, 15, 17, 18} {
		t.Run(strconv.Itoa(major), func(t *testing.T) {
			t.Parallel()
			srv, err := pgserver.Start(t.Context(), pgserver.Options{Major: major, FsyncOff: true, Settings: settings, Log: t.Logf})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = srv.Close() })
			f(t, setup{srv})
		})
	}
}

func (s setup) config(t *testing.T, database, user string) *pgx.ConnConfig {
	t.Helper()
	cfg, err := pg.ParseDSN(s.srv.DSNAs(database, user, ""))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func (s setup) exec(t *testing.T, database string, statements ...string) {
	t.Helper()
	conn, err := pg.Connect(t.Context(), s.config(t, database, pgserver.Superuser), "walpost/test")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// database makes a database.
func (s setup) database(t *testing.T, name string, statements ...string) {
	t.Helper()
	s.exec(t, "postgres", "create database "+name)
	s.exec(t, name, statements...)
}

const contentsSQL = `
select string_agg(what, ', ' order by what) from (
  select 'table ' || n.nspname || '.' || c.relname as what from pg_class c join pg_namespace n on n.oid = c.relnamespace
   where c.relkind in ('r', 'p') and n.nspname not in ('pg_catalog', 'information_schema')
  union all select 'trigger ' || tgname || ' ' || tgenabled::text from pg_trigger where not tgisinternal
  union all select 'publication ' || pubname || ' ' || pubinsert::text || ' ' || pubupdate::text || ' ' || pubviaroot::text from pg_publication
  union all select 'function ' || p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = 'walpost'
  union all select 'slot ' || slot_name || ' ' || plugin from pg_replication_slots where database = current_database()) as contents`

// contents says what there is in a database.
func (s setup) contents(t *testing.T, database string) string {
	t.Helper()
	conn, err := pg.Connect(t.Context(), s.config(t, database, pgserver.Superuser), "walpost/test")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var contents *string
	if err := conn.QueryRow(t.Context(), contentsSQL).Scan(&contents); err != nil {
		t.Fatal(err)
	}
	if contents == nil {
		return ""
	}
	return *contents
}

var outboxEvents = []slot.Table{{Schema: "public", Name: "outbox_events"}}

// needsPayload stands for the mapping of columns.
func needsPayload(def *slot.Definition) error {
	if slices.ContainsFunc(def.Columns, func(c slot.Column) bool { return c.Name == "payload" }) {
		return nil
	}
	return &pg.Error{Text: "table " + def.String() + ": no column payload", Way: "map the columns"}
}

func options(name string) Options {
	return Options{Slot: name, Publication: name, Tables: outboxEvents, CreateTables: true, Failover: true, CheckTable: needsPayload}
}

func states(r *Result) (list []string) {
	for _, s := range r.Steps {
		list = append(list, fmt.Sprintf("%s %s %s", s.Name, s.Object, s.State))
	}
	return list
}

func TestRunTwice(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, s setup) {
		s.database(t, "app")
		cfg := s.config(t, "app", pgserver.Superuser)
		r, err := Run(t.Context(), cfg, options("orders"))
		if err != nil {
			t.Fatal(twoLines(err))
		}
		if want := []string{"table public.outbox_events created", "publication orders created", "slot orders created"}; !cmp.Equal(states(r), want) {
			t.Error(cmp.Diff(states(r), want))
		}
		if r.StartLSN == "" {
			t.Error("the position where the slot begins is not said")
		}
		const want = "function append_only, publication orders true false true, slot orders pgoutput, table public.outbox_events, " +
			"trigger walpost_append_only A, trigger walpost_append_only_truncate A"
		if got := s.contents(t, "app"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		r, err = Run(t.Context(), cfg, options("orders"))
		if err != nil {
			t.Fatal(twoLines(err))
		}
		if want := []string{"table public.outbox_events unchanged", "publication orders unchanged", "slot orders unchanged"}; !cmp.Equal(states(r), want) {
			t.Error(cmp.Diff(states(r), want))
		}
		if got := s.contents(t, "app"); got != want || r.StartLSN != "" {
			t.Errorf("the second run changed something: %s", got)
		}

		conn, err := pg.Connect(t.Context(), cfg, "walpost/test")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		info, err := slot.Inspect(t.Context(), conn, "orders")
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Failover != nil && *info.Failover; got != (s.srv.Major() >= 17) {
			t.Errorf("failover is %v", info.Failover)
		}
	})
}

// The guard holds, also for a session that skips ordinary triggers, and lets
// the cleaner delete.
func TestAppendOnly(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, s setup) {
		for _, payload := range Payloads {
			name := "app_" + payload
			s.database(t, name)
			opt := options(name)
			opt.Payload = payload
			cfg := s.config(t, name, pgserver.Superuser)
			if _, err := Run(t.Context(), cfg, opt); err != nil {
				t.Fatal(twoLines(err))
			}
			conn, err := pg.Connect(t.Context(), cfg, "walpost/test")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close(context.Background()) }()
			const insert = `insert into outbox_events (event_id, aggregate_type, aggregate_id, event_type, payload, occurred_at)
				values (gen_random_uuid(), 'order', 'o-1', 'order_placed', '{}', now())`
			for _, try := range []struct{ statement, state string }{
				{insert, ""},
				{"update outbox_events set event_type = 'x'", "23001"},
				{"truncate outbox_events", "23001"},
				{"set session_replication_role = replica", ""},
				{"update outbox_events set event_type = 'x'", "23001"},
				{"truncate outbox_events", "23001"},
				{"set session_replication_role = origin", ""},
				{strings.Replace(insert, "'o-1'", "''", 1), "23514"},
				{strings.Replace(insert, "'order',", "repeat('x', 201),", 1), "23514"},
				{"delete from outbox_events", ""},
			} {
				_, err := conn.Exec(t.Context(), try.statement)
				if got := pg.SQLState(err); got != try.state {
					t.Errorf("%s: %s: got %v, want SQLSTATE %q", payload, try.statement, err, try.state)
				}
			}
		}
	})
}

// What SQL prints does what Run does.
func TestSQLFits(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, s setup) {
		s.database(t, "app")
		opt := options("orders")
		opt.Tables = []slot.Table{{Schema: "public", Name: "outbox_events"}, {Schema: "public", Name: "Out Box"}}
		opt.Failover = s.srv.Major() >= 17
		sql, err := SQL(opt)
		if err != nil {
			t.Fatal(err)
		}
		transaction, slotSQL, ok := strings.Cut(sql, "\ncommit;\n")
		if !ok {
			t.Fatalf("no commit in %s", sql)
		}
		conn, err := pg.ConnectReplication(t.Context(), &s.config(t, "app", pgserver.Superuser).Config)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		for _, part := range []string{transaction + "\ncommit;", slotSQL} {
			if _, err := conn.Exec(t.Context(), part).ReadAll(); err != nil {
				t.Fatalf("%s: %v", part, err)
			}
		}
		r, err := Run(t.Context(), s.config(t, "app", pgserver.Superuser), opt)
		if err != nil {
			t.Fatal(twoLines(err))
		}
		for _, step := range r.Steps {
			if step.State != Unchanged || step.Note != "" {
				t.Errorf("%+v", step)
			}
		}
	})
}

func twoLines(err error) string {
	if err == nil {
		return "no error"
	}
	hint := ""
	if h, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		hint = h.Hint()
	}
	return fmt.Sprintf("error: %s\nhint: %s", err, hint)
}

// TestCreatedTableMatchesTheConfiguration: what is made must do for the relay.
func TestCreatedTableMatchesTheConfiguration(t *testing.T) {
	t.Parallel()
	opt := Options{
		Slot: "orders", Publication: "orders", Tables: []slot.Table{{Schema: "public", Name: "events"}}, CreateTables: true,
		CheckTable: func(def *slot.Definition) error {
			for _, c := range def.Columns {
				if c.Name == "uid" {
					return nil
				}
			}
			return errors.New("no column uid")
		},
	}
	if _, err := SQL(opt); err == nil || !strings.Contains(err.Error(), "no column uid") {
		t.Errorf("got %v", err)
	}
}
