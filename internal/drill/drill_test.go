package drill

import (
	"testing"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/outbox"
)

// TestVersionsOutOfOrder also runs it with a consumer that does not look at
// versions, which the drill has to notice.
func TestVersionsOutOfOrder(t *testing.T) {
	t.Parallel()
	srv := testkit.PrivatePostgres(t, pgserver.Options{FsyncOff: true})
	cluster := testkit.PrivateKafka(t, kafkaserver.Options{})
	cfg, err := pg.ParseDSN(srv.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	conn := testkit.Connect(t, srv.DSN("postgres"))
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
