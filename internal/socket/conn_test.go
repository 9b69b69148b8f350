package socket

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// pair returns both ends of a connection; the first is what Dial gave.
func pair(t *testing.T, network string) (dialled, accepted net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if dialled, err = net.Dial(network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if accepted, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = dialled.Close(), accepted.Close() })
	return dialled, accepted
}

func TestCarriesMoreThanTheSocketHolds(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			a, b := pair(t, network)
			from, to := Wrap(a), Wrap(b)
			want := make([]byte, 32<<20)
			for i := range want {
				want[i] = byte(i * 7 >> 8)
			}
			wrote := make(chan error, 1)
			go func() {
				n, err := from.Write(want)
				if n != len(want) && err == nil {
					err = io.ErrShortWrite
				}
				_ = from.Close()
				wrote <- err
			}()
			got, err := io.ReadAll(to)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("read %d bytes, %v, want the %d that were written", len(got), err, len(want))
			}
			if err := <-wrote; err != nil {
				t.Errorf("Write: %v", err)
			}
		})
	}
}

var addresses = regexp.MustCompile(`127\.0\.0\.1:\d+`)

var byte1 = make([]byte, 1)

// ending is one way for a read or a write to end.
type ending struct {
	do func(t *testing.T, c, peer net.Conn) error
	is error
}

var endings = map[string]ending{
	"peer closed": {func(_ *testing.T, c, peer net.Conn) error {
		_ = peer.Close()
		_, err := c.Read(byte1)
		return err
	}, io.EOF},
	"peer reset": {func(_ *testing.T, c, peer net.Conn) error {
		_ = peer.(*net.TCPConn).SetLinger(0)
		_ = peer.Close()
		_, err := c.Read(byte1)
		return err
	}, syscall.ECONNRESET},
	"write to nobody": {func(_ *testing.T, c, peer net.Conn) error {
		_ = peer.(*net.TCPConn).SetLinger(0)
		_ = peer.Close()
		_, _ = c.Read(byte1) // takes the reset
		_, err := c.Write(byte1)
		return err
	}, syscall.EPIPE},
	"deadline passed": {func(t *testing.T, c, _ net.Conn) error {
		if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Error(err)
		}
		_, err := c.Read(byte1)
		return err
	}, os.ErrDeadlineExceeded},
	"deadline in the read": {func(t *testing.T, c, _ net.Conn) error {
		if err := c.SetDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
			t.Error(err)
		}
		_, err := c.Read(byte1)
		return err
	}, os.ErrDeadlineExceeded},
	"deadline in the write": {func(t *testing.T, c, _ net.Conn) error {
		if err := c.SetDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
			t.Error(err)
		}
		n, err := c.Write(make([]byte, 64<<20))
		if n >= 64<<20 {
			t.Errorf("all of %d bytes written", n)
		}
		return err
	}, os.ErrDeadlineExceeded},
	"closed": {func(_ *testing.T, c, _ net.Conn) error {
		_ = c.Close()
		_, err := c.Read(byte1)
		return err
	}, net.ErrClosed},
	"closed for writing": {func(_ *testing.T, c, _ net.Conn) error {
		_ = c.Close()
		_, err := c.Write(byte1)
		return err
	}, net.ErrClosed},
	"closed in the read": {func(_ *testing.T, c, _ net.Conn) error {
		ended := make(chan error, 1)
		go func() { _, err := c.Read(byte1); ended <- err }()
		_ = c.Close()
		return <-ended
	}, net.ErrClosed},
	"nothing to read": {func(_ *testing.T, c, _ net.Conn) error {
		_, err := c.Read(nil)
		return err
	}, nil},
	"nothing to write": {func(_ *testing.T, c, _ net.Conn) error {
		_, err := c.Write(nil)
		return err
	}, nil},
}

// TestFailsAsBefore compares with what package net says of the same.
func TestFailsAsBefore(t *testing.T) {
	t.Parallel()
	for name, run := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := func(c, peer net.Conn) string {
				err := run.do(t, c, peer)
				if !errors.Is(err, run.is) {
					t.Errorf("%T: error %v, want %v", c, err, run.is)
				}
				if err == nil {
					return ""
				}
				var timeout net.Error
				if errors.As(err, &timeout) && timeout.Timeout() != errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%T: Timeout of %v is %v", c, err, timeout.Timeout())
				}
				return addresses.ReplaceAllString(err.Error(), "address")
			}
			plain, plainPeer := pair(t, "tcp")
			c, peer := pair(t, "tcp")
			want, got := text(plain, plainPeer), text(Wrap(c), peer)
			if got != want {
				t.Errorf("error %q, want %q", got, want)
			}
		})
	}
}

func TestReadsAndWritesDoNotAllocate(t *testing.T) { //nolint:paralleltest // it counts allocations
	a, b := pair(t, "tcp")
	from, to := Wrap(a), Wrap(b)
	message := make([]byte, 100)
	if n := testing.AllocsPerRun(100, func() {
		_, _ = from.Write(message)
		_, _ = io.ReadFull(to, message)
	}); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	if got := Wrap(a); got != a {
		t.Errorf("Wrap of a pipe is %T", got)
	}
}
