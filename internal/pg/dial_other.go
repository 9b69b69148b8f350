//go:build !linux

package pg

import (
	"context"
	"net"
)

// dial has TCP keep-alives alone: TCP_USER_TIMEOUT is Linux's.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}
