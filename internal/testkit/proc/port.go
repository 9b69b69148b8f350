package proc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// Ports are taken from below the range that systems use for outgoing
// connections (32768 and up on Linux): a server that is down for a while must
// find its port free when it comes back.
const (
	firstPort = 20000
	lastPort  = 28999
)

// Port is a TCP port on 127.0.0.1 that no other user of this package gets until
// it is released.
type Port struct {
	Number int
	lock   *Lock
}

// ReservePort finds a port that nobody listens on.
func ReservePort() (*Port, error) {
	root, err := root()
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	dir := filepath.Join(root, "ports")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	for range 200 {
		number := firstPort + rand.IntN(lastPort-firstPort+1)
		lock, err := TryLock(filepath.Join(dir, strconv.Itoa(number)))
		if errors.Is(err, ErrLocked) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reserve a port: %w", err)
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(number)))
		if err != nil {
			lock.Unlock()
			continue
		}
		if err := listener.Close(); err != nil {
			return nil, fmt.Errorf("reserve a port: %w", err)
		}
		return &Port{Number: number, lock: lock}, nil
	}
	return nil, fmt.Errorf("reserve a port: none free between %d and %d", firstPort, lastPort)
}

// Release lets others have the port.
func (p *Port) Release() { p.lock.Unlock() }
