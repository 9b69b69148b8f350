package slot

import (
	"errors"
	"testing"

	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/internal/testkit/pgserver"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	onServers(t, map[string]string{"max_slot_wal_keep_size": "1GB"}, func(t *testing.T, srv *pgserver.Server) {
		conn := database(t, srv, "app")
		none, err := Inspect(t.Context(), conn, "orders")
		if err != nil {
			t.Fatal(err)
		}
		if none.Exists || none.OtherSlotsMax != nil || none.SystemID == "" || none.CurrentLSN == 0 || none.ServerTime.IsZero() {
			t.Errorf("without a slot: %+v", none)
		}
		if want := int64(1 << 30); none.LimitBytes == nil || *none.LimitBytes != want {
			t.Errorf("limit %v, want %d", none.LimitBytes, want)
		}
		if got := none.ServerVersion / 10000; got != srv.Major() {
			t.Errorf("version %d", got)
		}

		at, err := Create(t.Context(), conn, CreateOptions{Name: "orders", Failover: true})
		if err != nil {
			t.Fatal(twoLines(err))
		}
		exec(t, conn, "select pg_create_physical_replication_slot('backup', true)",
			"select pg_logical_emit_message(true, 'x', repeat('x', 100000))")
		info, err := Inspect(t.Context(), conn, "orders")
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckSlot(info, "app"); err != nil {
			t.Error(twoLines(err))
		}
		if info.ConfirmedFlushLSN == nil || *info.ConfirmedFlushLSN != at || info.RestartLSN == nil || info.WALStatus != "reserved" {
			t.Errorf("positions %+v, want confirmed %s", info, at)
		}
		if info.LagBytes == nil || *info.LagBytes < 100000 || *info.RetainedBytes < *info.LagBytes {
			t.Errorf("lag %v, retained %v", info.LagBytes, info.RetainedBytes)
		}
		if info.OtherSlotsMax == nil || *info.OtherSlotsMax <= 0 {
			t.Errorf("other slots %v", info.OtherSlotsMax)
		}
		if got := info.Failover != nil && *info.Failover; got != (srv.Major() >= 17) {
			t.Errorf("failover %v", info.Failover)
		}
	})
}

func TestCheckSlotOnServers(t *testing.T) {
	t.Parallel()
	onServers(t, nil, func(t *testing.T, srv *pgserver.Server) {
		conn := database(t, srv, "app")
		exec(t, conn,
			"select pg_create_physical_replication_slot('physical')",
			"select pg_create_logical_replication_slot('other_plugin', 'test_decoding')",
			"select pg_create_logical_replication_slot('prepared', 'pgoutput', false, true)",
			"select pg_create_logical_replication_slot('gone', 'pgoutput', true)",
			"select pg_create_logical_replication_slot('fine', 'pgoutput')")
		for _, tc := range []struct {
			slot, database string
			kind           error
			text           string
		}{
			{"missing", "app", ErrNotFound, `slot "missing" does not exist`},
			{"physical", "app", ErrUnfit, `slot "physical" is a physical slot: a standby or a backup tool may own it`},
			{"other_plugin", "app", ErrUnfit, `slot "other_plugin" uses plugin "test_decoding", not pgoutput: another program may own it`},
			{"prepared", "app", ErrUnfit, `slot "prepared" decodes prepared transactions (two_phase), which would come before they are committed`},
			{"gone", "app", ErrUnfit, `slot "gone" is temporary: it ends with the session that made it`},
			{"fine", "postgres", ErrUnfit, `slot "fine" belongs to database "app", and this is "postgres"`},
			{"fine", "app", nil, ""},
		} {
			info, err := Inspect(t.Context(), conn, tc.slot)
			if err != nil {
				t.Fatal(err)
			}
			err = CheckSlot(info, tc.database)
			if !errors.Is(err, tc.kind) || (err != nil && err.Error() != tc.text) {
				t.Errorf("got  %v\nwant %s", err, tc.text)
			}
		}
	})
}

// An invalidated slot is named as such, with cause, range and way out, and
// nothing is made in its place.
func TestI6LostSlot(t *testing.T) {
	t.Parallel()
	onServers(t, map[string]string{"max_slot_wal_keep_size": "1MB", "min_wal_size": "32MB", "max_wal_size": "32MB"}, func(t *testing.T, srv *pgserver.Server) {
		conn := database(t, srv, "app")
		at, err := Create(t.Context(), conn, CreateOptions{Name: "orders"})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			exec(t, conn, "select pg_logical_emit_message(true, 'x', repeat('x', 1000000)) from generate_series(1, 20)",
				"select pg_switch_wal()", "checkpoint")
		}
		info, err := Inspect(t.Context(), conn, "orders")
		if err != nil {
			t.Fatal(err)
		}
		if info.WALStatus != "lost" || info.RestartLSN != nil || info.RetainedBytes != nil {
			t.Fatalf("the slot is not lost: %+v", info)
		}
		err = CheckSlot(info, "app")
		want := `slot "orders" is lost, because it held back more WAL than max_slot_wal_keep_size allows: events committed after ` +
			at.String() + ` (the WAL is at ` + info.CurrentLSN.String() + ` now) will not come from it`
		if !errors.Is(err, ErrLost) || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}

func TestLostSlotNamesTheCause(t *testing.T) {
	t.Parallel()
	confirmed := pglogrepl.LSN(0x10)
	for cause, want := range map[string]string{
		"":                       "it held back more WAL than max_slot_wal_keep_size allows",
		"wal_removed":            "it held back more WAL than max_slot_wal_keep_size allows",
		"idle_timeout":           "it was idle for longer than idle_replication_slot_timeout",
		"rows_removed":           "a conflict with recovery removed catalog rows that it needed",
		"wal_level_insufficient": "wal_level was lowered",
		"something_new":          "something_new",
	} {
		err := CheckSlot(&Info{
			Name: "s", Exists: true, SlotType: "logical", Plugin: "pgoutput", Database: "app",
			WALStatus: "lost", InvalidationCause: cause, ConfirmedFlushLSN: &confirmed, CurrentLSN: 0x20,
		}, "app")
		text := `slot "s" is lost, because ` + want + `: events committed after 0/10 (the WAL is at 0/20 now) will not come from it`
		if err == nil || err.Error() != text {
			t.Errorf("got  %v\nwant %s", err, text)
		}
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{"orders_1": true, "": false, "Orders": false, "a-b": false, "a'b": false} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
