package slot

import (
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/walpost/walpost/internal/testkit/pgserver"
)

func TestCheckServer(t *testing.T) {
	t.Parallel()
	onServers(t, map[string]string{"wal_level": "replica"}, func(t *testing.T, srv *pgserver.Server) {
		conn := database(t, srv, "app")
		want := "error: wal_level is \"replica\", and logical replication needs \"logical\"\n" +
			"hint: alter system set wal_level = logical, then restart the server; a managed service has a parameter of its own for it"
		_, err := CheckServer(t.Context(), conn)
		if twoLines(err) != want || !errors.Is(err, ErrServer) {
			t.Errorf("got  %s\nwant %s", twoLines(err), want)
		}
		if _, err := Create(t.Context(), conn, CreateOptions{Name: "orders"}); twoLines(err) != want {
			t.Errorf("got  %s\nwant %s", twoLines(err), want)
		}
	})
}

func TestCreateWithoutAFreeSlot(t *testing.T) {
	t.Parallel()
	onServers(t, map[string]string{"max_replication_slots": "1"}, func(t *testing.T, srv *pgserver.Server) {
		conn := database(t, srv, "app")
		if err := CheckCapacity(t.Context(), conn); err != nil {
			t.Fatal(twoLines(err))
		}
		exec(t, conn, "select pg_create_physical_replication_slot('backup')")
		want := "error: no replication slot is free: 1 of 1 are used (max_replication_slots)\n" +
			"hint: drop one that nobody needs (select slot_name, active from pg_replication_slots), or raise max_replication_slots and restart the server"
		if err := CheckCapacity(t.Context(), conn); twoLines(err) != want {
			t.Errorf("got  %s\nwant %s", twoLines(err), want)
		}
		_, err := Create(t.Context(), conn, CreateOptions{Name: "orders"})
		if twoLines(err) != want {
			t.Errorf("got  %s\nwant %s", twoLines(err), want)
		}
	})
}

func TestCreateDenied(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, srv *pgserver.Server) {
		exec(t, database(t, srv, "app"), "create role app login")
		_, err := Create(t.Context(), connect(t, srv.DSNAs("app", "app", "")), CreateOptions{Name: "orders"})
		words := "permission denied to use replication slots"
		if srv.Major() < 16 {
			words = "must be superuser or replication role to use replication slots"
		}
		want := "error: create slot \"orders\": ERROR: " + words + " (SQLSTATE 42501)\n" +
			`hint: alter role "app" replication (on a managed service grant its replication role), or let an administrator run what "walpost init --print" shows`
		if twoLines(err) != want || !errors.Is(err, ErrDenied) {
			t.Errorf("got  %s\nwant %s", twoLines(err), want)
		}
	})
}

func TestCreateDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, srv *pgserver.Server) {
		conn, holder := database(t, srv, "app"), connect(t, srv.DSN("postgres"))
		exec(t, holder, "begin", "create table held (id int)")
		_, err := Create(t.Context(), conn, CreateOptions{Name: "orders", Wait: 200 * time.Millisecond})
		want := regexp.MustCompile(fmt.Sprintf(`^error: create slot "orders": waited 200ms for transactions that were open before; `+
			`the oldest is that of PID %[1]d \(walpost/test\), \d+s old
hint: let it end, or end it \(select pg_terminate_backend\(%[1]d\)\), and run it again$`, holder.PgConn().PID()))
		if !want.MatchString(twoLines(err)) {
			t.Errorf("got  %s\nwant %s", twoLines(err), want)
		}
		info, err := Inspect(t.Context(), conn, "orders")
		if err != nil || info.Exists {
			t.Errorf("a slot was left behind: %+v, %v", info, err)
		}
		exec(t, holder, "prepare transaction 'in doubt'")
		_, err = Create(t.Context(), conn, CreateOptions{Name: "orders", Wait: 200 * time.Millisecond})
		if want := `commit prepared or rollback prepared 'in doubt', and run it again`; err == nil || err.(*Error).Hint() != want {
			t.Errorf("got  %s\nwant %s", twoLines(err), want)
		}
		exec(t, holder, "rollback prepared 'in doubt'")
		if _, err := Create(t.Context(), conn, CreateOptions{Name: "orders"}); err != nil {
			t.Error(twoLines(err))
		}
		_, err = Create(t.Context(), conn, CreateOptions{Name: "orders"})
		if want := `create slot "orders": ERROR: replication slot "orders" already exists (SQLSTATE 42710)`; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}
