package sink

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// network is the way to the brokers, with faults.
type network struct {
	mu     sync.Mutex
	down   bool
	decide func(request []byte) cut // asked for every produce request
}

// cut says what happens to a produce request on the way.
type cut int

const (
	pass       cut = iota
	cutBefore      // the connection breaks before the request is out
	cutHalf        // … in the middle of it
	cutAnswer      // … after the broker has done it
	numberCuts = iota
)

func (n *network) setDown(down bool) {
	n.mu.Lock()
	n.down = down
	n.mu.Unlock()
}

func (n *network) setDecide(f func([]byte) cut) {
	n.mu.Lock()
	n.decide = f
	n.mu.Unlock()
}

func (n *network) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	n.mu.Lock()
	down := n.down
	n.mu.Unlock()
	if down {
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &faultyConn{Conn: c, network: n}, nil
}

// faultyConn is one connection; the library has one request under way on each.
type faultyConn struct {
	net.Conn
	network *network
	left    int // of the request being written
	fate    cut
}

func (c *faultyConn) Write(b []byte) (int, error) {
	if c.left == 0 && len(b) >= 6 {
		c.left = 4 + int(binary.BigEndian.Uint32(b))
		c.fate = pass
		if kmsg.Key(binary.BigEndian.Uint16(b[4:])) == kmsg.Produce {
			c.network.mu.Lock()
			if c.network.decide != nil {
				c.fate = c.network.decide(b)
			}
			c.network.mu.Unlock()
		}
	}
	switch c.fate {
	case cutBefore:
		_ = c.Close()
		return 0, syscall.EPIPE
	case cutHalf:
		n, _ := c.Conn.Write(b[:len(b)/2])
		_ = c.Close()
		return n, syscall.EPIPE
	}
	n, err := c.Conn.Write(b)
	c.left -= n
	return n, err
}

func (c *faultyConn) Read(b []byte) (int, error) {
	if c.fate == cutAnswer {
		_, _ = c.Conn.Read(b) // the broker has answered: it has done its work
		_ = c.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return c.Conn.Read(b)
}
