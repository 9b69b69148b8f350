package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// The values of a Backoff's zero fields.
const (
	DefaultMin    = 100 * time.Millisecond
	DefaultMax    = 10 * time.Second
	DefaultFactor = 2
	DefaultJitter = 0.2
)

// Backoff is a growing, jittered delay. Its zero value is ready for use. It is
// not safe for concurrent use.
type Backoff struct {
	Min    time.Duration // the first delay
	Max    time.Duration // no delay is longer, jitter included
	Factor float64       // growth from one to the next, at least 1
	// Jitter is the part of a delay that is left to chance, up to 1: the delay d
	// becomes one between d*(1-Jitter) and d. Below 0 there is none.
	Jitter float64
	// Rand gives numbers in [0, 1); nil is the usual generator.
	Rand func() float64

	base     time.Duration // of the next delay
	attempts int
}

// Next gives the delay before the next attempt.
func (b *Backoff) Next() time.Duration {
	least, most, factor := b.limits()
	if b.base == 0 {
		b.base = least
	}
	d := b.base
	b.attempts++
	// Compare before multiplying: the product may not fit a Duration.
	if float64(d) >= float64(most)/factor {
		b.base = most
	} else {
		b.base = time.Duration(float64(d) * factor)
	}
	random := b.Rand
	if random == nil {
		random = rand.Float64
	}
	jitter := b.Jitter
	if jitter == 0 {
		jitter = DefaultJitter
	}
	return d - time.Duration(float64(d)*min(max(jitter, 0), 1)*random())
}

// Attempts counts the calls of Next since the last Reset.
func (b *Backoff) Attempts() int { return b.attempts }

// Reset starts again from Min, after a success.
func (b *Backoff) Reset() { b.base, b.attempts = 0, 0 }

func (b *Backoff) limits() (least, most time.Duration, factor float64) {
	least, most, factor = b.Min, b.Max, b.Factor
	if least <= 0 {
		least = DefaultMin
	}
	if most <= 0 {
		most = DefaultMax
	}
	if factor == 0 {
		factor = DefaultFactor
	}
	return min(least, most), most, max(factor, 1)
}

// Wait returns nil after d, or the cause of ctx's end if that comes first.
func Wait(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
