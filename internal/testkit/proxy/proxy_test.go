package proxy_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/walpost/walpost/internal/testkit/proxy"
)

// setup starts a server that sends everything back, with a proxy before it.
func setup(t *testing.T) *proxy.Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var echoes sync.WaitGroup
	echoes.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			echoes.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	p, err := proxy.New(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		listener.Close()
		echoes.Wait()
	})
	return p
}

// client is a connection that fails the test instead of hanging.
type client struct {
	*testing.T
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, p *proxy.Proxy) *client {
	t.Helper()
	conn, err := proxy.Dialer(p)(t.Context(), "tcp", p.Target())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{T: t, Conn: conn, r: bufio.NewReader(conn)}
}

func (c *client) send(text string) {
	c.Helper()
	if _, err := io.WriteString(c.Conn, text); err != nil {
		c.Fatal(err)
	}
}

func (c *client) receive(want string) {
	c.Helper()
	c.deadline(10 * time.Second)
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c.r, got); err != nil || string(got) != want {
		c.Fatalf("received %q, %v, want %q", got[:n], err, want)
	}
}

func (c *client) receiveNothing() {
	c.Helper()
	c.deadline(50 * time.Millisecond)
	var timeout net.Error
	if b, err := c.r.ReadByte(); !errors.As(err, &timeout) || !timeout.Timeout() {
		c.Fatalf("received %q, %v, want nothing", b, err)
	}
}

func (c *client) deadline(d time.Duration) {
	c.Helper()
	if err := c.SetReadDeadline(time.Now().Add(d)); err != nil {
		c.Fatal(err)
	}
}

func TestForward(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := dial(t, p)
	c.send("hello")
	c.receive("hello")
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.deadline(10 * time.Second)
	if _, err := c.r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the half close = %v, want EOF from the server", err)
	}
	if got := p.Bytes(proxy.ToServer); got != 5 {
		t.Errorf("bytes to the server = %d, want 5", got)
	}
}

func TestCutResets(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := dial(t, p)
	c.send("x")
	c.receive("x")
	p.Cut()
	c.deadline(10 * time.Second)
	if _, err := c.r.ReadByte(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read after Cut = %v, want a reset", err)
	}
	again := dial(t, p)
	again.send("y")
	again.receive("y")
}

func TestStall(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		stall        func(*proxy.Proxy)
		reachesThere int64
	}{
		{"both", (*proxy.Proxy).Stall, 0},
		{"to the server", func(p *proxy.Proxy) { p.StallTo(proxy.ToServer) }, 0},
		{"to the client", func(p *proxy.Proxy) { p.StallTo(proxy.ToClient) }, 4},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			c := dial(t, p)
			c.send("a")
			c.receive("a")
			before := p.Bytes(proxy.ToServer)
			test.stall(p)
			c.send("slow")
			c.receiveNothing()
			if got := p.Bytes(proxy.ToServer) - before; got != test.reachesThere {
				t.Errorf("%d bytes reached the server, want %d", got, test.reachesThere)
			}
			p.Resume()
			c.receive("slow")
		})
	}
}

func TestStallOpen(t *testing.T) {
	t.Parallel()
	p := setup(t)
	old := dial(t, p)
	old.send("a")
	old.receive("a")
	before := p.Bytes(proxy.ToServer)
	p.StallOpen(proxy.ToServer)
	old.send("late")
	young := dial(t, p)
	young.send("free")
	young.receive("free")
	old.receiveNothing()
	if got := p.Bytes(proxy.ToServer) - before; got != 4 {
		t.Errorf("%d bytes reached the server, want those of the young connection", got)
	}
	p.Resume()
	old.receive("late")
}

func TestStallPressesBack(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := dial(t, p)
	p.Stall()
	// More than all buffers on the way hold.
	if err := c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	sent, err := c.Write(make([]byte, 64<<20))
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("wrote %d bytes into a stalled connection, error %v, want a timeout", sent, err)
	}
}

func TestDropAfter(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := dial(t, p)
	p.DropAfter(7, proxy.ToClient)
	c.send("abcd")
	c.receive("abcd")
	c.send("efgh")
	c.receive("efg")
	c.deadline(10 * time.Second)
	if _, err := c.r.ReadByte(); err == nil {
		t.Error("the connection goes on after the last byte")
	}
	again := dial(t, p)
	again.send("once only")
	again.receive("once only")
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := dial(t, p)
	p.Refuse()
	if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial = %v, want refused", err)
	}
	c.send("old ones go on")
	c.receive("old ones go on")
	if err := p.Accept(); err != nil {
		t.Fatal(err)
	}
	again := dial(t, p)
	again.send("x")
	again.receive("x")
}

func TestDelayKeepsOrder(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := dial(t, p)
	p.Delay(100 * time.Millisecond)
	c.send("first")
	c.receiveNothing()
	c.send("second")
	p.Delay(0)
	c.send("third")
	c.receive("firstsecondthird")
}
