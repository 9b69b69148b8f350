package pgserver_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walpost/walpost/internal/testkit/pgserver"
)

func start(t *testing.T, opts pgserver.Options) (context.Context, *pgserver.Server) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs real servers: run without -short")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	opts.Log = t.Logf
	began := time.Now()
	server, err := pgserver.Start(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %v", time.Since(began))
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(server.Dir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("stat of the data directory after Close = %v, want it gone", err)
		}
	})
	return ctx, server
}

func query[T any](t *testing.T, ctx context.Context, dsn, sql string) T {
	t.Helper()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var got T
	if err := conn.QueryRow(ctx, sql).Scan(&got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestInstalledServerLifecycle(t *testing.T) {
	t.Parallel()
	ctx, server := start(t, pgserver.Options{Settings: map[string]string{"work_mem": "7MB"}})
	dsn := server.DSN("postgres")

	for name, want := range map[string]string{"wal_level": "logical", "work_mem": "7MB"} {
		if got := query[string](t, ctx, dsn, "show "+name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	query[int](t, ctx, dsn, "with t as (select pg_create_logical_replication_slot('s', 'pgoutput')) select 1 from t")

	first := server.PID()
	if err := server.Kill9(ctx); err != nil {
		t.Fatal(err)
	}
	if got := server.PID(); got != 0 {
		t.Errorf("PID of a killed server = %d, want 0", got)
	}
	if err := server.StartAgain(ctx); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(ctx, pgserver.Fast); err != nil {
		t.Fatal(err)
	}
	if got := server.PID(); got == first || got == 0 {
		t.Errorf("PID after restart = %d, want a new one (was %d)", got, first)
	}
	if got := query[int](t, ctx, dsn, "select count(*)::int from pg_replication_slots"); got != 1 {
		t.Errorf("slots after kill and restart = %d, want 1", got)
	}

	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	frozen, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := pgx.Connect(frozen, dsn); err == nil {
		t.Error("a frozen server answered")
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := query[int](t, ctx, dsn, "select 1"); got != 1 {
		t.Errorf("select 1 = %d", got)
	}
	if path, err := server.Tool(ctx, "pg_recvlogical"); err != nil || !strings.HasSuffix(path, "pg_recvlogical") {
		t.Errorf("Tool = %q, %v", path, err)
	}
}

func TestMavenServer(t *testing.T) {
	t.Parallel()
	ctx, server := start(t, pgserver.Options{Major: 18, FsyncOff: true, FreshIdentity: true})
	if got := query[string](t, ctx, server.DSN("postgres"), "show server_version"); !strings.HasPrefix(got, "18.") {
		t.Errorf("server_version = %q, want 18", got)
	}
}

func TestPasswordAndTLS(t *testing.T) {
	t.Parallel()
	ctx, server := start(t, pgserver.Options{Password: `it's a \secret`, TLS: true})
	ssl := "select ssl from pg_stat_ssl where pid = pg_backend_pid()"
	dsn := server.DSN("postgres") + "&sslrootcert=" + server.CAFile()
	if !query[bool](t, ctx, strings.Replace(dsn, "prefer", "verify-full", 1), ssl) {
		t.Error("the connection is not encrypted")
	}
	_, err := pgx.Connect(ctx, server.DSNAs("postgres", pgserver.Superuser, "wrong"))
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "28P01" {
		t.Errorf("connect with a wrong password = %v, want 28P01", err)
	}
}
