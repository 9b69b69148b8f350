package slot

import (
	"errors"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/walpost/walpost/internal/pg"
)

// TestAnotherLanguage: what a server says of its slots and publications is
// understood whatever its lc_messages is.
func TestAnotherLanguage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a server: run without -short")
	}
	srv := startServer(t, 15, map[string]string{"max_slot_wal_keep_size": "1MB"})
	conn := database(t, srv, "app")
	exec(t, database(t, srv, "other"), "select pg_create_logical_replication_slot('elsewhere', 'pgoutput')")
	exec(t, conn, "select pg_create_logical_replication_slot('gone', 'pgoutput')")
	for range 3 {
		exec(t, conn, "select pg_logical_emit_message(false, 'x', 'x')", "select pg_switch_wal()")
	}
	exec(t, conn, "checkpoint", "select pg_create_logical_replication_slot('fine', 'pgoutput')")
	cfg, err := pg.ParseDSN(srv.DSN("app"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		slot, code, routine, message string
		kind                         error // nil: not an *Error of this package
	}{
		"no slot":               {"s", "42704", "ReplicationSlotAcquire", "Replikations-Slot »s« existiert nicht", ErrNotFound},
		"no publication":        {"fine", "42704", "get_publication_oid", "Publikation »pub« existiert nicht", ErrPublication},
		"lost":                  {"gone", "55000", "StartLogicalReplication", "kann nicht aus logischem Replikations-Slot »gone« lesen", ErrLost},
		"of another database":   {"elsewhere", "55000", "CreateDecodingContext", "Replikations-Slot »elsewhere« wurde nicht in dieser Datenbank erzeugt", ErrUnfit},
		"dropped meanwhile":     {"s", "55000", "CreateDecodingContext", "…", ErrNotFound},
		"nothing wrong with it": {"fine", "55000", "CreateDecodingContext", "…", nil},
	} {
		s := &Stream{opt: StreamOptions{Config: cfg, Slot: tc.slot, Publication: "pub"}}
		refusal := &pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: "ERROR", Code: tc.code, Message: tc.message, Routine: tc.routine}
		err := s.typed(t.Context(), refusal)
		e, ok := errors.AsType[*Error](err)
		if ok != (tc.kind != nil) || ok && (!errors.Is(e, tc.kind) || e.Hint() == "" || e.SQLState == "") {
			t.Errorf("%s: %s", name, twoLines(err))
		}
		if IsPassing(err) {
			t.Errorf("%s passes", name)
		}
	}
}

// TestNoticeOfAMissingPublication ends the stream, in any language; another
// notice does not.
func TestNoticeOfAMissingPublication(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	s := over(t, ours, 100)
	go s.statusLoop()
	t.Cleanup(s.Abort)
	send := func(m pgproto3.BackendMessage) {
		b, err := m.Encode(nil)
		if err != nil {
			t.Error(err)
		}
		_, _ = theirs.Write(b)
	}
	go func() {
		send(&pgproto3.NoticeResponse{Severity: "WARNUNG", Code: "01000", Message: "etwas anderes", Routine: "other"})
		send(&pgproto3.CopyData{Data: append([]byte{'w'}, make([]byte, 25)...)})
		send(&pgproto3.NoticeResponse{Severity: "WARNUNG", Code: "55000", Message: "Publikation »pub« wurde nicht geladen", Routine: "LoadPublications"})
		_ = theirs.Close()
	}()
	if m, err := s.Receive(); err != nil || len(m.Data) != 1 {
		t.Fatalf("after another notice: %+v, %v", m, err)
	}
	_, err := s.Receive()
	const want = "error: publication \"pub\" did not exist at this point of the WAL: Publikation »pub« wurde nicht geladen\n" +
		"hint: rows written while it was missing are not in the stream; decide how to recover them, then make a new slot (publication first, slot second)"
	if got := twoLines(err); got != want || !errors.Is(err, ErrPublication) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
