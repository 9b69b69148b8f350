package relay

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walpost/walpost/sink"
)

// TestSettledWaitsForTheLastAck: a token that is there from before neither ends
// the wait nor hides the one that does. Nothing of it takes time.
func TestSettledWaitsForTheLastAck(t *testing.T) {
	t.Parallel()
	b := setup(t)
	synctest.Test(t, func(t *testing.T) {
		r := b.relay
		r.progress = make(chan struct{}, 1)
		began := time.Now()
		tx := r.tracker.Begin(500, began)
		r.tracker.Add(tx)
		r.tracker.Add(tx)
		r.signal()
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			err = r.settled(t.Context(), t.Context())
		}()
		for range 2 {
			synctest.Wait()
			select {
			case <-done:
				t.Fatalf("settled with events in flight: %v", err)
			default:
			}
			r.acked([]sink.Ack{{Tx: tx, N: 1, Topic: "t"}})
		}
		<-done
		if took := time.Since(began); err != nil || took != 0 {
			t.Errorf("settled: %v after %s", err, took)
		}
	})
}

// TestSettledIsBoundedAfterAStop: what a stop may take, and not longer.
func TestSettledIsBoundedAfterAStop(t *testing.T) {
	t.Parallel()
	b := setup(t)
	synctest.Test(t, func(t *testing.T) {
		r := b.relay
		r.progress = make(chan struct{}, 1)
		r.tracker.Add(r.tracker.Begin(500, time.Now()))
		intake, stop := context.WithCancel(t.Context())
		stop()
		began := time.Now()
		err := r.settled(intake, t.Context())
		if took := time.Since(began); !errors.Is(err, ErrDrainIncomplete) || took != r.opt.DrainTimeout {
			t.Errorf("settled: %v after %s", err, took)
		}
	})
}
