package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/walpost/walpost/internal/retry"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/topic"
)

// Away is what a relay's memory does while Kafka is away and its rows are not.
type Away struct {
	Seconds     float64 `json:"seconds"`
	Rows        int     `json:"rows"`
	Held        int     `json:"events_in_flight"`      // at the end
	HeldBytes   int64   `json:"bytes_in_flight"`       // of what the limit allows
	EarlyRSSMB  float64 `json:"peak_rss_early_mb"`     // five seconds after as many as may were in flight
	PeakRSSMB   float64 `json:"peak_rss_mb"`           // when Kafka came back
	AfterwardMB float64 `json:"peak_rss_delivered_mb"` // when all was delivered
}

// away stops the broker, writes rows, waits, starts the broker again and demands
// every row.
func (r *rig) away(ctx context.Context, rows int, duration time.Duration) (result *Away, err error) {
	inner, end, err := r.onKafka(ctx, kafkaserver.Options{Throughput: true, Log: r.say})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	const name = "bench_away"
	if err := inner.createSlot(ctx, name); err != nil {
		return nil, err
	}
	if err := inner.offsets.create(ctx, topic.Spec{Name: name, Partitions: partitions}); err != nil {
		return nil, err
	}
	w, err := inner.startWalpost(ctx, name, name)
	if err != nil {
		return nil, err
	}
	defer w.close()
	warm, err := inner.load(ctx, "WarmUp", time.Second, latencyRate)
	if err != nil {
		return nil, err
	}
	if _, err := inner.offsets.await(ctx, name, int64(len(warm.inserts)), w.child, 10*time.Millisecond); err != nil {
		return nil, err
	}
	if err := inner.cluster.Term(ctx, 0); err != nil {
		return nil, err
	}
	start := time.Now()
	if _, err := inner.fill(ctx, rows, rowsPerTx); err != nil {
		return nil, err
	}
	err = poll(ctx, 100*time.Millisecond, patience, "as many events in flight as may be", func() (bool, error) {
		s, err := w.status(ctx)
		return err == nil && s.InFlight.Bytes > s.InFlight.LimitBytes*9/10, errors.Join(err, w.ended())
	})
	if err != nil {
		return nil, err
	}
	result = &Away{Rows: rows}
	rss := func(mb *float64) error {
		bytes, err := peakRSS(w.PID())
		*mb = bytes / 1e6
		return err
	}
	if err := errors.Join(retry.Wait(ctx, 5*time.Second), rss(&result.EarlyRSSMB), retry.Wait(ctx, duration-time.Since(start)), rss(&result.PeakRSSMB), w.ended()); err != nil {
		return nil, err
	}
	s, err := w.status(ctx)
	if err != nil {
		return nil, err
	}
	result.Held, result.HeldBytes = s.InFlight.Events, s.InFlight.Bytes
	result.Seconds = time.Since(start).Seconds()
	// Our own connections went with the broker.
	if err := errors.Join(inner.offsets.close(), inner.cluster.StartAgain(ctx)); err != nil {
		return nil, err
	}
	if _, err := inner.offsets.await(ctx, name, int64(len(warm.inserts)+rows), w.child, 10*time.Millisecond); err != nil {
		return nil, err
	}
	if err := errors.Join(rss(&result.AfterwardMB), w.stop(ctx)); err != nil {
		return nil, err
	}
	return result, inner.dropSlots(ctx, name)
}

func (a *Away) print(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "\nKafka away for %.0f s, while %s rows were written\n", a.Seconds, number(float64(a.Rows), 0)); err != nil {
		return err
	}
	t := table{}
	t.add("events in flight", "MB in flight", "peak RSS MB: soon", "when it came back", "when all was delivered")
	t.add(number(float64(a.Held), 0), number(float64(a.HeldBytes)/1e6, 1), number(a.EarlyRSSMB, 1), number(a.PeakRSSMB, 1), number(a.AfterwardMB, 1))
	return t.print(w)
}
