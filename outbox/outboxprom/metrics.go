package outboxprom

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/walpost/walpost/outbox"
)

// Metrics of one or more consumers. It is safe for concurrent use.
type Metrics struct {
	messages, attempts                   *prometheus.CounterVec
	released, errors, pollErrors         *prometheus.CounterVec
	seconds, age                         *prometheus.HistogramVec
	parked                               *prometheus.GaugeVec
	gapOpen, gapOldest, processed, floor *prometheus.GaugeVec
	now                                  func() time.Time
}

// New registers the metrics with reg, all or none of them.
func New(reg prometheus.Registerer) (*Metrics, error) {
	if reg == nil {
		return nil, &outbox.Error{Text: "metrics: there is no registerer", Way: "pass a *prometheus.Registry, or prometheus.DefaultRegisterer"}
	}
	m := newMetrics()
	var done []prometheus.Collector
	for _, c := range m.collectors() {
		if err := reg.Register(c); err != nil {
			for _, d := range done {
				reg.Unregister(d)
			}
			return nil, &outbox.Error{Text: "metrics", Way: "make one Metrics for each registerer and share it among the consumers", Err: err}
		}
		done = append(done, c)
	}
	return m, nil
}

func newMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "walpost_consumer_" + name, Help: help}, append([]string{"consumer"}, labels...))
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "walpost_consumer_" + name, Help: help}, append([]string{"consumer"}, labels...))
	}
	histogram := func(name, help string, least float64, n int) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "walpost_consumer_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(least, 4, n),
		}, []string{"consumer"})
	}
	return &Metrics{
		messages:   counter("messages_total", "Events dealt with, by outcome.", "outcome"),
		attempts:   counter("attempts_total", "Runs of the handler: applied, failed, or crashed with the process.", "class"),
		released:   counter("released_total", "Parked events that were applied behind another one."),
		errors:     counter("errors_total", "Calls that dealt with no event."),
		pollErrors: counter("poll_errors_total", "Polls of the consumer's tables that failed."),
		seconds:    histogram("process_seconds", "Time for an event, attempts and waits included.", 0.0005, 9),
		age:        histogram("event_age_seconds", "Age of an event when it was applied.", 0.005, 12),
		parked:     gauge("parked", "Parked events that nobody has resolved, by reason.", "reason"),
		gapOpen:    gauge("gap_open", "Parked events that wait for an earlier version."),
		gapOldest:  gauge("gap_oldest_seconds", "Time since the oldest of them was parked."),
		processed:  gauge("processed_rows", "Rows of processed_events as the planner estimates them, of all consumers."),
		floor:      gauge("dedup_floor_seconds", "Age up to which an event is known again; older ones are refused."),
		now:        time.Now,
	}
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.messages, m.attempts, m.released, m.errors, m.pollErrors, m.seconds, m.age,
		m.parked, m.gapOpen, m.gapOldest, m.processed, m.floor,
	}
}

// Observe counts one Result. It is made for ConsumerOptions.Observe.
func (m *Metrics) Observe(r outbox.Result) {
	if r.Outcome == 0 {
		m.errors.WithLabelValues(r.Consumer).Inc()
		m.count(r.Consumer, "failed", r.Attempts)
		return
	}
	m.messages.WithLabelValues(r.Consumer, r.Outcome.String()).Inc()
	m.seconds.WithLabelValues(r.Consumer).Observe(r.Took.Seconds())
	switch {
	case r.Outcome == outbox.Applied:
		m.count(r.Consumer, "applied", 1)
		m.count(r.Consumer, "failed", r.Attempts-1)
		if at := r.Message.OccurredAt; !at.IsZero() {
			m.age.WithLabelValues(r.Consumer).Observe(max(m.now().Sub(at).Seconds(), 0))
		}
		if r.Released {
			m.released.WithLabelValues(r.Consumer).Inc()
		}
	case r.Reason == outbox.Crash:
		m.count(r.Consumer, "crashed", r.Attempts)
	default:
		m.count(r.Consumer, "failed", r.Attempts)
	}
}

func (m *Metrics) count(consumer, class string, n int) {
	if n > 0 {
		m.attempts.WithLabelValues(consumer, class).Add(float64(n))
	}
}

// Stater is an *outbox.Consumer.
type Stater interface {
	Stats(context.Context) (outbox.Stats, error)
}

// Poll reads the tables of a consumer every so often, 30 s if 0, until ctx ends.
// consumer is ConsumerOptions.Name. It costs a scan of what is parked, so one
// instance of a service is enough.
func (m *Metrics) Poll(ctx context.Context, consumer string, s Stater, every time.Duration) error {
	if consumer == "" || s == nil || every < 0 {
		return &outbox.Error{Text: fmt.Sprintf("metrics: poll %q every %v", consumer, every), Way: "pass the consumer, its name, and an interval of 0 or more"}
	}
	if every == 0 {
		every = 30 * time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	defer m.forget(consumer)
	for {
		m.poll(ctx, consumer, s, every)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (m *Metrics) poll(ctx context.Context, consumer string, s Stater, every time.Duration) {
	limited, cancel := context.WithTimeout(ctx, max(every, 5*time.Second))
	defer cancel()
	stats, err := s.Stats(limited)
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return
	case err != nil:
		m.pollErrors.WithLabelValues(consumer).Inc()
		m.forget(consumer)
		return
	}
	for _, reason := range []outbox.Reason{outbox.Gap, outbox.Failed, outbox.Crash, outbox.Behind, outbox.Age} {
		m.parked.WithLabelValues(consumer, string(reason)).Set(float64(stats.Parked[reason]))
	}
	m.gapOpen.WithLabelValues(consumer).Set(float64(stats.Parked[outbox.Gap]))
	m.gapOldest.WithLabelValues(consumer).Set(stats.OldestGap.Seconds())
	m.processed.WithLabelValues(consumer).Set(float64(stats.Processed))
	if stats.Floor.IsZero() {
		m.floor.DeleteLabelValues(consumer)
	} else {
		m.floor.WithLabelValues(consumer).Set(m.now().Sub(stats.Floor).Seconds())
	}
}

// forget takes away what nobody knows any more.
func (m *Metrics) forget(consumer string) {
	m.parked.DeletePartialMatch(prometheus.Labels{"consumer": consumer})
	for _, g := range []*prometheus.GaugeVec{m.gapOpen, m.gapOldest, m.processed, m.floor} {
		g.DeleteLabelValues(consumer)
	}
}
