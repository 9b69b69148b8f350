package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/walpost/walpost/internal/testkit/proc"
)

// Direction is one of the two ways that bytes go.
type Direction int

// The two directions.
const (
	ToServer Direction = iota
	ToClient
)

// Proxy listens on a port of 127.0.0.1 and forwards to one target.
type Proxy struct {
	target string
	port   *proc.Port
	tasks  sync.WaitGroup // acceptor and connections

	mu       sync.Mutex
	changed  *sync.Cond // a dial was turned, or a connection closed
	listener net.Listener
	closed   bool
	accepted int
	links    map[*link]struct{}
	dials    [2]dials
}

// dials is what can be set for a direction.
type dials struct {
	stalled   bool
	delay     time.Duration
	dropAfter int64 // bytes until the connection breaks, if dropping
	dropping  bool
	bytes     int64 // forwarded so far
}

// New starts a proxy to a target.
func New(target string) (*Proxy, error) {
	port, err := proc.ReservePort()
	if err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	p := &Proxy{target: target, port: port, links: map[*link]struct{}{}}
	p.changed = sync.NewCond(&p.mu)
	if err := p.Accept(); err != nil {
		port.Release()
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	return p, nil
}

// Addr returns the proxy's address.
func (p *Proxy) Addr() string { return "127.0.0.1:" + strconv.Itoa(p.port.Number) }

// Target returns where the proxy forwards to.
func (p *Proxy) Target() string { return p.target }

// Accepted returns how many connections were accepted so far.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Open returns how many connections are open.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Bytes returns how many bytes were forwarded in that direction.
func (p *Proxy) Bytes(d Direction) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dials[d].bytes
}

// Cut resets all connections; new ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

// Stall stops forwarding in both directions; connections stay open, and new ones
// are accepted and connected.
func (p *Proxy) Stall() { p.stall(true, ToServer, ToClient) }

// StallTo stops forwarding in one direction: a half-open connection.
func (p *Proxy) StallTo(d Direction) { p.stall(true, d) }

// StallOpen stops forwarding in one direction on the connections that are open
// now; later ones are free. What was sent arrives on Resume, also when its sender
// has closed the connection or died meanwhile.
func (p *Proxy) StallOpen(d Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.held[d] = true
	}
}

// Resume goes on forwarding in both directions.
func (p *Proxy) Resume() {
	p.mu.Lock()
	for l := range p.links {
		l.held = [2]bool{}
	}
	p.mu.Unlock()
	p.stall(false, ToServer, ToClient)
}

func (p *Proxy) stall(stalled bool, directions ...Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range directions {
		p.dials[d].stalled = stalled
	}
	p.changed.Broadcast()
}

// Delay makes bytes arrive that much later in each direction. Throughput stays:
// it is the latency of a longer line.
func (p *Proxy) Delay(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dials[ToServer].delay = delay
	p.dials[ToClient].delay = delay
}

// DropAfter closes the connection that forwards the n-th byte from now in that
// direction, after this byte. It happens once.
func (p *Proxy) DropAfter(n int64, d Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dials[d].dropping = true
	p.dials[d].dropAfter = n
}

// Refuse closes the port: new connections are refused, open ones go on.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
}

// Accept opens the port again.
func (p *Proxy) Accept() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil || p.closed {
		return nil
	}
	listener, err := net.Listen("tcp", p.Addr())
	if err != nil {
		return err
	}
	p.listener = listener
	p.tasks.Go(func() { p.acceptAll(listener) })
	return nil
}

// Close resets all connections, closes the port and waits for the goroutines.
func (p *Proxy) Close() {
	p.Refuse()
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	p.mu.Unlock()
	p.Cut()
	p.tasks.Wait()
	if first {
		p.port.Release()
	}
}

func (p *Proxy) acceptAll(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // closed by Refuse
		}
		p.tasks.Go(func() { p.serve(client.(*net.TCPConn)) })
	}
}

// dialTimeout is for a target that neither accepts nor refuses.
const dialTimeout = 10 * time.Second

func (p *Proxy) serve(client *net.TCPConn) {
	server, err := net.DialTimeout("tcp", p.target, dialTimeout)
	if err != nil {
		// As close as we get to the refusal that the client would have seen.
		_ = client.SetLinger(0)
		client.Close()
		return
	}
	l := &link{proxy: p, client: client, server: server.(*net.TCPConn), done: make(chan struct{})}
	p.mu.Lock()
	p.accepted++
	p.links[l] = struct{}{}
	if p.closed {
		l.reset()
	}
	p.mu.Unlock()
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// Dialer returns a dial function for clients in this process: what is dialled is
// the proxy of that address, or the address itself if there is none.
func Dialer(proxies ...*Proxy) func(ctx context.Context, network, addr string) (net.Conn, error) {
	routes := map[string]string{}
	for _, p := range proxies {
		routes[p.target] = p.Addr()
	}
	var dialer net.Dialer
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if route, ok := routes[addr]; ok {
			addr = route
		}
		return dialer.DialContext(ctx, network, addr)
	}
}

var errReset = errors.New("connection reset by the proxy")
