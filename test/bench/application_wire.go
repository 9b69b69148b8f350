package main

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/testkit/pgframe"
)

// trips counts round trips at the wire: the server ends each of its answers with
// ReadyForQuery, and sends it for nothing else.
type trips struct {
	mu     sync.Mutex // the driver may read in the background
	answer pgframe.Framer
	n      int
}

func (t *trips) add(data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answer.Add(data)
	for {
		kind, _, ok := t.answer.Message()
		if !ok {
			return
		}
		if kind == 'Z' {
			t.n++
		}
	}
}

// take gives how many there were since the last call.
func (t *trips) take() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.n
	t.n = 0
	return n
}

// countedConn reads along.
type countedConn struct {
	net.Conn
	trips *trips
}

// Read implements net.Conn.
func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.trips.add(b[:n])
	return n, err
}

// connectCounted opens a connection whose round trips are counted.
func connectCounted(ctx context.Context, dsn string) (*pgx.Conn, *trips, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, nil, err
	}
	cfg.TLSConfig, cfg.Fallbacks = nil, nil // frames can be read
	t := &trips{}
	dial := cfg.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: conn, trips: t}, nil
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("connect: %w", err)
	}
	return conn, t, nil
}
