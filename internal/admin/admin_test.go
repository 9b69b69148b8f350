package admin

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/walpost/walpost/internal/metrics"
	"github.com/walpost/walpost/internal/relay"
	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func ptr[T any](v T) *T { return &v }

func setup(t *testing.T, snapshot relay.Snapshot, live error) *Server {
	t.Helper()
	s, err := New(Options{
		Listen:   "127.0.0.1:0",
		Snapshot: func() relay.Snapshot { return snapshot },
		Live:     func() error { return live },
		Metrics:  metrics.New(metrics.Options{Slot: "orders"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// ask calls the handler as a client at remote would.
func ask(s *Server, path, remote string) (int, string) {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.RemoteAddr = remote
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

const here, elsewhere = "127.0.0.1:5000", "192.0.2.1:5000"

func TestReadyz(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		snapshot relay.Snapshot
		path     string
		code     int
		body     string
	}{
		"ready": {
			relay.Snapshot{State: relay.Streaming, Ready: true, StandbyReady: true, SlotName: "orders", Since: since}, "/readyz", 200,
			`{"ready":true,"state":"streaming","slot":"orders","reason":null,"since":"2026-01-02T03:04:05Z"}`,
		},
		"holding": {
			relay.Snapshot{State: relay.Holding, Reason: "poison", SlotName: "orders", Since: since, Poison: &relay.Poison{EventID: "secret-id"}}, "/readyz", 503,
			`{"ready":false,"state":"holding","slot":"orders","reason":"poison","since":"2026-01-02T03:04:05Z"}`,
		},
		"waiting": {
			relay.Snapshot{State: relay.WaitingForSlot, Reason: "waiting_for_slot", StandbyReady: true, SlotName: "orders", Since: since, Slot: &slot.Info{ActivePID: ptr(int32(4711))}}, "/readyz", 503,
			`{"ready":false,"state":"waiting_for_slot","slot":"orders","reason":"waiting_for_slot","holder_pid":4711,"since":"2026-01-02T03:04:05Z"}`,
		},
		"standby": {
			relay.Snapshot{State: relay.WaitingForSlot, Reason: "waiting_for_slot", StandbyReady: true, SlotName: "orders", Since: since}, "/readyz?standby=ok", 200,
			`{"ready":true,"state":"waiting_for_slot","slot":"orders","reason":"waiting_for_slot","since":"2026-01-02T03:04:05Z"}`,
		},
		"starting": {
			relay.Snapshot{State: relay.Starting, SlotName: "orders", Since: since}, "/readyz", 503,
			`{"ready":false,"state":"starting","slot":"orders","reason":"starting","since":"2026-01-02T03:04:05Z"}`,
		},
		"quarkus": {
			relay.Snapshot{State: relay.Starting, SlotName: "orders", Since: since}, "/q/health/ready", 503,
			`{"checks":[{"data":{"ready":false,"state":"starting","slot":"orders","reason":"starting","since":"2026-01-02T03:04:05Z"},"name":"walpost","status":"DOWN"}],"status":"DOWN"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, body := ask(setup(t, test.snapshot, nil), test.path, elsewhere)
			if code != test.code || strings.TrimSpace(body) != test.body {
				t.Errorf("got %d %s\nwant %d %s", code, body, test.code, test.body)
			}
		})
	}
}

func TestLivezDependsOnTheLoopsAlone(t *testing.T) {
	t.Parallel()
	broken := relay.Snapshot{State: relay.Holding, SlotErr: errors.New("postgres is gone")}
	for _, path := range []string{"/livez", "/healthz", "/q/health/live"} {
		if code, body := ask(setup(t, broken, nil), path, elsewhere); code != 200 {
			t.Errorf("%s: %d %s", path, code, body)
		}
		code, body := ask(setup(t, broken, errors.New("the pump loop has not turned for 61s")), path, elsewhere)
		if code != 503 || !strings.Contains(body, "pump") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

func TestLivezAnswersWhenTheStatusIsLocked(t *testing.T) {
	t.Parallel()
	s := setup(t, relay.Snapshot{}, nil)
	release := make(chan struct{})
	defer close(release)
	s.opt.Live = func() error { <-release; return nil }
	if code, body := ask(s, "/livez", here); code != 503 || !strings.Contains(body, "locked") {
		t.Errorf("%d %s", code, body)
	}
}

func TestStatusIsForThisMachineOnly(t *testing.T) {
	t.Parallel()
	s := setup(t, relay.Snapshot{SlotName: "orders"}, nil)
	if code, _ := ask(s, "/status.json", here); code != 200 {
		t.Errorf("from here: %d", code)
	}
	if code, _ := ask(s, "/status.json", "[::1]:5000"); code != 200 {
		t.Errorf("from ::1: %d", code)
	}
	if code, body := ask(s, "/status.json", elsewhere); code != 403 || strings.Contains(body, "orders") {
		t.Errorf("from elsewhere: %d %s", code, body)
	}
	if code, _ := ask(s, "/nothing", here); code != 404 {
		t.Errorf("unknown path: %d", code)
	}
}

// full is a snapshot with everything in it.
func full() relay.Snapshot {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return relay.Snapshot{
		At: at, StartedAt: at, Instance: "i", State: relay.Holding, Since: at, Reason: "poison", Detail: "detail", Hint: "hint",
		SlotName: "orders", SystemID: "7000", Timeline: 1, SlotStreaming: true, Received: 0x300, LowWater: 0x200, Confirmed: 0x100,
		LastServerMessage: at, LastEventCommit: at, OldestPending: at, Age: 1500 * time.Millisecond, AgeKnown: true, AgeExact: true,
		ClockSkew: time.Millisecond, SkewKnown: true, Pending: 2, EventsReceived: 7, EventsPublished: 5, PublishedSec: 2.5,
		Ignored: map[string]uint64{"not_insert": 1},
		Sink: sink.Status{
			InFlightRecords: 2, InFlightBytes: 8320, InFlightPartitions: 1, LimitBytes: 1 << 25, LastAck: at, HoldCount: 1,
			Holds: []sink.Hold{{Topic: "t", Partition: 3, Class: sink.Poison, Reason: "MESSAGE_TOO_LARGE", Since: at, Attempts: 2,
				Err: &sink.DeliveryError{Topic: "t", Partition: 3, Reason: "MESSAGE_TOO_LARGE", Way: "make it smaller"}}},
		},
		Poison: &relay.Poison{EventID: "e", Table: "public.outbox_events", CommitLSN: 0x180, Ordinal: 4, Topic: "t", Partition: 3, Reason: "too large", Since: at},
		Slot: &slot.Info{Exists: true, Active: true, ActivePID: ptr(int32(9)), HolderApplication: "walpost/orders/i", WALStatus: "reserved",
			CurrentLSN: 0x400, LagBytes: ptr(int64(768)), RetainedBytes: ptr(int64(1024))},
		SlotAt: at, SlotTook: time.Millisecond, PublicationOK: ptr(true),
	}
}

func TestStatusJSONIsAContract(t *testing.T) {
	t.Parallel()
	for file, snapshot := range map[string]relay.Snapshot{"testdata/status-full.json": full(), "testdata/status-empty.json": {SlotName: "orders"}} {
		_, body := ask(setup(t, snapshot, nil), "/status.json", here)
		var parsed any
		if err := json.Unmarshal([]byte(body), &parsed); err != nil {
			t.Fatal(err)
		}
		pretty, err := json.MarshalIndent(parsed, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		pretty = append(pretty, '\n')
		if *update {
			if err := os.WriteFile(file, pretty, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(pretty) != string(want) {
			t.Errorf("%s differs; -update if a field was added:\n%s", file, pretty)
		}
	}
}

func TestMetricsComeFromTheSnapshot(t *testing.T) {
	t.Parallel()
	s := setup(t, full(), nil)
	const want = `# HELP walpost_oldest_unpublished_age_seconds Age of the oldest committed event that is not published, by PostgreSQL's clock; an upper bound while cut off.
# TYPE walpost_oldest_unpublished_age_seconds gauge
walpost_oldest_unpublished_age_seconds{slot="orders"} 1.5
# HELP walpost_slot_retained_wal_bytes WAL that the slot holds back; absent when the slot is lost.
# TYPE walpost_slot_retained_wal_bytes gauge
walpost_slot_retained_wal_bytes{slot="orders"} 1024
`
	err := testutil.GatherAndCompare(s.opt.Metrics.Registry(), strings.NewReader(want),
		"walpost_oldest_unpublished_age_seconds", "walpost_slot_retained_wal_bytes")
	if err != nil {
		t.Error(err)
	}
	code, body := ask(s, "/metrics", elsewhere)
	if code != 200 || strings.Contains(body, `"e"`) || strings.Contains(body, "public.outbox_events") {
		t.Errorf("%d; the metrics must not name events or tables", code)
	}
	if !strings.Contains(body, `walpost_state{slot="orders",state="holding"} 1`) || !strings.Contains(body, `walpost_state{slot="orders",state="streaming"} 0`) {
		t.Error("the state set is wrong")
	}
}

func TestRunServesAndStops(t *testing.T) {
	t.Parallel()
	s := setup(t, full(), nil)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	response, err := http.Get("http://" + s.Addr() + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	if response.StatusCode != 200 {
		t.Errorf("status %d", response.StatusCode)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAddressInUseSaysWhatToDo(t *testing.T) {
	t.Parallel()
	first := setup(t, full(), nil)
	_, err := New(Options{Listen: first.Addr(), Metrics: metrics.New(metrics.Options{})})
	var listen *ListenError
	if !errors.As(err, &listen) || !strings.Contains(listen.Hint(), "admin.listen") {
		t.Errorf("got %v", err)
	}
}
