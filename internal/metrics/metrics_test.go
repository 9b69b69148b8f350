package metrics_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/walpost/walpost/internal/metrics"
	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func ptr[T any](v T) *T { return &v }

// full has a value for everything.
func full() metrics.Values {
	now := time.Unix(1_800_000_000, 0)
	return metrics.Values{
		State: "streaming", States: []string{"starting", "streaming"}, Ready: true, SlotStreaming: true,
		Age: ptr(time.Second), PublishedThrough: now, LastEvent: now, LastServerMessage: now, ClockSkew: ptr(time.Millisecond),
		InFlightEvents: 1, InFlightBytes: 2, InFlightLimitBytes: 3, Received: 4, LowWater: 5,
		PollSuccess: true, PollAt: now, PublicationOK: ptr(true),
		Slot: &slot.Info{
			Exists: true, Plugin: "pgoutput", Database: "shop", WALStatus: "reserved", CurrentLSN: 9,
			ConfirmedFlushLSN: ptr(slot.Info{}.CurrentLSN + 7), LagBytes: ptr(int64(1)), RetainedBytes: ptr(int64(2)),
			SafeWALBytes: ptr(int64(3)), LimitBytes: ptr(int64(4)), OtherSlotsMax: ptr(int64(5)), ArchiverFailed: ptr(false),
			RestartPinner: &slot.Pinner{Age: time.Minute},
		},
	}
}

func busy(opt metrics.Options) *metrics.Metrics {
	m := metrics.New(opt)
	m.Observe(full)
	m.EventReceived(3)
	m.EventIgnored("other_table", 1)
	m.EventsAcked("orders", 2, 3*time.Millisecond)
	m.TransactionEvents(2)
	m.StreamConnect("ok")
	m.StreamDisconnect("postgres_unreachable")
	m.DecodeError("pgoutput")
	m.ProduceDone(time.Millisecond)
	m.BatchAcked("orders", 2, 100)
	m.BatchFailed(sink.Passing, "NOT_ENOUGH_REPLICAS", 1)
	m.BatchRetried("NOT_ENOUGH_REPLICAS")
	m.BrokerDuplicate()
	m.SequenceLost()
	return m
}

func TestLint(t *testing.T) {
	t.Parallel()
	problems, err := testutil.GatherAndLint(busy(metrics.Options{Slot: "orders"}).Registry())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "walpost_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// TestNames fixes what dashboards rely on: a rename shows up as a change of the
// golden file.
func TestNames(t *testing.T) {
	t.Parallel()
	families, err := busy(metrics.Options{Slot: "orders"}).Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "walpost_") {
			continue
		}
		var labels []string
		for _, l := range f.Metric[0].Label {
			labels = append(labels, l.GetName())
		}
		sort.Strings(labels)
		lines = append(lines, fmt.Sprintf("%s %s {%s}", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, ",")))
	}
	golden(t, "testdata/metrics.golden", strings.Join(lines, "\n")+"\n")
	if reference := metrics.Reference(); strings.Count(reference, "| `walpost_") != len(lines) {
		t.Errorf("the table has %d rows, %d series have a value here: one has no value or no row",
			strings.Count(reference, "| `walpost_"), len(lines))
	}
}

func TestReferencePage(t *testing.T) {
	t.Parallel()
	golden(t, "../../docs/metrics.md", metrics.Reference())
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run the test with -update if that is meant. Got:\n%s", file, got)
	}
}

func TestUnknownHasNoSeries(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Options{Slot: "orders"})
	m.Observe(func() metrics.Values {
		return metrics.Values{State: "starting", States: []string{"starting"}, Slot: &slot.Info{Exists: true, WALStatus: "lost"}}
	})
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, absent := range []string{"slot_retained", "slot_safe", "slot_lag", "age_seconds", "timestamp", "clock_skew", "publication_ok", "position", "poll"} {
			if strings.HasPrefix(f.GetName(), "walpost_") && strings.Contains(f.GetName(), absent) {
				t.Errorf("%s has a series although it is unknown", f.GetName())
			}
		}
	}
}

func TestTopicsAreBounded(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Options{Slot: "orders", MaxTopics: 10})
	for range 2 {
		for i := range 1000 {
			m.EventsAcked(fmt.Sprintf("topic-%d", i), 1, 0)
			m.BatchAcked(fmt.Sprintf("topic-%d", i), 1, 50)
		}
	}
	for name, want := range map[string]float64{"walpost_events_published_total": 1980, "walpost_published_bytes_total": 99_000} {
		series := family(t, m, name)
		if len(series) != 11 {
			t.Errorf("%s has %d series; want 10 topics and other", name, len(series))
		}
		if got := series["topic=other"].GetCounter().GetValue(); got != want {
			t.Errorf("%s of other is %v, want %v", name, got, want)
		}
	}
}

func TestReasonsAreBounded(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Options{Slot: "orders"})
	for i := range 10_000 {
		reason := fmt.Sprintf("KAFKA_ERROR_%d", i)
		m.BatchFailed(sink.Unknown, reason, 1)
		m.BatchRetried(reason)
		m.EventIgnored(reason, 1)
		m.StreamDisconnect(reason)
		m.DecodeError(reason)
	}
	for _, name := range []string{"publish_errors_total", "publish_retries_total", "events_ignored_total", "stream_disconnects_total", "decode_errors_total"} {
		if n := len(family(t, m, "walpost_"+name)); n != 101 {
			t.Errorf("%s has %d series; want 100 reasons and other", name, n)
		}
	}
}

// TestSeriesBound counts samples as Prometheus stores them: a histogram has one
// per bucket, a sum and a count.
func TestSeriesBound(t *testing.T) {
	t.Parallel()
	const topics = 200
	m := busy(metrics.Options{Slot: "orders"})
	for i := range 1000 {
		m.EventsAcked(fmt.Sprintf("topic-%d", i), 1, 0)
		m.BatchAcked(fmt.Sprintf("topic-%d", i), 1, 1)
	}
	w := httptest.NewRecorder()
	m.Handler(nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	samples := 0
	for line := range strings.Lines(w.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			samples++
			if !strings.Contains(line, `slot="orders"`) {
				t.Errorf("no slot in %s", line)
			}
		}
	}
	if limit := 300 + 3*topics; w.Code != http.StatusOK || samples == 0 || samples > limit {
		t.Errorf("%d: %d series, the limit is %d", w.Code, samples, limit)
	}
}

// TestHostileLabels: a database may be named in bytes that are not UTF-8. The
// scrape must neither fail nor end the process.
func TestHostileLabels(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Options{Slot: "orders"})
	m.Observe(func() metrics.Values {
		return metrics.Values{Slot: &slot.Info{Exists: true, Database: "sh\xffop\n\"x\""}}
	})
	m.EventsAcked("\xff", 1, 0)
	m.EventIgnored("\xff", 1)
	if _, ok := family(t, m, "walpost_slot_info")["database=sh\uFFFDop\n\"x\",failover=,invalidation_reason=,plugin=,synced=,two_phase=false"]; !ok {
		t.Errorf("got %v", family(t, m, "walpost_slot_info"))
	}
}

// TestHangingSourceIsBounded: scrapes of a relay that is stuck must not pile up.
func TestHangingSourceIsBounded(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Options{Slot: "orders"})
	entered, release := make(chan struct{}), make(chan struct{})
	m.Observe(func() metrics.Values {
		entered <- struct{}{}
		<-release
		return metrics.Values{}
	})
	h := m.Handler(nil)
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 4 {
		group.Go(func() { // answered when the client has gone; the look goes on
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
		})
		<-entered
	}
	cancel()
	group.Wait()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "concurrent") {
		t.Errorf("the fifth scrape was not turned away: %d %s", w.Code, w.Body)
	}
	close(release)
}

func TestStateSets(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Options{Slot: "orders"})
	m.Observe(full)
	for name, want := range map[string]string{"walpost_state": "state=streaming", "walpost_slot_wal_status": "status=reserved"} {
		for labels, s := range family(t, m, name) {
			if got := s.GetGauge().GetValue(); got != 1 && labels == want || got != 0 && labels != want {
				t.Errorf("%s{%s} is %v", name, labels, got)
			}
		}
	}
}

// TestMissingSlot: rules must be able to tell a dropped slot from a relay that
// has not looked yet.
func TestMissingSlot(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Options{Slot: "orders"})
	present := func() *dto.Metric { return family(t, m, "walpost_slot_present")[""] }
	if s := present(); s != nil {
		t.Errorf("before the first look: %v", s)
	}
	m.Observe(func() metrics.Values { return metrics.Values{Slot: &slot.Info{}} })
	if s := present(); s == nil || s.GetGauge().GetValue() != 0 {
		t.Errorf("when it is missing: %v", s)
	}
	if n := len(family(t, m, "walpost_slot_info")); n != 0 {
		t.Errorf("slot_info has %d series of a missing slot", n)
	}
}

func TestEventsAcked(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Options{Slot: "orders"})
	m.EventsAcked("orders", 3, 3*time.Millisecond)
	m.EventsAcked("orders", 2, -time.Hour) // clocks differ
	h := family(t, m, "walpost_commit_to_ack_seconds")[""].GetHistogram()
	if h.GetSampleCount() != 5 || math.Abs(h.GetSampleSum()-0.009) > 1e-12 {
		t.Errorf("count %d, sum %v; want 5 and 0.009", h.GetSampleCount(), h.GetSampleSum())
	}
	for _, b := range h.GetBucket() {
		want := uint64(5)
		if b.GetUpperBound() < .003 {
			want = 2
		}
		if b.GetCumulativeCount() != want {
			t.Errorf("bucket %v: %d, want %d", b.GetUpperBound(), b.GetCumulativeCount(), want)
		}
	}
}

// TestConcurrentUse is for the race detector, and no count may be lost.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	const workers, rounds = 8, 500
	m := metrics.New(metrics.Options{Slot: "orders", MaxTopics: 5})
	m.Observe(full)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range rounds {
				m.EventsAcked(fmt.Sprintf("topic-%d", i%9), 1, time.Millisecond)
				m.EventIgnored("other_table", 1)
			}
			if _, err := m.Registry().Gather(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	var total float64
	for _, s := range family(t, m, "walpost_events_published_total") {
		total += s.GetCounter().GetValue()
	}
	if total != workers*rounds {
		t.Errorf("%v events counted, want %d", total, workers*rounds)
	}
}

func TestUnobservedHasCountersOnly(t *testing.T) {
	t.Parallel()
	families, err := metrics.New(metrics.Options{Slot: "orders"}).Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetType() == dto.MetricType_GAUGE && strings.HasPrefix(f.GetName(), "walpost_") && f.GetName() != "walpost_build_info" {
			t.Errorf("%s has a value before there is a relay", f.GetName())
		}
	}
}

// family is the series of one name by their labels without slot.
func family(t *testing.T, m *metrics.Metrics, name string) map[string]*dto.Metric {
	t.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]*dto.Metric{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, s := range f.Metric {
			var labels []string
			for _, l := range s.Label {
				if l.GetName() != "slot" {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			series[strings.Join(labels, ",")] = s
		}
	}
	return series
}

func BenchmarkEventsAcked(b *testing.B) {
	for name, topic := range map[string]string{"known": "orders", "other": "payments"} {
		b.Run(name, func(b *testing.B) {
			m := metrics.New(metrics.Options{Slot: "orders", MaxTopics: 1})
			m.EventsAcked("orders", 1, 0)
			b.ReportAllocs()
			for b.Loop() {
				m.EventsAcked(topic, 1, 3*time.Millisecond)
			}
		})
	}
}
