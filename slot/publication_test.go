package slot

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/walpost/walpost/internal/testkit/pgserver"
)

const outbox = "(event_id uuid primary key, aggregate_type text, aggregate_id text, event_type text, payload jsonb)"

func TestCheckPublication(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, srv *pgserver.Server) {
		conn := database(t, srv, "app")
		exec(t, conn,
			"create table events "+outbox,
			`create schema "My-App"`, `create table "My-App"."Out.Box" `+outbox,
			"create table parts (id int, event_id uuid) partition by range (id)",
			"create table parts_1 partition of parts for values from (0) to (10)",
			"create table empty_parts (id int) partition by range (id)",
			"create unlogged table volatile (id int)",
			"create view seen as select 1 as id",
			"create table other (id int)",
			`create publication "Pub-1" for table events, "My-App"."Out.Box", parts, empty_parts with (publish = 'insert')`,
			"create publication updates for table events with (publish = 'update')",
			"create publication leaf for table parts_1 with (publish = 'insert')",
			"create publication everything for all tables")
		publication := Table{"public", "events"}
		for name, tc := range map[string]struct {
			publication string
			table       Table
			kind        error
			text, way   string
		}{
			"fine":              {"Pub-1", publication, nil, "", ""},
			"quoted":            {"Pub-1", Table{"My-App", "Out.Box"}, nil, "", ""},
			"partitioned":       {"Pub-1", Table{"public", "parts"}, nil, "", ""},
			"without partition": {"Pub-1", Table{"public", "empty_parts"}, nil, "", ""},
			"one partition":     {"Pub-1", Table{"public", "parts_1"}, nil, "", ""},
			"all tables":        {"everything", publication, nil, "", ""},
			"all, partitioned":  {"everything", Table{"public", "parts"}, nil, "", ""},
			"missing": {
				"nothing", publication, ErrPublication, `publication "nothing" does not exist`,
				`if it never did, run "walpost init"; if it was dropped, rows written since then are not in the stream: find them in the table before making publication and slot anew`,
			},
			"wrong case": {
				"pub-1", publication, ErrPublication, `publication "pub-1" does not exist`,
				`if it never did, run "walpost init"; if it was dropped, rows written since then are not in the stream: find them in the table before making publication and slot anew`,
			},
			"no inserts": {
				"updates", publication, ErrPublication, `publication "updates" does not publish inserts`,
				`alter publication "updates" set (publish = 'insert'); rows inserted before that are not in the stream`,
			},
			"not in it": {
				"Pub-1", Table{"public", "other"}, ErrPublication, `table public.other is not in publication "Pub-1"`,
				`alter publication "Pub-1" add table "public"."other"; rows inserted before that are not in the stream`,
			},
			"only a partition": {
				"leaf", Table{"public", "parts"}, ErrPublication, `table public.parts is not in publication "leaf"`,
				`alter publication "leaf" add table "public"."parts"; rows inserted before that are not in the stream`,
			},
			"no table": {
				"Pub-1", Table{"public", "Events"}, ErrTable, `table public."Events" does not exist`,
				`create it with "walpost init --create-table", or name the outbox table with --table; names are case sensitive`,
			},
			"unlogged": {
				"everything", Table{"public", "volatile"}, ErrTable, `table public.volatile is unlogged or temporary: its changes never reach the WAL`,
				`alter table "public"."volatile" set logged`,
			},
			"view": {
				"everything", Table{"public", "seen"}, ErrTable, `public.seen is not a table`,
				"name the table itself: views and foreign tables have no changes that could be published",
			},
		} {
			published, err := CheckPublication(t.Context(), conn, tc.publication, []Table{tc.table})
			if tc.kind == nil {
				if err != nil || len(published.Tables) != 1 || published.Tables[0].OID == 0 || !published.Insert {
					t.Errorf("%s: %+v, %v", name, published, err)
				}
				continue
			}
			e, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, tc.kind) || e.Error() != tc.text || e.Hint() != tc.way {
				t.Errorf("%s:\ngot  %s\nwant %s\n     %s", name, twoLines(err), tc.text, tc.way)
			}
		}
		p, err := CheckPublication(t.Context(), conn, "Pub-1", []Table{publication, {"public", "parts"}})
		if err != nil {
			t.Fatal(err)
		}
		others, err := OtherTables(t.Context(), conn, p)
		if want := []Table{{"My-App", "Out.Box"}}; err != nil || !cmp.Equal(others, want) {
			t.Errorf("other tables %v, %v, want %v", others, err, want)
		}
	})
}

// Row filters, column lists and publications of schemas exist from 15 on.
func TestCheckPublicationFrom15(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, srv *pgserver.Server) {
		if srv.Major() < 15 {
			return
		}
		conn := database(t, srv, "app")
		exec(t, conn,
			"create table events "+outbox,
			"create table parts (id int, event_id uuid) partition by range (id)",
			"create table parts_1 partition of parts for values from (0) to (10)",
			"create publication filtered for table events where (event_type <> 'x') with (publish = 'insert')",
			"create publication few for table events (payload, event_id) with (publish = 'insert')",
			"create publication of_schema for tables in schema public with (publish = 'insert')",
			"create publication leaf for table parts, parts_1 where (id > 3) with (publish = 'insert')")
		_, err := CheckPublication(t.Context(), conn, "filtered", []Table{{"public", "events"}})
		if want := "error: publication \"filtered\" has a row filter on public.events: events that it hides would be lost\n" +
			"hint: take it off: alter publication \"filtered\" set table \"public\".\"events\""; twoLines(err) != want {
			t.Errorf("got  %s\nwant %s", twoLines(err), want)
		}
		if _, err := CheckPublication(t.Context(), conn, "leaf", []Table{{"public", "parts"}}); !errors.Is(err, ErrPublication) {
			t.Errorf("a filter on a partition: %v", err)
		}
		p, err := CheckPublication(t.Context(), conn, "few", []Table{{"public", "events"}})
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"event_id", "payload"}; !cmp.Equal(p.Tables[0].Columns, want) {
			t.Errorf("columns %v, want %v", p.Tables[0].Columns, want)
		}
		if _, err := CheckPublication(t.Context(), conn, "of_schema", []Table{{"public", "events"}, {"public", "parts"}}); err != nil {
			t.Error(twoLines(err))
		}
	})
}

func TestPublishedChanged(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, srv *pgserver.Server) {
		conn := database(t, srv, "app")
		tables := []Table{{"public", "events"}, {"public", "parts"}}
		reset := []string{
			"drop publication if exists p", "drop table if exists events, parts",
			"create table events (id int)", "create table parts (id int) partition by range (id)",
			"create publication p for table events, parts with (publish = 'insert')",
		}
		for name, tc := range map[string]struct {
			change []string
			kind   error
			text   string
		}{
			"nothing":       {nil, nil, ""},
			"new partition": {[]string{"create table parts_1 partition of parts for values from (0) to (10)"}, nil, ""},
			"new column":    {[]string{"alter table events add column x int"}, nil, ""},
			"new member":    {[]string{"create table more (id int)", "alter publication p add table more", "drop table more"}, nil, ""},
			"updates too":   {[]string{"alter publication p set (publish = 'insert, update')"}, nil, ""},
			"publication made anew": {
				[]string{"drop publication p", "create publication p for table events, parts with (publish = 'insert')"},
				ErrPublication, `publication "p" was dropped and made anew`,
			},
			"taken out and put back": {
				[]string{"alter publication p drop table events", "alter publication p add table events"},
				ErrPublication, `table public.events was taken out of publication "p" and put back`,
			},
			"table made anew": {
				[]string{"drop table events", "create table events (id int)", "alter publication p add table events"},
				ErrTable, "table public.events was dropped and made anew",
			},
			"other partition mode": {
				[]string{"alter publication p set (publish_via_partition_root = true)"},
				ErrPublication, `publish_via_partition_root of publication "p" is now true`,
			},
		} {
			exec(t, conn, reset...)
			before, err := CheckPublication(t.Context(), conn, "p", tables)
			if err != nil {
				t.Fatal(twoLines(err))
			}
			exec(t, conn, tc.change...)
			after, err := CheckPublication(t.Context(), conn, "p", tables)
			if err != nil {
				t.Fatal(twoLines(err))
			}
			err = before.Changed(after)
			if !errors.Is(err, tc.kind) || (err != nil && err.Error() != tc.text) {
				t.Errorf("%s: got %v, want %s", name, err, tc.text)
			}
		}
	})
}

func TestRoot(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, srv *pgserver.Server) {
		conn := database(t, srv, "app")
		exec(t, conn,
			`create schema "My-App"`, `create table "My-App"."Parts" (id int, sub int) partition by range (id)`,
			`create table mid partition of "My-App"."Parts" for values from (0) to (10) partition by range (sub)`,
			"create table leaf partition of mid for values from (0) to (10)",
			"create table plain (id int)", "create table published (id int)", "create publication wide for table published, mid",
			"create publication rooted for table mid with (publish_via_partition_root = true)")
		oid := func(name string) (oid uint32) {
			if err := conn.QueryRow(t.Context(), "select $1::text::regclass::oid", name).Scan(&oid); err != nil {
				t.Fatal(err)
			}
			return oid
		}
		parts := Table{"My-App", "Parts"}
		for _, tt := range []struct {
			name, publication string
			root              Table
			published         bool
		}{
			{"leaf", "wide", parts, true},
			{"mid", "wide", parts, false}, // rows come from its leaf
			{"mid", "rooted", parts, true},
			{"leaf", "none", parts, false},
			{`"My-App"."Parts"`, "wide", parts, false},
			{"plain", "wide", Table{"public", "plain"}, false},
			{"published", "wide", Table{"public", "published"}, true},
		} {
			root, published, ok, err := Root(t.Context(), conn, tt.publication, oid(tt.name))
			if err != nil || !ok || root != tt.root || published != tt.published {
				t.Errorf("%s in %s: %s %v %v %v", tt.name, tt.publication, root, published, ok, err)
			}
		}
		dropped := oid("leaf")
		exec(t, conn, "drop table leaf")
		if _, _, ok, err := Root(t.Context(), conn, "wide", dropped); ok || err != nil {
			t.Errorf("a dropped table: %v %v", ok, err)
		}
	})
}
