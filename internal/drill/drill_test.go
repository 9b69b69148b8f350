package drill

import (
	"context"
	"testing"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/outbox"
)

// TestVersionsOutOfOrder also runs it with a consumer that does not look at
// versions, which the drill has to notice.
func TestVersionsOutOfOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("needs servers: run without -short")
	}
	t.Parallel()
	srv, err := pgserver.Start(t.Context(), pgserver.Options{FsyncOff: true, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	cluster, err := kafkaserver.Start(t.Context(), kafkaserver.Options{Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Close() })
	cfg, err := pg.ParseDSN(srv.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pg.Connect(t.Context(), cfg, "walpost/test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	for name, test := range map[string]struct {
		tamper tamper
		held   bool
	}{
		"healthy":             {held: true},
		"versions not looked": {tamper: tamper{versions: outbox.IgnoreVersions}},
	} {
		report, err := Run(t.Context(), "versions-out-of-order", Options{Conn: cfg, Brokers: cluster.Addr(), Events: 20, tamper: test.tamper})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if report.Held() != test.held {
			t.Errorf("%s: held %v, want %v: %+v", name, report.Held(), test.held, report.Checks)
		}
	}
	var left int
	if err := conn.QueryRow(t.Context(), `select (select count(*) from pg_namespace where nspname like 'walpost\_drill%')
  + (select count(*) from pg_replication_slots) + (select count(*) from pg_publication)`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d things left, %v", left, err)
	}
}
