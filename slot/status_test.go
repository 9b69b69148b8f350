package slot

import (
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"
)

// update is a standby status update as the server reads it.
type update struct{ write, flush, apply pglogrepl.LSN }

// over is a stream on a connection that streams already. Who has it starts its
// statusLoop.
func over(t *testing.T, ours net.Conn, confirmed pglogrepl.LSN) *Stream {
	t.Helper()
	config, err := pgconn.ParseConfig("host=127.0.0.1 sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgconn.Construct(&pgconn.HijackedConn{Conn: ours, Config: config})
	if err != nil {
		t.Fatal(err)
	}
	return &Stream{
		opt:   StreamOptions{Publication: "pub", StatusInterval: time.Hour, ConfirmInterval: time.Millisecond},
		log:   zap.NewNop(),
		conn:  conn,
		moved: make(chan struct{}, 1), asked: make(chan struct{}, 1),
		stop: make(chan struct{}), ended: make(chan struct{}), done: make(chan struct{}),
		confirmed: confirmed, received: confirmed, flushed: confirmed,
	}
}

// recorder is a stream whose other end collects the status updates.
func recorder(t *testing.T, confirmed pglogrepl.LSN) (*Stream, <-chan update) {
	t.Helper()
	ours, theirs := net.Pipe()
	s := over(t, ours, confirmed)
	updates := make(chan update, 16)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for {
			b := make([]byte, 39)
			if _, err := readFull(theirs, b); err != nil {
				return
			}
			if b[0] != 'd' || binary.BigEndian.Uint32(b[1:]) != 38 || b[5] != 'r' {
				t.Errorf("not a status update of 34 bytes: % x", b)
			}
			lsn := func(at int) pglogrepl.LSN { return pglogrepl.LSN(binary.BigEndian.Uint64(b[at:])) }
			updates <- update{lsn(6), lsn(14), lsn(22)}
		}
	}()
	go s.statusLoop()
	t.Cleanup(func() {
		s.Abort()
		_ = theirs.Close()
		<-closed
	})
	return s, updates
}

func readFull(c net.Conn, b []byte) (int, error) {
	n := 0
	for n < len(b) {
		m, err := c.Read(b[n:])
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func TestI5FlushNeverGoesBackAndIsNeverImplied(t *testing.T) {
	t.Parallel()
	s, updates := recorder(t, 100)
	s.saw(500, false)
	s.Confirm(300)
	if got, want := <-updates, (update{500, 300, 300}); got != want {
		t.Errorf("after Confirm(300): %v, want %v", got, want)
	}
	s.Confirm(200) // older: not even an update
	s.Confirm(400)
	if got, want := <-updates, (update{500, 400, 400}); got != want {
		t.Errorf("after Confirm(400): %v, want %v", got, want)
	}
	s.Confirm(600)
	if got, want := <-updates, (update{600, 600, 600}); got != want {
		t.Errorf("after Confirm(600): %v, want %v: write is never behind flush", got, want)
	}
}

// TestAnswerToAKeepalive: what cannot be confirmed is answered so that it
// confirms nothing and does not hold up a shutdown of the server.
func TestAnswerToAKeepalive(t *testing.T) {
	t.Parallel()
	s, updates := recorder(t, 100)
	s.saw(500, true)
	if got, want := <-updates, (update{500, 100, 100}); got != want {
		t.Errorf("first: %v, want %v", got, want)
	}
	if got, want := <-updates, (update{500, 0, 0}); got != want {
		t.Errorf("second: %v, want %v", got, want)
	}
	s.Confirm(500)
	<-updates
	s.saw(500, true)
	if got, want := <-updates, (update{500, 500, 500}); got != want {
		t.Errorf("all confirmed: %v, want %v", got, want)
	}
	s.saw(700, true)
	if got, want := <-updates, (update{700, 500, 500}); got != want {
		t.Errorf("a zero update follows only one with everything confirmed: %v, want %v", got, want)
	}
	if got, want := <-updates, (update{700, 0, 0}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestSwitchPoint(t *testing.T) {
	t.Parallel()
	const content = "1\t0/9AC1F328\tno recovery target specified\n\n2\t1/A0000000\tbefore 2026\n"
	for timeline, want := range map[int32]pglogrepl.LSN{1: 0x9AC1F328, 2: 0x1A0000000} {
		if got, ok, err := switchPoint(content, timeline); got != want || !ok || err != nil {
			t.Errorf("timeline %d: %v %v %v, want %v", timeline, got, ok, err, want)
		}
	}
	if _, ok, err := switchPoint(content, 3); ok || err != nil {
		t.Errorf("timeline 3: found %v, %v", ok, err)
	}
	if _, _, err := switchPoint("one\t0/1\n", 1); err == nil {
		t.Error("a line that is no number was accepted")
	}
}

func TestCopyDataIsChecked(t *testing.T) {
	t.Parallel()
	for _, data := range [][]byte{{}, {'w'}, {'k', 0}, make([]byte, 18), append([]byte{'k'}, make([]byte, 18)...), {'?'}} {
		s := &Stream{asked: make(chan struct{}, 1)}
		if _, _, err := s.copyData(data); err == nil {
			t.Errorf("% x was accepted", data)
		}
	}
}
