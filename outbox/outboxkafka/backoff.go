package outboxkafka

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is how long to wait before the next attempt: doubling, with full
// jitter, from 50 ms to 15 s.
type backoff struct{ bound time.Duration }

const (
	leastWait = 50 * time.Millisecond
	mostWait  = 15 * time.Second
)

func newBackoff() *backoff { return &backoff{leastWait} }

// wait says whether it is worth going on.
func (b *backoff) wait(ctx context.Context) bool {
	timer := time.NewTimer(rand.N(b.bound) + time.Millisecond)
	defer timer.Stop()
	b.bound = min(2*b.bound, mostWait)
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
