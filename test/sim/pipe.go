package sim

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// half is one direction of a connection: an unbounded buffer, as a socket's is
// for the small messages of these protocols. It blocks in nothing but a
// condition variable, so that virtual time passes while somebody reads.
type half struct {
	mu       sync.Mutex
	cond     sync.Cond
	buf      []byte
	ended    bool  // the writer has closed
	err      error // what the reader gets instead of anything else
	held     bool  // what is written does not arrive for now
	deadline time.Time
	timer    *time.Timer
}

func newHalf() *half {
	h := &half{}
	h.cond.L = &h.mu
	return h
}

func (h *half) change(f func()) {
	h.mu.Lock()
	f()
	h.cond.Broadcast()
	h.mu.Unlock()
}

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.err != nil:
			return 0, h.err
		case !h.held && len(h.buf) > 0:
			n := copy(p, h.buf)
			h.buf = h.buf[n:]
			return n, nil
		case !h.held && h.ended:
			return 0, io.EOF
		case !h.deadline.IsZero() && !time.Now().Before(h.deadline):
			return 0, os.ErrDeadlineExceeded
		}
		h.cond.Wait()
	}
}

func (h *half) setDeadline(t time.Time) {
	h.change(func() {
		h.deadline = t
		if h.timer != nil {
			h.timer.Stop()
			h.timer = nil
		}
		if !t.IsZero() && h.err == nil {
			h.timer = time.AfterFunc(time.Until(t), func() { h.change(func() {}) })
		}
	})
}

// conn is one end of a connection inside the bubble.
type conn struct {
	in, out *half
	name    string
}

// pipe makes a connection. What was written before an end is closed still
// arrives at the other, as with a socket.
func pipe(name string) (client, server *conn) {
	a, b := newHalf(), newHalf()
	return &conn{in: a, out: b, name: name}, &conn{in: b, out: a, name: name}
}

func (c *conn) Read(p []byte) (int, error) { return c.in.read(p) }

func (c *conn) Write(p []byte) (n int, err error) {
	c.out.change(func() {
		switch {
		case c.out.err != nil:
			err = syscall.EPIPE
		case c.out.ended:
			err = net.ErrClosed
		default:
			c.out.buf = append(c.out.buf, p...)
			n = len(p)
		}
	})
	if err != nil {
		err = &net.OpError{Op: "write", Net: "tcp", Err: err}
	}
	return n, err
}

// Close ends both directions for this end.
func (c *conn) Close() error {
	c.setDeadlines(time.Time{})
	c.out.change(func() { c.out.ended = true })
	c.in.change(func() {
		if c.in.err == nil {
			c.in.err = net.ErrClosed
		}
	})
	return nil
}

// cut breaks the connection for both ends. What the server has not read by then
// is lost when lose is set; otherwise it still gets it.
func (c *conn) cut(lose bool) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	c.in.change(func() { c.in.err = reset })
	c.out.change(func() {
		c.out.ended = true
		if lose {
			c.out.err = reset
		}
	})
}

// hold keeps what is on its way, in both directions, until it is released.
func (c *conn) hold(on bool) {
	for _, h := range []*half{c.in, c.out} {
		h.change(func() { h.held = on })
	}
}

func (c *conn) setDeadlines(t time.Time) {
	c.in.setDeadline(t)
}

func (c *conn) SetDeadline(t time.Time) error      { c.setDeadlines(t); return nil }
func (c *conn) SetReadDeadline(t time.Time) error  { c.setDeadlines(t); return nil }
func (c *conn) SetWriteDeadline(t time.Time) error { return nil }
func (c *conn) LocalAddr() net.Addr                { return address("relay") }
func (c *conn) RemoteAddr() net.Addr               { return address(c.name) }

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }
