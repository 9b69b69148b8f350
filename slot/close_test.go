package slot

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

// deaf is a connection whose other end has stopped reading, with every buffer on
// the way full.
func deaf(t *testing.T) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	ours, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = ours.Close()
		_ = theirs.Close()
	})
	for quiet := 0; quiet < 2; { // the kernel moves what it has from one buffer to the other
		_ = ours.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		n, err := ours.Write(make([]byte, 64<<10))
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		if quiet++; n > 0 {
			quiet = 0
		}
	}
	_ = ours.SetWriteDeadline(time.Time{})
	return ours
}

// TestCloseOfADeafServer: the context ends Close whoever waits for the server to
// read, and Receive learns that the end is ours.
func TestCloseOfADeafServer(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*testing.T, *Stream){
		"in its own update": func(*testing.T, *Stream) {},
		"behind the update of the status goroutine": func(t *testing.T, s *Stream) {
			s.Confirm(300)
			for s.writing.TryLock() { // until it is in there
				s.writing.Unlock()
				if runtime.Gosched(); t.Context().Err() != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := over(t, deaf(t), 100)
			go s.statusLoop()
			received := make(chan error, 1)
			go func() {
				_, err := s.Receive()
				received <- err
			}()
			begin(t, s)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			closed := make(chan error, 1)
			go func() { closed <- s.Close(ctx) }()
			select {
			case err := <-closed:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("closed: %v", err)
				}
			case <-time.After(30 * time.Second):
				t.Error("the end of the context did not end Close")
				s.cut()
				<-closed
			}
			if err := <-received; !errors.Is(err, ErrClosed) {
				t.Errorf("received: %v", err)
			}
			if _, flushed, _ := s.Positions(); flushed != 100 {
				t.Errorf("flushed %s", flushed)
			}
		})
	}
}

// TestCloseWithoutAnAnswer: what was sent and not answered may not have been
// read, and that is no good end.
func TestCloseWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s, updates := recorder(t, 100)
	s.Confirm(300)
	<-updates
	received := make(chan error, 1)
	go func() {
		_, err := s.Receive()
		received <- err
	}()
	ctx, cancel := context.WithCancel(t.Context())
	closed := make(chan error, 1)
	go func() { closed <- s.Close(ctx) }()
	<-updates
	cancel()
	if err := <-closed; !errors.Is(err, context.Canceled) {
		t.Errorf("closed: %v", err)
	}
	if err := <-received; !errors.Is(err, ErrClosed) {
		t.Errorf("received: %v", err)
	}
}
