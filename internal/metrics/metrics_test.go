package metrics_test

import (
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

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
	for i := range 1000 {
		m.EventsAcked(fmt.Sprintf("topic-%d", i), 1, 0)
	}
	n, err := testutil.GatherAndCount(m.Registry(), "walpost_events_published_total")
	if err != nil || n != 11 {
		t.Errorf("%d series, %v; want 10 topics and other", n, err)
	}
}

func BenchmarkEventsAcked(b *testing.B) {
	m := metrics.New(metrics.Options{Slot: "orders"})
	b.ReportAllocs()
	for range b.N {
		m.EventsAcked("orders", 1, 3*time.Millisecond)
	}
}
