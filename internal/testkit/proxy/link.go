package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// link is one client connection with its connection to the server.
type link struct {
	proxy          *Proxy
	client, server *net.TCPConn
	broken         bool          // guarded by proxy.mu
	held           [2]bool       // stalled by StallOpen; guarded by proxy.mu
	done           chan struct{} // closed when broken is set
}

// reset closes both ends with a TCP reset; the caller holds proxy.mu.
func (l *link) reset() {
	_ = l.client.SetLinger(0)
	_ = l.server.SetLinger(0)
	l.breakUp()
}

// breakUp closes both ends and wakes whoever waits; the caller holds proxy.mu.
func (l *link) breakUp() {
	if !l.broken {
		l.broken = true
		close(l.done)
	}
	_ = l.client.Close()
	_ = l.server.Close()
	l.proxy.changed.Broadcast()
}

func (l *link) fail() {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	l.breakUp()
}

func (l *link) run() {
	var flows sync.WaitGroup
	flows.Go(func() { l.forward(ToServer, l.client, l.server) })
	flows.Go(func() { l.forward(ToClient, l.server, l.client) })
	flows.Wait()
	l.client.Close()
	l.server.Close()
}

// chunk is what one Read returned and when it may go on.
type chunk struct {
	data []byte
	due  time.Time
}

const (
	chunkSize = 32 << 10
	// queued chunks bound how much is under way on a delayed line.
	queued = 256
)

// forward copies one direction until its source ends or the link breaks. The
// reading side has a goroutine of its own, so that delayed chunks overlap.
func (l *link) forward(d Direction, from, to *net.TCPConn) {
	line := make(chan chunk, queued) // closed by read
	var reader sync.WaitGroup
	reader.Go(func() { l.read(d, from, line) })
	defer reader.Wait()
	for c := range line {
		if wait := time.Until(c.due); wait > 0 {
			select {
			case <-time.After(wait):
			case <-l.done:
				return
			}
		}
		if err := l.write(d, to, c.data); err != nil {
			l.fail()
			return
		}
	}
	// The source has ended: the other direction may go on.
	_ = to.CloseWrite()
}

func (l *link) read(d Direction, from *net.TCPConn, line chan<- chunk) {
	defer close(line)
	for {
		if l.pass(d) != nil {
			return
		}
		buf := make([]byte, chunkSize)
		n, err := from.Read(buf)
		if n > 0 {
			select {
			case line <- chunk{data: buf[:n], due: time.Now().Add(l.delay(d))}:
			case <-l.done:
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				l.fail()
			}
			return
		}
	}
}

// write forwards a chunk, or the part of it that may still pass.
func (l *link) write(d Direction, to *net.TCPConn, data []byte) error {
	if err := l.pass(d); err != nil {
		return err
	}
	p := l.proxy
	p.mu.Lock()
	dial := &p.dials[d]
	drop := dial.dropping && int64(len(data)) >= dial.dropAfter
	if drop {
		data = data[:dial.dropAfter]
		dial.dropping = false
	} else if dial.dropping {
		dial.dropAfter -= int64(len(data))
	}
	dial.bytes += int64(len(data))
	p.mu.Unlock()
	if _, err := to.Write(data); err != nil {
		return err
	}
	if drop {
		// An orderly end, not a reset: a reset may destroy bytes that the
		// receiver has not read yet, and those were promised.
		_ = to.CloseWrite()
		return errReset
	}
	return nil
}

// pass waits while the direction is stalled.
func (l *link) pass(d Direction) error {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	for (p.dials[d].stalled || l.held[d]) && !l.broken {
		p.changed.Wait()
	}
	if l.broken {
		return errReset
	}
	return nil
}

func (l *link) delay(d Direction) time.Duration {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	return l.proxy.dials[d].delay
}
