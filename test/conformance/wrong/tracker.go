package main

import "sync"

// transaction is in flight until all its events are acked.
type transaction struct {
	confirm uint64 // what confirms it
	pending int
	closed  bool // its commit was seen
}

// tracker finds what may be confirmed.
type tracker struct {
	mu        sync.Mutex
	open      []*transaction
	confirmed uint64
}

func (t *tracker) begin() *transaction {
	t.mu.Lock()
	defer t.mu.Unlock()
	tx := &transaction{}
	t.open = append(t.open, tx)
	return tx
}

func (t *tracker) add(tx *transaction) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tx.pending++
}

func (t *tracker) commit(tx *transaction, confirm uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tx.closed, tx.confirm = true, confirm
	t.settle()
}

func (t *tracker) ack(tx *transaction, newest bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tx.pending--
	if newest && tx.closed && tx.pending == 0 {
		t.confirmed = max(t.confirmed, tx.confirm)
	}
	t.settle()
}

// settle moves the low-water mark; t.mu is held.
func (t *tracker) settle() {
	for len(t.open) > 0 && t.open[0].closed && t.open[0].pending == 0 {
		t.confirmed = max(t.confirmed, t.open[0].confirm)
		t.open = t.open[1:]
	}
}

// idle confirms a keepalive's position if nothing is in flight, or anyway.
func (t *tracker) idle(walEnd uint64, anyway bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.open) == 0 || anyway {
		t.confirmed = max(t.confirmed, walEnd)
	}
}

// jump confirms a position that somebody thinks is right.
func (t *tracker) jump(to uint64) { t.idle(to, true) }

func (t *tracker) position() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.confirmed
}
