package main

import (
	"context"
	"sync"
	"time"

	"github.com/walpost/walpost/sink"
)

// discard is a sink that settles every record a moment after it has come, from a
// goroutine of its own and many at a time, as Kafka does.
type discard struct {
	acked func([]sink.Ack)
	count *counter
	room  chan struct{} // a token when Submit may try again

	mu       sync.Mutex
	pending  []sink.Ack // of consecutive records, those of a transaction in one
	records  int
	full     bool
	settled  uint64
	lastAck  time.Time
	lastBeat time.Time
}

const (
	settleInterval = 2 * time.Millisecond
	maxPending     = 12_000 // records, about what fits into 6 MiB
)

func newDiscard(acked func([]sink.Ack), count *counter) *discard {
	return &discard{acked: acked, count: count, room: make(chan struct{}, 1)}
}

// Run implements sink.Sink.
func (d *discard) Run(ctx context.Context) error {
	tick := time.NewTicker(settleInterval)
	defer tick.Stop()
	var spare []sink.Ack
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			d.mu.Lock()
			acks := d.pending
			d.pending = spare[:0]
			d.settled += uint64(d.records)
			d.records = 0
			d.lastBeat = now
			if len(acks) > 0 {
				d.lastAck = now
			}
			if d.full {
				d.full = false
				select {
				case d.room <- struct{}{}:
				default:
				}
			}
			d.mu.Unlock()
			if len(acks) > 0 {
				d.acked(acks)
			}
			spare = acks
		}
	}
}

// Submit implements sink.Sink.
func (d *discard) Submit(ctx context.Context, r *sink.Record) error {
	d.count.event()
	d.mu.Lock()
	for d.records >= maxPending {
		d.full = true
		d.mu.Unlock()
		select {
		case <-d.room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		d.mu.Lock()
	}
	d.records++
	if n := len(d.pending); n > 0 && d.pending[n-1].Tx == r.Tag.Tx && d.pending[n-1].Topic == r.Topic {
		d.pending[n-1].N++
	} else {
		d.pending = append(d.pending, sink.Ack{Tx: r.Tag.Tx, N: 1, Topic: r.Topic})
	}
	d.mu.Unlock()
	return nil
}

// Status implements sink.Sink.
func (d *discard) Status() sink.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	return sink.Status{InFlightRecords: d.records, LastAck: d.lastAck, LastContact: d.lastBeat, Beat: d.lastBeat, Records: d.settled}
}
