package outboxprom

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/walpost/walpost/outbox"
)

var instant = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func setup(t *testing.T) (*prometheus.Registry, *Metrics) {
	t.Helper()
	reg := prometheus.NewRegistry()
	m, err := New(reg)
	if err != nil {
		t.Fatal(err)
	}
	m.now = func() time.Time { return instant }
	return reg, m
}

func TestObserve(t *testing.T) {
	t.Parallel()
	reg, m := setup(t)
	for _, r := range []outbox.Result{
		{Outcome: outbox.Applied, Attempts: 3, Took: time.Second, Message: outbox.Message{OccurredAt: instant.Add(-time.Second)}},
		{Outcome: outbox.Applied, Attempts: 1, Released: true},
		{Outcome: outbox.Duplicate},
		{Outcome: outbox.Duplicate},
		{Outcome: outbox.Stale},
		{Outcome: outbox.Parked, Reason: outbox.Failed, Attempts: 5, Err: errors.New("no stock")},
		{Outcome: outbox.Parked, Reason: outbox.Crash, Attempts: 3},
		{Outcome: outbox.Parked, Reason: outbox.Gap},
		{Outcome: outbox.Held, Reason: outbox.Behind},
		{Outcome: outbox.TooOld, Reason: outbox.Age},
		{Err: errors.New("no database"), Attempts: 1},
	} {
		r.Consumer = "billing"
		m.Observe(r)
	}
	want := `
# HELP walpost_consumer_attempts_total Runs of the handler: applied, failed, or crashed with the process.
# TYPE walpost_consumer_attempts_total counter
walpost_consumer_attempts_total{class="applied",consumer="billing"} 2
walpost_consumer_attempts_total{class="crashed",consumer="billing"} 3
walpost_consumer_attempts_total{class="failed",consumer="billing"} 8
# HELP walpost_consumer_errors_total Calls that dealt with no event.
# TYPE walpost_consumer_errors_total counter
walpost_consumer_errors_total{consumer="billing"} 1
# HELP walpost_consumer_messages_total Events dealt with, by outcome.
# TYPE walpost_consumer_messages_total counter
walpost_consumer_messages_total{consumer="billing",outcome="applied"} 2
walpost_consumer_messages_total{consumer="billing",outcome="duplicate"} 2
walpost_consumer_messages_total{consumer="billing",outcome="held"} 1
walpost_consumer_messages_total{consumer="billing",outcome="parked"} 3
walpost_consumer_messages_total{consumer="billing",outcome="stale"} 1
walpost_consumer_messages_total{consumer="billing",outcome="too_old"} 1
# HELP walpost_consumer_released_total Parked events that were applied behind another one.
# TYPE walpost_consumer_released_total counter
walpost_consumer_released_total{consumer="billing"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "walpost_consumer_attempts_total", "walpost_consumer_errors_total",
		"walpost_consumer_messages_total", "walpost_consumer_released_total"); err != nil {
		t.Error(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "walpost_consumer_event_age_seconds" {
			if h := f.GetMetric()[0].GetHistogram(); h.GetSampleCount() != 1 || h.GetSampleSum() != 1 {
				t.Errorf("age: %d samples, sum %v; want one of 1 s", h.GetSampleCount(), h.GetSampleSum())
			}
		}
	}
	lint(t, reg)
}

type stater struct {
	stats outbox.Stats
	err   error
}

func (s stater) Stats(context.Context) (outbox.Stats, error) { return s.stats, s.err }

func TestPoll(t *testing.T) {
	t.Parallel()
	reg, m := setup(t)
	gauges := []string{
		"walpost_consumer_parked", "walpost_consumer_gap_open", "walpost_consumer_gap_oldest_seconds",
		"walpost_consumer_processed_rows", "walpost_consumer_dedup_floor_seconds", "walpost_consumer_poll_errors_total",
	}
	check := func(want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), gauges...); err != nil {
			t.Error(err)
		}
	}
	full := outbox.Stats{
		Parked: map[outbox.Reason]int64{outbox.Gap: 2, outbox.Failed: 1}, OldestGap: 90 * time.Second,
		Processed: 1234, Floor: instant.Add(-time.Hour),
	}
	const values = `
# HELP walpost_consumer_gap_oldest_seconds Time since the oldest of them was parked.
# TYPE walpost_consumer_gap_oldest_seconds gauge
walpost_consumer_gap_oldest_seconds{consumer="billing"} 90
# HELP walpost_consumer_gap_open Parked events that wait for an earlier version.
# TYPE walpost_consumer_gap_open gauge
walpost_consumer_gap_open{consumer="billing"} 2
# HELP walpost_consumer_parked Parked events that nobody has resolved, by reason.
# TYPE walpost_consumer_parked gauge
walpost_consumer_parked{consumer="billing",reason="crash"} 0
walpost_consumer_parked{consumer="billing",reason="failed"} 1
walpost_consumer_parked{consumer="billing",reason="gap"} 2
walpost_consumer_parked{consumer="billing",reason="held"} 0
walpost_consumer_parked{consumer="billing",reason="too_old"} 0
# HELP walpost_consumer_processed_rows Rows of processed_events as the planner estimates them, of all consumers.
# TYPE walpost_consumer_processed_rows gauge
walpost_consumer_processed_rows{consumer="billing"} 1234
`
	const floor = `
# HELP walpost_consumer_dedup_floor_seconds Age up to which an event is known again; older ones are refused.
# TYPE walpost_consumer_dedup_floor_seconds gauge
walpost_consumer_dedup_floor_seconds{consumer="billing"} 3600
`
	m.poll(t.Context(), "billing", stater{stats: full}, time.Second)
	check(values + floor)
	lint(t, reg)

	full.Floor = time.Time{}
	m.poll(t.Context(), "billing", stater{stats: full}, time.Second)
	check(values)

	// What is not known any more is not shown any more.
	m.poll(t.Context(), "billing", stater{err: errors.New("no database")}, time.Second)
	check(`
# HELP walpost_consumer_poll_errors_total Polls of the consumer's tables that failed.
# TYPE walpost_consumer_poll_errors_total counter
walpost_consumer_poll_errors_total{consumer="billing"} 1
`)
}

// called tells of each call and gives the context's error when it is over.
type called chan struct{}

func (c called) Stats(ctx context.Context) (outbox.Stats, error) {
	select {
	case c <- struct{}{}:
		return outbox.Stats{Processed: 1}, nil
	case <-ctx.Done():
		return outbox.Stats{}, ctx.Err()
	}
}

func TestPollUntilTheEnd(t *testing.T) {
	t.Parallel()
	reg, m := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	calls, ended := make(called), make(chan error, 1)
	go func() { ended <- m.Poll(ctx, "billing", calls, time.Millisecond) }()
	<-calls
	<-calls
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the end of the context is an error: %v", err)
	}
	if n, err := testutil.GatherAndCount(reg); err != nil || n != 0 {
		t.Errorf("%d series are left of a consumer that nobody polls any more (%v)", n, err)
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	reg, m := setup(t)
	for name, err := range map[string]error{
		"no registerer": second(New(nil)),
		"twice":         second(New(reg)),
		"no name":       m.Poll(t.Context(), "", stater{}, 0),
		"no consumer":   m.Poll(t.Context(), "billing", nil, 0),
		"negative":      m.Poll(t.Context(), "billing", stater{}, -1),
	} {
		var hinted interface{ Hint() string }
		if !errors.As(err, &hinted) || hinted.Hint() == "" {
			t.Errorf("%s: %v: want an error with a hint", name, err)
		}
	}
	// A name that is taken: none of ours stays registered.
	taken := prometheus.NewRegistry()
	taken.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "walpost_consumer_dedup_floor_seconds", Help: "x"}))
	if _, err := New(taken); err == nil {
		t.Error("a name that is taken is no error")
	}
	if n, err := testutil.GatherAndCount(taken); err != nil || n != 1 {
		t.Errorf("%d series (%v), want the one that was there", n, err)
	}
	for _, c := range newMetrics().collectors()[:3] {
		if err := taken.Register(c); err != nil {
			t.Errorf("left behind: %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func lint(t *testing.T, reg *prometheus.Registry) {
	t.Helper()
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
