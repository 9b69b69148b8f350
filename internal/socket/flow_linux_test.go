package socket

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"
)

func readTogether(t *testing.T) {
	t.Helper()
	ReadTogether(true)
	t.Cleanup(func() { ReadTogether(false) })
}

// lowWater is what the kernel has of the wrapped connection.
func lowWater(t *testing.T, c net.Conn) (size int) {
	t.Helper()
	err := c.(*conn).flow.fd.Control(func(fd uintptr) {
		var err error
		if size, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Error(err)
	}
	return size
}

// flowing sends pieces until the connection is read on the beat. Nothing is left
// unread.
func flowing(t *testing.T, c, peer net.Conn) {
	t.Helper()
	flow := c.(*conn).flow
	b := make([]byte, 100)
	for range 10_000 {
		if _, err := peer.Write(b[:10]); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(b); err != nil || n != 10 {
			t.Fatalf("read %d bytes, %v, want 10", n, err)
		}
		if flow.high {
			return
		}
		time.Sleep(100 * time.Microsecond)
	}
	t.Fatal("never read on the beat")
}

func TestFlowRaisesTheLowWaterMark(t *testing.T) { //nolint:paralleltest // of the process
	readTogether(t)
	a, peer := pair(t, "tcp")
	c := Wrap(a)
	if got := lowWater(t, c); got != 1 {
		t.Fatalf("SO_RCVLOWAT %d at first, want 1", got)
	}
	flowing(t, c, peer)
	if got := lowWater(t, c); got != plenty {
		t.Errorf("SO_RCVLOWAT %d in a flow, want %d", got, plenty)
	}
	ReadTogether(false)
	if _, err := peer.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 10)); err != nil {
		t.Error(err)
	}
	if got := lowWater(t, c); got != 1 {
		t.Errorf("SO_RCVLOWAT %d when reads are not together any more, want 1", got)
	}
}

// TestOnePieceAfterAFlow is lost if somebody waits with the mark up.
func TestOnePieceAfterAFlow(t *testing.T) { //nolint:paralleltest // of the process
	readTogether(t)
	a, peer := pair(t, "tcp")
	c := Wrap(a)
	for _, silence := range []time.Duration{0, beat, 2 * beat, 3 * beat, pause, 2 * pause} {
		flowing(t, c, peer)
		go func() {
			time.Sleep(silence)
			_, _ = peer.Write([]byte("x"))
		}()
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		b := make([]byte, 10)
		if n, err := c.Read(b); err != nil || string(b[:n]) != "x" {
			t.Errorf("after %v of silence: read %q, %v", silence, b[:n], err)
		}
		_ = c.SetReadDeadline(time.Time{})
	}
}

// TestMuchIsReadAtOnce: who got all there was room for does not wait for the beat.
func TestMuchIsReadAtOnce(t *testing.T) { //nolint:paralleltest // of the process
	readTogether(t)
	a, peer := pair(t, "tcp")
	c := Wrap(a)
	flowing(t, c, peer)
	if _, err := peer.Write(make([]byte, plenty+1)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, plenty)
	for left := plenty; left > 0; {
		n, err := c.Read(b[:left])
		if err != nil {
			t.Fatal(err)
		}
		left -= n
	}
	if _, err := c.Read(b); err != nil {
		t.Fatal(err)
	}
	if c.(*conn).flow.high {
		t.Error("waited for the beat, want not")
	}
}

// TestPiecesWithPausesAreNoFlow: an event now and then is not held up, in however
// many pieces it comes.
func TestPiecesWithPausesAreNoFlow(t *testing.T) { //nolint:paralleltest // of the process
	readTogether(t)
	a, peer := pair(t, "tcp")
	c := Wrap(a)
	b := make([]byte, 100)
	for range 20 {
		for range 3 {
			if _, err := peer.Write(b[:10]); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(b); err != nil {
				t.Fatal(err)
			}
			if c.(*conn).flow.high {
				t.Fatal("waited for the beat, want not")
			}
		}
		time.Sleep(pause)
	}
}

// TestDeliversInAFlow mixes all that a flow knows: pieces, pauses and plenty.
func TestDeliversInAFlow(t *testing.T) { //nolint:paralleltest,tparallel // of the process
	readTogether(t)
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			a, b := pair(t, network)
			from, to := Wrap(a), Wrap(b)
			var want bytes.Buffer
			wrote := make(chan error, 1)
			var pieces [][]byte
			for i := range 300 {
				size := 1 + i*7%500
				if i%50 == 49 {
					size = 3*plenty + i
				}
				piece := bytes.Repeat([]byte{byte(i)}, size)
				pieces = append(pieces, piece)
				want.Write(piece)
			}
			go func() {
				var err error
				for i, piece := range pieces {
					if _, err = from.Write(piece); err != nil {
						break
					}
					if i%40 == 39 {
						time.Sleep(pause)
					} else {
						time.Sleep(beat / 2)
					}
				}
				_ = from.Close()
				wrote <- err
			}()
			got, err := io.ReadAll(to)
			if err != nil || !bytes.Equal(got, want.Bytes()) {
				t.Errorf("read %d bytes, %v, want the %d that were written", len(got), err, want.Len())
			}
			if err := <-wrote; err != nil {
				t.Errorf("Write: %v", err)
			}
		})
	}
}

// TestEndsInAFlow: what ends a read or a write ends it on the beat as well.
func TestEndsInAFlow(t *testing.T) { //nolint:paralleltest,tparallel // of the process
	readTogether(t)
	all := maps.Clone(endings)
	all["closed, mark up"] = ending{func(_ *testing.T, c, _ net.Conn) error {
		ReadTogether(false)
		defer ReadTogether(true)
		_ = c.Close()
		_, err := c.Read(byte1)
		return err
	}, net.ErrClosed}
	all["closed on the beat"] = ending{func(_ *testing.T, c, _ net.Conn) error {
		ended := make(chan error, 1)
		go func() { _, err := c.Read(byte1); ended <- err }()
		for in := &c.(*conn).in.mu; in.TryLock(); runtime.Gosched() { // until Read has it
			in.Unlock()
		}
		_ = c.Close()
		return <-ended
	}, net.ErrClosed}
	for name, run := range all {
		t.Run(name, func(t *testing.T) {
			a, peer := pair(t, "tcp")
			c := Wrap(a)
			flowing(t, c, peer)
			if err := run.do(t, c, peer); !errors.Is(err, run.is) {
				t.Errorf("error %v, want %v", err, run.is)
			}
		})
	}
}

// TestMarkThatCannotBeSet: where it cannot be raised, reads wait as ever; where it
// cannot be lowered, nobody waits.
func TestMarkThatCannotBeSet(t *testing.T) { //nolint:paralleltest // of the process
	readTogether(t)
	refuse := func(f *flow) func() {
		set := f.set
		f.set = func(uintptr) { f.err = syscall.EPERM }
		return func() { f.set = set }
	}
	b := make([]byte, 100)
	send := func(t *testing.T, peer net.Conn) {
		t.Helper()
		if _, err := peer.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("raised", func(t *testing.T) { //nolint:paralleltest // of the process
		a, peer := pair(t, "tcp")
		c := Wrap(a)
		flowing(t, c, peer)
		flow := c.(*conn).flow
		if err := flow.wake(1); err != nil {
			t.Fatal(err)
		}
		refuse(flow)
		for range 100 {
			send(t, peer)
			if n, err := c.Read(b); n != 1 || err != nil {
				t.Fatalf("read %d bytes, %v, want 1", n, err)
			}
		}
		if !flow.off || lowWater(t, c) != 1 {
			t.Errorf("off %t, SO_RCVLOWAT %d, want true and 1", flow.off, lowWater(t, c))
		}
	})
	t.Run("lowered", func(t *testing.T) { //nolint:paralleltest // of the process
		a, peer := pair(t, "tcp")
		c := Wrap(a)
		flowing(t, c, peer)
		allow := refuse(c.(*conn).flow)
		for range 2 {
			if _, err := c.Read(b); !errors.Is(err, syscall.EPERM) { // there is nothing to read
				t.Fatalf("error %v, want %v", err, syscall.EPERM)
			}
		}
		allow()
		send(t, peer)
		if n, err := c.Read(b); n != 1 || err != nil {
			t.Errorf("read %d bytes, %v, want 1", n, err)
		}
	})
}
