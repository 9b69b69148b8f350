package outbox_test

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/setup"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/outbox"
	"github.com/walpost/walpost/slot"
)

func states(r outbox.MigrateReport) string {
	var list []string
	for _, s := range r.Steps {
		list = append(list, string(s.State))
	}
	return strings.Join(list, " ")
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t, 0).NewDB(t)
	conn := testkit.Connect(t, dsn)
	ctx := t.Context()
	migrate := func(o outbox.MigrateOptions) string {
		t.Helper()
		r, err := outbox.Migrate(ctx, conn, o)
		if err != nil {
			t.Fatal(err)
		}
		return states(r)
	}
	dry := outbox.MigrateOptions{DryRun: true}
	if got := migrate(dry); got != "created created created created" {
		t.Errorf("dry run: %s", got)
	}
	var there bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_namespace where nspname = 'walpost')").Scan(&there); err != nil || there {
		t.Errorf("a dry run made something: %v", err)
	}
	// Several instances start at the same time.
	var group sync.WaitGroup
	created := make(chan bool, 4) // closed below, after Wait
	for range 4 {
		group.Go(func() {
			conn, err := pgx.Connect(ctx, dsn)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close(context.WithoutCancel(ctx))
			r, err := outbox.Migrate(ctx, conn, outbox.MigrateOptions{})
			if err != nil {
				t.Error(err)
			}
			created <- r.Changed()
		})
	}
	group.Wait()
	close(created)
	n := 0
	for c := range created {
		if c {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d instances made the tables", n)
	}
	if got := migrate(dry); got != "unchanged unchanged unchanged unchanged" {
		t.Errorf("dry run: %s", got)
	}
	second := outbox.MigrateOptions{SchemaOptions: outbox.SchemaOptions{Parts: outbox.Writing, Table: `"Out.Box"`, Payload: "json"}}
	if got := migrate(second); got != "unchanged created unchanged" {
		t.Errorf("another table: %s", got)
	}
	testkit.Exec(t, dsn, "create table other (id int)")
	second.Table = "other"
	_, err := outbox.Migrate(ctx, conn, second)
	if e, ok := errors.AsType[*outbox.Error](err); !ok || e.Hint() == "" || !strings.Contains(err.Error(), "no column event_id") {
		t.Errorf("a foreign table: %v", err)
	}
}

// What walpost init made is taken over, and walpost init's text is this one.
func TestMigrateAfterInit(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t, 0).NewDB(t)
	text, err := setup.SQL(setup.Options{
		Slot: "orders", Publication: "orders", Tables: []slot.Table{{Schema: "public", Name: "outbox_events"}}, CreateTables: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err := outbox.Statements(outbox.SchemaOptions{Parts: outbox.Guard | outbox.Table, Table: "public.outbox_events"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if !strings.Contains(text, s+";\n") {
			t.Errorf("walpost init does not have\n%s", s)
		}
		testkit.Exec(t, dsn, s)
	}
	r, err := outbox.Migrate(t.Context(), testkit.Connect(t, dsn), outbox.MigrateOptions{})
	if err != nil || states(r) != "adopted adopted created created" {
		t.Errorf("%s, %v", states(r), err)
	}
}

func TestFS(t *testing.T) {
	t.Parallel()
	files, err := outbox.FS(outbox.SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(files, "*.up.sql")
	want := "00001_walpost_guard.up.sql 00002_walpost_outbox.up.sql 00003_walpost_counter.up.sql 00004_walpost_consumer.up.sql"
	if got := strings.Join(names, " "); err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
	dsn := testkit.Postgres(t, 0).NewDB(t)
	conn := testkit.Connect(t, dsn)
	for _, name := range names {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), string(b)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	r, err := outbox.Migrate(t.Context(), conn, outbox.MigrateOptions{})
	if err != nil || states(r) != "adopted adopted adopted adopted" {
		t.Errorf("%s, %v", states(r), err)
	}
}

// Nobody changes an event: not by mistake, and not as a replica.
func TestAppendOnly(t *testing.T) {
	t.Parallel()
	for _, major := range testkit.Majors(t) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			pg := testkit.Postgres(t, major)
			conn := testkit.Connect(t, pg.NewDB(t))
			ctx := t.Context()
			if _, err := outbox.Migrate(ctx, conn, outbox.MigrateOptions{}); err != nil {
				t.Fatal(err)
			}
			w, err := outbox.NewWriter(outbox.WriterOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := outbox.RunTx(ctx, conn, w, func(_ pgx.Tx, b *outbox.Buffer) error {
				b.Add(&outbox.Event{AggregateType: "order", AggregateID: "1", Version: 1, Type: "placed", Payload: struct{}{}})
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			for _, role := range []string{"origin", "replica", "local"} {
				if _, err := conn.Exec(ctx, "set session_replication_role = "+role); err != nil {
					t.Fatal(err)
				}
				for _, sql := range []string{"update outbox_events set payload = '1'", "truncate outbox_events"} {
					if _, err := conn.Exec(ctx, sql); err == nil || !strings.Contains(err.Error(), "append-only") {
						t.Errorf("%s as %s: %v", sql, role, err)
					}
				}
			}
			if _, err := conn.Exec(ctx, "delete from outbox_events"); err != nil { // cleanup may
				t.Error(err)
			}
		})
	}
}

// A service links pgx and uuid, and nothing else of ours.
func TestImports(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		first, _, _ := strings.Cut(path, "/")
		standard := !strings.Contains(first, ".")
		if !standard && path != "github.com/google/uuid" && path != "github.com/jackc/pgx/v5" && !strings.HasPrefix(path, "github.com/jackc/pgx/v5/") || path == "testing" {
			t.Errorf("imports %s", path)
		}
	}
	out, err = exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(path, "github.com/walpost/") && path != "github.com/walpost/walpost/outbox" {
			t.Errorf("depends on %s", path)
		}
	}
}
