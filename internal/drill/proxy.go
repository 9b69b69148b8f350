package drill

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// proxy passes connections on to the address that their first line names.
type proxy struct {
	listener net.Listener
	held     atomic.Bool // the brokers' answers are swallowed

	mu    sync.Mutex
	conns map[net.Conn]bool
	done  bool
	wait  sync.WaitGroup
}

func newProxy() (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the proxy: %w", err)
	}
	p := &proxy{listener: listener, conns: map[net.Conn]bool{}}
	p.wait.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.wait.Go(func() { p.serve(conn) })
		}
	})
	return p, nil
}

// Via gives the dialer of a process whose connections all go through the proxy
// at addr.
func Via(addr string) func(ctx context.Context, network, target string) (net.Conn, error) {
	return func(ctx context.Context, network, target string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: 3 * time.Second}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(conn, target+"\n"); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, nil
	}
}

// hold swallows what the brokers answer from now on.
func (p *proxy) hold() { p.held.Store(true) }

// reset ends all connections and lets new ones work.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
	p.held.Store(false)
}

func (p *proxy) close() {
	p.mu.Lock()
	p.done = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.reset()
	p.wait.Wait()
}

// add notes a connection, so that close ends it.
func (p *proxy) add(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		_ = conn.Close()
		return false
	}
	p.conns[conn] = true
	return true
}

func (p *proxy) remove(conn net.Conn) {
	_ = conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

func (p *proxy) serve(client net.Conn) {
	if !p.add(client) {
		return
	}
	defer p.remove(client)
	from := bufio.NewReaderSize(client, 4096)
	target, err := from.ReadString('\n')
	if err != nil {
		return
	}
	broker, err := net.DialTimeout("tcp", strings.TrimSpace(target), 3*time.Second)
	if err != nil || !p.add(broker) {
		return
	}
	defer p.remove(broker)
	p.wait.Go(func() {
		_, _ = io.Copy(broker, from)
		_ = broker.Close()
	})
	buf := make([]byte, 32<<10)
	for {
		n, err := broker.Read(buf)
		if err != nil {
			return
		}
		if p.held.Load() {
			continue
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}
