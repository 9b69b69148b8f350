package retry

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func fixed(v float64) func() float64 { return func() float64 { return v } }

func TestBackoff(t *testing.T) {
	t.Parallel()
	ms := func(list ...int) []time.Duration {
		out := make([]time.Duration, len(list))
		for i, v := range list {
			out[i] = time.Duration(v) * time.Millisecond
		}
		return out
	}
	tests := map[string]struct {
		Backoff
		want []time.Duration
	}{
		"zero value, luckless": {Backoff{Rand: fixed(0)}, ms(100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000)},
		"zero value, half":     {Backoff{Rand: fixed(0.5)}, ms(90, 180, 360)},
		"no jitter":            {Backoff{Jitter: -1, Rand: fixed(0.5)}, ms(100, 200)},
		"own limits": {
			Backoff{Min: 50 * time.Millisecond, Max: 500 * time.Millisecond, Factor: 3, Jitter: -1}, ms(50, 150, 450, 500, 500),
		},
		"no growth":          {Backoff{Min: time.Second, Max: time.Minute, Factor: 1, Jitter: -1}, ms(1000, 1000, 1000)},
		"factor below one":   {Backoff{Min: time.Second, Max: time.Minute, Factor: 0.1, Jitter: -1}, ms(1000, 1000, 1000)},
		"min above max":      {Backoff{Min: time.Minute, Max: time.Second, Jitter: -1}, ms(1000, 1000)},
		"least jitter":       {Backoff{Jitter: 0.5, Rand: fixed(0)}, ms(100, 200, 400)},
		"some jitter":        {Backoff{Jitter: 0.5, Rand: fixed(0.5)}, ms(75, 150, 300)},
		"jitter out of line": {Backoff{Jitter: 7, Rand: fixed(0.75)}, ms(25, 50, 100)},
		"no overflow": {
			Backoff{Min: 1 << 61, Max: math.MaxInt64, Factor: 10, Jitter: -1}, []time.Duration{1 << 61, math.MaxInt64, math.MaxInt64},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for round := range 2 {
				var got []time.Duration
				for range test.want {
					got = append(got, test.Next())
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("round %d: delays differ (-want +got):\n%s", round, diff)
				}
				if test.Attempts() != len(test.want) {
					t.Errorf("round %d: got %d attempts, want %d", round, test.Attempts(), len(test.want))
				}
				test.Reset()
			}
		})
	}
}

func TestJitterStaysInRange(t *testing.T) {
	t.Parallel()
	b := Backoff{Min: time.Second, Max: time.Second, Jitter: 0.2}
	for range 1000 {
		if d := b.Next(); d <= 800*time.Millisecond-1 || d > time.Second {
			t.Fatalf("got %v, want 0.8s to 1s", d)
		}
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := Wait(t.Context(), time.Hour); err != nil {
			t.Errorf("got error %v, want none", err)
		}
		if got := time.Since(start); got != time.Hour {
			t.Errorf("waited %v, want 1h", got)
		}
	})
}

func TestWaitEndsWithContext(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		start := time.Now()
		go func() { done <- Wait(ctx, time.Hour) }()
		synctest.Wait()
		cancel(stop)
		if err := <-done; !errors.Is(err, stop) {
			t.Errorf("got error %v, want the cause", err)
		}
		if got := time.Since(start); got != 0 {
			t.Errorf("waited %v, want no time", got)
		}
		// An ended context wins even where there is nothing to wait for.
		if err := Wait(ctx, 0); !errors.Is(err, stop) {
			t.Errorf("got error %v, want the cause", err)
		}
	})
}
