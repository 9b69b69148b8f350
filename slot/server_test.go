package slot

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/testkit/pgserver"
)

// onServers runs f against a fresh server of each version.
func onServers(t *testing.T, settings map[string]string, f func(t *testing.T, srv *pgserver.Server)) {
	if testing.Short() {
		t.Skip("needs servers: run without -short")
	}
	for _, major := range []int{14, 15, 17, 18} {
		t.Run(strconv.Itoa(major), func(t *testing.T) {
			t.Parallel()
			f(t, startServer(t, major, settings))
		})
	}
}

func startServer(t *testing.T, major int, settings map[string]string) *pgserver.Server {
	t.Helper()
	srv, err := pgserver.Start(t.Context(), pgserver.Options{Major: major, FsyncOff: true, Settings: settings, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

// database makes a database and gives a connection to it.
func database(t *testing.T, srv *pgserver.Server, name string) *pgx.Conn {
	t.Helper()
	exec(t, connect(t, srv.DSN("postgres")), "create database "+pg.QuoteIdent(name))
	return connect(t, srv.DSN(name))
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	cfg, err := pg.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pg.Connect(t.Context(), cfg, "walpost/test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func twoLines(err error) string {
	if err == nil {
		return "no error"
	}
	hint := ""
	if h, ok := err.(interface{ Hint() string }); ok {
		hint = h.Hint()
	}
	return fmt.Sprintf("error: %s\nhint: %s", err, hint)
}
