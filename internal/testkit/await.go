package testkit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

const (
	// patience is how long a condition may take to come true.
	patience = 60 * time.Second
	// reserve is left of the test binary's time for saying what went wrong.
	reserve = 5 * time.Second
)

// Context returns a context that ends with the test, or shortly before the test
// binary's time is over.
func Context(t *testing.T) context.Context {
	t.Helper()
	deadline, ok := t.Deadline()
	if !ok {
		return t.Context()
	}
	ctx, cancel := context.WithDeadline(t.Context(), deadline.Add(-reserve))
	t.Cleanup(cancel)
	return ctx
}

// Await waits until cond holds and fails the test, saying what it waited for, if
// it does not within a minute.
func Await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	AwaitWithin(t, patience, what, cond)
}

// AwaitWithin is Await with a time of its own, for what has to happen soon.
func AwaitWithin(t *testing.T, within time.Duration, what string, cond func() bool) {
	t.Helper()
	if deadline, ok := t.Deadline(); ok {
		within = min(within, time.Until(deadline)-reserve)
	}
	expired := time.NewTimer(within)
	defer expired.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-expired.C:
			if !cond() {
				t.Fatalf("waited %v for: %s", within, what)
			}
			return
		}
	}
}

// Receive takes a value from a channel and fails the test if none comes within a
// minute or the channel is closed.
func Receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	expired := time.NewTimer(patience)
	defer expired.Stop()
	select {
	case value, ok := <-from:
		if !ok {
			t.Fatalf("channel closed while waiting for: %s", what)
		}
		return value
	case <-expired.C:
		t.Fatalf("waited %v for: %s", patience, what)
	}
	panic("unreachable: Fatalf does not return")
}

// Unique returns a name that no other test has, good for slots, publications,
// databases and topics: lower-case letters, digits, underscores, at most 63.
func Unique(prefix string) string {
	const room = 63 - 1 - 10
	prefix = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '_'
		}
	}, prefix)
	return fmt.Sprintf("%s_%010x", prefix[:min(len(prefix), room)], rand.Uint64()&0xff_ffff_ffff)
}
