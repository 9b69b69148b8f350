package main

import (
	"fmt"
	"sync"

	"github.com/google/uuid"
)

// event is a row that was committed.
type event struct {
	id    string
	kind  string // aggregate type, as it is in the table
	key   string // aggregate id
	seq   int    // place in commit order, statement order inside
	after uint64 // WAL position after the commit: confirming this confirms the event
}

// ledger is what was committed, in that order.
type ledger struct {
	mu     sync.Mutex
	events []event
	byID   map[string]int
}

func newLedger() *ledger { return &ledger{byID: map[string]int{}} }

// add notes events that one transaction has committed.
func (l *ledger) add(after uint64, events ...event) []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	added := make([]event, len(events))
	for i, e := range events {
		e.seq, e.after = len(l.events), after
		l.byID[e.id] = e.seq
		l.events = append(l.events, e)
		added[i] = e
	}
	return added
}

func (l *ledger) all() []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]event(nil), l.events...)
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.events)
}

// rows makes n events of a type over some keys.
func rows(kind string, n, keys int) []event {
	made := make([]event, n)
	for i := range made {
		made[i] = event{id: uuid.NewString(), kind: kind, key: fmt.Sprintf("k%d", i%keys)}
	}
	return made
}
