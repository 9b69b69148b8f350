package pg

import (
	"context"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/walpost/walpost/internal/socket"
)

// userTimeout is how long the kernel may wait for the acknowledgement of what we
// sent, status updates above all. It ends a connection whose network is gone
// after this time instead of a quarter of an hour, and leaves one alone whose
// server is only busy: the kernel at the other end answers for it.
const userTimeout = 30 * time.Second

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Control: func(network, _ string, c syscall.RawConn) error {
		if network == "unix" {
			return nil
		}
		var optErr error
		err := c.Control(func(fd uintptr) {
			optErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
		})
		if err != nil {
			return err
		}
		return optErr
	}}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return socket.Wrap(conn), nil
}
