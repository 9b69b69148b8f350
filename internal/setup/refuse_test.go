package setup

import (
	"errors"
	"testing"

	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/slot"
)

const outboxTable = "create table outbox_events (event_id uuid primary key, aggregate_type text, aggregate_id text, event_type text, payload jsonb)"

// What does not fit is refused in two lines, and nothing is changed.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, s setup) {
		s.exec(t, "postgres", "create role app login", "create role owner login replication", "create role relay login replication")
		denied := "permission denied to start WAL sender"
		if s.srv.Major() < 16 {
			denied = "must be superuser or replication role to start walsender"
		}
		for name, tc := range map[string]struct {
			prepare []string
			user    string
			from    int // the first version that has it
			create  bool
			kind    error
			want    string
		}{
			"no_table": {
				kind: slot.ErrTable,
				want: "error: table public.outbox_events does not exist\n" +
					"hint: add --create-table, or name the outbox table with --table; names are case sensitive",
			},
			"missing_column": {
				prepare: []string{"create table outbox_events (id int)"}, kind: slot.ErrTable,
				want: "error: table public.outbox_events: no column payload\nhint: map the columns",
			},
			"unlogged": {
				prepare: []string{outboxTable, "alter table outbox_events set unlogged"}, kind: slot.ErrTable,
				want: "error: table public.outbox_events is unlogged or temporary: its changes never reach the WAL\n" +
					`hint: alter table "public"."outbox_events" set logged`,
			},
			"wide_publication": {
				prepare: []string{outboxTable, "create publication wide_publication for table outbox_events"}, kind: slot.ErrPublication,
				want: "error: publication \"wide_publication\" publishes insert, update, delete, truncate: only an insert is an event\n" +
					`hint: alter publication "wide_publication" set (publish = 'insert'), or choose another name with --publication`,
			},
			"all_tables": {
				prepare: []string{outboxTable, "create publication all_tables for all tables with (publish = 'insert')"}, kind: slot.ErrPublication,
				want: "error: publication \"all_tables\" is for all tables: it publishes more than the outbox\n" +
					"hint: choose another name with --publication: the outbox tables can be in several publications",
			},
			"other_table": {
				prepare: []string{
					outboxTable, "create table orders (id int)", "create table items (id int)",
					"create publication other_table for table outbox_events, orders, items with (publish = 'insert')",
				},
				kind: slot.ErrPublication,
				want: "error: publication \"other_table\" publishes tables that are no outbox: public.items, public.orders\n" +
					`hint: alter publication "other_table" drop table "public"."items", name them with --table, or choose another name with --publication`,
			},
			"other_publication": {
				prepare: []string{outboxTable, "create publication other_publication with (publish = 'insert')"}, kind: slot.ErrPublication,
				want: "error: table public.outbox_events is not in publication \"other_publication\"\n" +
					`hint: alter publication "other_publication" add table "public"."outbox_events"; rows inserted before that are not in the stream`,
			},
			"publication_of_no_table": {
				prepare: []string{"create publication publication_of_no_table with (publish = 'insert')"}, create: true, kind: slot.ErrPublication,
				want: "error: publication \"publication_of_no_table\" exists, and table public.outbox_events does not, so it is not in it\n" +
					"hint: choose another name with --publication, or drop that publication if nobody needs it",
			},
			"row_filter": {
				from:    15,
				prepare: []string{outboxTable, "create publication row_filter for table outbox_events where (event_type <> 'x') with (publish = 'insert')"},
				kind:    slot.ErrPublication,
				want: "error: publication \"row_filter\" has a row filter on public.outbox_events: events that it hides would be lost\n" +
					`hint: take it off: alter publication "row_filter" set table "public"."outbox_events"`,
			},
			"column_list": {
				from:    15,
				prepare: []string{outboxTable, "create publication column_list for table outbox_events (event_id, event_type) with (publish = 'insert')"},
				kind:    slot.ErrPublication,
				want: "error: publication \"column_list\" publishes only some columns of public.outbox_events, and they do not make an event: " +
					"table public.outbox_events: no column payload\n" +
					`hint: publish all columns: alter publication "column_list" set table "public"."outbox_events"`,
			},
			"slot_first": {
				prepare: []string{outboxTable, "select pg_create_logical_replication_slot('slot_first', 'pgoutput')"}, kind: slot.ErrPublication,
				want: "error: slot \"slot_first\" exists, and publication \"slot_first\" does not: made now, it would not be there for the WAL that the slot holds\n" +
					"hint: name the slot's publication with --publication, or drop the slot if nobody needs it (select pg_drop_replication_slot('slot_first')) and run this again",
			},
			"other_plugin": {
				prepare: []string{outboxTable, "select pg_create_logical_replication_slot('other_plugin', 'test_decoding')"}, kind: slot.ErrUnfit,
				want: "error: slot \"other_plugin\" uses plugin \"test_decoding\", not pgoutput: another program may own it\n" +
					"hint: choose another name with --slot, or drop it if nobody needs it: select pg_drop_replication_slot('other_plugin')",
			},
			"no_replication": {
				prepare: []string{outboxTable}, user: "app", kind: slot.ErrDenied,
				want: "error: connect to PostgreSQL at " + s.srv.Addr() + ": " + denied + " (SQLSTATE 42501)\n" +
					`hint: alter role "app" replication; on a managed service grant the provider's replication role instead; ` +
					`or let an administrator run what "walpost init --print" shows`,
			},
			"not_the_owner": {
				prepare: []string{outboxTable, "grant create on database not_the_owner to relay"}, user: "relay", kind: slot.ErrDenied,
				want: "error: create publication not_the_owner: ERROR: must be owner of table outbox_events (SQLSTATE 42501)\n" +
					`hint: nothing was changed; let the owner of the tables, with the right to create in the database, run what "walpost init --print" shows`,
			},
			"no_create": {
				prepare: []string{outboxTable, "alter table outbox_events owner to owner"}, user: "owner", kind: slot.ErrDenied,
				want: "error: create publication no_create: ERROR: permission denied for database no_create (SQLSTATE 42501)\n" +
					`hint: nothing was changed; let the owner of the tables, with the right to create in the database, run what "walpost init --print" shows`,
			},
			"no_create_for_tables": {
				user: "owner", create: true, kind: slot.ErrDenied,
				want: "error: create table public.outbox_events: ERROR: permission denied for database no_create_for_tables (SQLSTATE 42501)\n" +
					`hint: nothing was changed; let the owner of the tables, with the right to create in the database, run what "walpost init --print" shows`,
			},
		} {
			if s.srv.Major() < tc.from {
				continue
			}
			s.database(t, name, tc.prepare...)
			before := s.contents(t, name)
			opt := options(name)
			opt.CreateTables = tc.create
			if tc.user == "" {
				tc.user = pgserver.Superuser
			}
			_, err := Run(t.Context(), s.config(t, name, tc.user), opt)
			if got := twoLines(err); got != tc.want || !errors.Is(err, tc.kind) {
				t.Errorf("%s:\ngot  %s\nwant %s", name, got, tc.want)
			}
			if after := s.contents(t, name); after != before {
				t.Errorf("%s: something was changed: %s", name, after)
			}
		}
	})
}

func TestRunWithoutLogicalWAL(t *testing.T) {
	t.Parallel()
	// The role may not replicate either; what is named is wal_level.
	onServers(t, map[string]string{"wal_level": "replica"}, func(t *testing.T, s setup) {
		s.database(t, "app", "create role app login")
		_, err := Run(t.Context(), s.config(t, "app", "app"), options("orders"))
		want := "error: wal_level is \"replica\", and logical replication needs \"logical\"\n" +
			"hint: alter system set wal_level = logical, then restart the server; a managed service has a parameter of its own for it"
		if got := twoLines(err); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := s.contents(t, "app"); got != "" {
			t.Errorf("something was changed: %s", got)
		}
	})
}

func TestRunWithoutAFreeSlot(t *testing.T) {
	t.Parallel()
	onServers(t, map[string]string{"max_replication_slots": "1"}, func(t *testing.T, s setup) {
		s.database(t, "app", "select pg_create_physical_replication_slot('backup')")
		_, err := Run(t.Context(), s.config(t, "app", pgserver.Superuser), options("orders"))
		want := "error: no replication slot is free: 1 of 1 are used (max_replication_slots)\n" +
			"hint: drop one that nobody needs (select slot_name, active from pg_replication_slots), or raise max_replication_slots and restart the server"
		if got := twoLines(err); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := s.contents(t, "app"); got != "" {
			t.Errorf("something was changed: %s", got)
		}
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"payload": {
			func(o *Options) { o.Payload = "xml; drop table x" },
			"error: \"xml; drop table x\" cannot be the type of the payload\nhint: choose one of jsonb, json, text, bytea",
		},
		"slot": {
			func(o *Options) { o.Slot = "My-Slot" },
			"error: \"My-Slot\" cannot be the name of a slot\nhint: use lower case letters, digits and underscores, at most 63 of them",
		},
		"publication": {
			func(o *Options) { o.Publication = "" },
			"error: \"\" cannot be the name of a publication\nhint: use a name of 1 to 63 bytes",
		},
		"tables": {
			func(o *Options) { o.Tables = nil },
			"error: no outbox table is named\nhint: name one with --table",
		},
	} {
		opt := options("orders")
		tc.change(&opt)
		_, err := SQL(opt)
		if got := twoLines(err); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tc.want)
		}
	}
}
