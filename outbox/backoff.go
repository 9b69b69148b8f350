package outbox

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is exponential with full jitter: those who failed together do not come
// back together.
type backoff struct {
	least, most time.Duration
	base        time.Duration
}

func (b *backoff) next() time.Duration {
	if b.base == 0 {
		b.base = b.least
	}
	d := b.base
	b.base = min(b.base*2, b.most)
	return rand.N(d) + 1
}

// sleep returns the cause when ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
