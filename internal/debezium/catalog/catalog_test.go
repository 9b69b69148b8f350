package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/debezium/catalog"
	"github.com/walpost/walpost/internal/debezium/column"
	"github.com/walpost/walpost/internal/testkit"
)

// short is what these tests look at.
func short(infos []column.Info) []string {
	var lines []string
	for _, i := range infos {
		line := i.Name + " " + i.Type.Name
		for t := i.Type.Base; t != nil; t = t.Base {
			line += "<" + t.Name
		}
		if i.Type.Elem != nil {
			line += " of " + i.Type.Elem.Name
		}
		if i.NotNull {
			line += " not null"
		}
		if i.Key {
			line += fmt.Sprint(" key ", i.KeyPlace)
		}
		if i.HasDefault {
			line += " default " + i.Default
		}
		if i.Generated != 0 {
			line += " generated " + string(rune(i.Generated))
		}
		if i.Comment != "" {
			line += " -- " + i.Comment
		}
		if i.Type.Labels != nil {
			line += " " + strings.Join(i.Type.Labels, "|")
		}
		lines = append(lines, line)
	}
	return lines
}

func TestByName(t *testing.T) {
	t.Parallel()
	for _, major := range testkit.Majors(t) {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			t.Parallel()
			dsn := testkit.Postgres(t, major).NewDB(t)
			testkit.Exec(t, dsn,
				`create schema "Other"`,
				`create type "Other".mood as enum ('sad', 'happy')`,
				`alter type "Other".mood add value 'new' before 'happy'`,
				`create domain whole as int not null`,
				`create domain few as whole`,
				`create table "Other"."T" (
					gone int, id uuid, "A b" text default 'x', mood "Other".mood default 'sad', whole whole, few few,
					list "Other".mood[], twice int generated always as (1 + 1) stored,
					at timestamptz default '2020-01-02 03:04:05+02', primary key (id, "A b"))`,
				`alter table "Other"."T" drop column gone`,
				`comment on column "Other"."T".mood is 'how it is'`,
				`create table plain (a int, b int, c int not null, d int)`,
				`create unique index z on plain (a)`,
				`create unique index y on plain (c, b) include (d)`,
				`create unique index x on plain ((a + 1))`,
			)
			conn := testkit.Connect(t, dsn)
			oid, infos, err := catalog.ByName(t.Context(), conn, "Other", "T")
			if err != nil {
				t.Fatal(err)
			}
			want := []string{
				"id uuid not null key 1",
				"A b text not null key 2 default 'x'::text",
				`mood mood default 'sad'::"Other".mood -- how it is sad|new|happy`,
				"whole whole<int4 not null",
				"few few<whole<int4", // as Debezium, which looks at one domain only
				"list _mood of mood",
				"twice int4 default (1 + 1) generated s",
				"at timestamptz default '2020-01-02 01:04:05+00'::timestamp with time zone",
			}
			if diff := cmp.Diff(want, short(infos)); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
			again, err := catalog.Read(t.Context(), conn, oid)
			if diff := cmp.Diff(infos, again); err != nil || diff != "" {
				t.Errorf("read by OID: %v (-by name +got):\n%s", err, diff)
			}
			_, infos, err = catalog.ByName(t.Context(), conn, "public", "plain")
			want = []string{"a int4", "b int4 key 2", "c int4 not null key 1", "d int4"}
			if diff := cmp.Diff(want, short(infos)); err != nil || diff != "" {
				t.Errorf("without a primary key: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestPartitionIsReadAsItself(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t, 0).NewDB(t)
	testkit.Exec(t, dsn,
		`create table root (id int, note text default 'root') partition by list (id)`,
		`create table part (note text default 'part', id int)`,
		`alter table root attach partition part for values in (1)`,
	)
	conn := testkit.Connect(t, dsn)
	for table, want := range map[string][]string{
		"root": {"id int4", "note text default 'root'::text"},
		"part": {"note text default 'part'::text", "id int4"},
	} {
		_, infos, err := catalog.ByName(t.Context(), conn, "public", table)
		if diff := cmp.Diff(want, short(infos)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", table, err, diff)
		}
	}
}

func TestNotFound(t *testing.T) {
	t.Parallel()
	conn := testkit.Connect(t, testkit.Postgres(t, 0).NewDB(t))
	_, _, byName := catalog.ByName(t.Context(), conn, "public", "nothing")
	_, byOID := catalog.Read(t.Context(), conn, 4242)
	for what, err := range map[string]error{`"public"."nothing"`: byName, "4242": byOID} {
		var e *catalog.Error
		if !errors.Is(err, catalog.ErrNotFound) || !errors.As(err, &e) || e.Hint() == "" || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: error %v, want one that names it, with a hint", what, err)
		}
	}
}

// Settings of the session do not show, and stay; so does a transaction.
func TestAside(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t, 0).NewDB(t)
	testkit.Exec(t, dsn, `create table t (at timestamptz default '2020-01-02 03:04:05+00', f float8 default 0.1)`)
	conn := testkit.Connect(t, dsn)
	if _, err := conn.Exec(t.Context(), "set timezone = 'Asia/Tokyo'; set datestyle = 'German'"); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		_, infos, err := catalog.ByName(t.Context(), conn, "public", "t")
		want := []string{"at timestamptz default '2020-01-02 03:04:05+00'::timestamp with time zone", "f float8 default 0.1"}
		if diff := cmp.Diff(want, short(infos)); err != nil || diff != "" {
			t.Errorf("columns: %v (-want +got):\n%s", err, diff)
		}
		var zone, style string
		if err := conn.QueryRow(t.Context(), "select current_setting('timezone'), current_setting('datestyle')").Scan(&zone, &style); err != nil || zone != "Asia/Tokyo" || !strings.HasPrefix(style, "German") {
			t.Errorf("settings afterwards: %s, %s, %v", zone, style, err)
		}
	}
	check()
	tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "create table mine (a int)"); err != nil {
		t.Fatal(err)
	}
	check()
	if _, infos, err := catalog.ByName(t.Context(), conn, "public", "mine"); err != nil || len(infos) != 1 {
		t.Errorf("the table of the transaction: %v, %v", infos, err)
	}
	if _, _, err := catalog.ByName(t.Context(), conn, "public", "nothing"); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Errorf("the transaction did not survive: %v", err)
	}
}
