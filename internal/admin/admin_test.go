package admin

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/walpost/walpost/internal/metrics"
	"github.com/walpost/walpost/internal/relay"
	"github.com/walpost/walpost/slot"
)

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
	r.RemoteAddr, r.Host = remote, "localhost:8642"
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
			relay.Snapshot{State: relay.Holding, Reason: "poison", Detail: "event secret-id", Hint: "secret", SlotName: "orders", Since: since, Poison: &relay.Poison{EventID: "secret-id"}}, "/readyz", 503,
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
		"catching up": {
			relay.Snapshot{State: relay.CatchingUp, Ready: true, SlotName: "orders", Since: since}, "/readyz", 200,
			`{"ready":true,"state":"catching_up","slot":"orders","reason":null,"since":"2026-01-02T03:04:05Z"}`,
		},
		"connected and silent": {
			relay.Snapshot{State: relay.Streaming, Reason: "postgres_silent", SlotName: "orders", Since: since}, "/readyz", 503,
			`{"ready":false,"state":"streaming","slot":"orders","reason":"postgres_silent","since":"2026-01-02T03:04:05Z"}`,
		},
		"draining": {
			relay.Snapshot{State: relay.Draining, SlotName: "orders", Since: since}, "/readyz", 503,
			`{"ready":false,"state":"draining","slot":"orders","reason":"draining","since":"2026-01-02T03:04:05Z"}`,
		},
		"stopped": {
			relay.Snapshot{State: relay.Stopped, Reason: "slot_lost", SlotName: "orders", Since: since}, "/readyz", 503,
			`{"ready":false,"state":"stopped","slot":"orders","reason":"slot_lost","since":"2026-01-02T03:04:05Z"}`,
		},
		"holding is no standby": {
			relay.Snapshot{State: relay.Holding, Reason: "poison", SlotName: "orders", Since: since}, "/readyz?standby=ok", 503,
			`{"ready":false,"state":"holding","slot":"orders","reason":"poison","since":"2026-01-02T03:04:05Z"}`,
		},
		"quarkus up": {
			relay.Snapshot{State: relay.Streaming, Ready: true, SlotName: "orders", Since: since}, "/q/health/ready", 200,
			`{"checks":[{"data":{"ready":true,"state":"streaming","slot":"orders","reason":null,"since":"2026-01-02T03:04:05Z"},"name":"walpost","status":"UP"}],"status":"UP"}`,
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

// TestNothingHangs: a deadlock in the relay shows as not live and not ready.
func TestNothingHangs(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	calls := make(chan string, 100)
	s := setup(t, relay.Snapshot{}, nil)
	s.alive = &look[error]{ask: func() error { calls <- "live"; <-release; return nil }, patience: time.Millisecond}
	s.snapshot = &look[relay.Snapshot]{ask: func() relay.Snapshot { calls <- "snapshot"; <-release; return relay.Snapshot{} }, patience: time.Millisecond}
	for range 3 {
		for _, path := range []string{"/livez", "/healthz", "/q/health/live", "/readyz", "/q/health/ready", "/status.json"} {
			if code, body := ask(s, path, here); code != 503 || !strings.Contains(body, "status_locked") {
				t.Errorf("%s: %d %s", path, code, body)
			}
		}
	}
	if code, body := ask(s, "/startupz", here); code != 200 {
		t.Errorf("/startupz: %d %s", code, body)
	}
	if n := len(calls); n != 2 {
		t.Errorf("%d calls hang; want one for the loops and one for the snapshot", n)
	}
}

// TestLivezNeedsNoSnapshot: whatever the snapshot waits for, the loops may turn.
func TestLivezNeedsNoSnapshot(t *testing.T) {
	t.Parallel()
	s := setup(t, relay.Snapshot{}, nil)
	s.snapshot = &look[relay.Snapshot]{ask: func() relay.Snapshot { t.Error("asked for the snapshot"); return relay.Snapshot{} }, patience: time.Minute}
	for _, path := range []string{"/livez", "/healthz", "/q/health/live", "/startupz"} {
		if code, body := ask(s, path, elsewhere); code != 200 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

func TestClientThatLeavesIsNoFault(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	s := setup(t, relay.Snapshot{}, nil)
	s.alive = &look[error]{ask: func() error { <-release; return nil }, patience: time.Minute}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/q/health/live", nil))
	if w.Code != 503 {
		t.Errorf("got %d", w.Code)
	}
}

func TestLocal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		remote, local, host string
		header              http.Header
		code                int
	}{
		"loopback":            {here, "127.0.0.1:8642", "localhost:8642", nil, 200},
		"loopback by address": {here, "127.0.0.1:8642", "127.0.0.1:8642", nil, 200},
		"loopback 6":          {"[::1]:5000", "[::1]:8642", "[::1]:8642", nil, 200},
		"mapped":              {"[::ffff:127.0.0.1]:5000", "[::ffff:127.0.0.1]:8642", "localhost", nil, 200},
		"own address":         {"192.0.2.7:5000", "192.0.2.7:8642", "192.0.2.7:8642", nil, 200},
		"configured name":     {here, "127.0.0.1:8642", "Relay.test:8642", nil, 200},
		"elsewhere":           {elsewhere, "192.0.2.7:8642", "192.0.2.7:8642", nil, 403},
		"elsewhere, no local": {elsewhere, "", "localhost:8642", nil, 403},
		"rebound name":        {here, "127.0.0.1:8642", "attacker.test:8642", nil, 403},
		"no name":             {here, "127.0.0.1:8642", "", nil, 403},
		"sidecar":             {here, "127.0.0.1:8642", "10.0.0.9:8642", http.Header{"X-Forwarded-For": {"10.1.1.1"}}, 403},
		"proxy":               {here, "127.0.0.1:8642", "localhost:8642", http.Header{"Forwarded": {"for=10.1.1.1"}}, 403},
		"socket":              {"@", "", "localhost", nil, 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, relay.Snapshot{SlotName: "orders", Detail: "event e", State: relay.Holding}, nil)
			s.opt.Listen = "relay.test:8642"
			for _, path := range []string{"/status.json", "/readyz"} {
				r := httptest.NewRequest(http.MethodGet, path, nil)
				r.RemoteAddr, r.Host = test.remote, test.host
				for k, v := range test.header {
					r.Header[k] = v
				}
				if local, err := net.ResolveTCPAddr("tcp", test.local); err == nil && test.local != "" {
					r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local)))
				}
				w := httptest.NewRecorder()
				s.http.Handler.ServeHTTP(w, r)
				if path == "/status.json" && w.Code != test.code {
					t.Errorf("got %d, want %d", w.Code, test.code)
				}
				if named := strings.Contains(w.Body.String(), "event e"); named != (test.code == 200) {
					t.Errorf("%s: the detail is in the answer: %v: %s", path, named, w.Body)
				}
			}
		})
	}
}

func TestOtherPathsAndMethods(t *testing.T) {
	t.Parallel()
	s := setup(t, relay.Snapshot{SlotName: "orders"}, nil)
	for _, path := range []string{"/", "/nothing", "/livez/", "/debug/pprof/", "/status"} {
		code, body := ask(s, path, here)
		if want := `{"endpoints":["/livez","/readyz","/startupz","/metrics","/status.json"],"error":"not found"}`; code != 404 || strings.TrimSpace(body) != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	for _, test := range []struct {
		method string
		code   int
	}{{http.MethodHead, 200}, {http.MethodPost, 405}, {http.MethodDelete, 405}} {
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, httptest.NewRequest(test.method, "/livez", nil))
		if w.Code != test.code || test.code == 405 && w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d %v", test.method, w.Code, w.Header())
		}
	}
}

func TestStartupz(t *testing.T) {
	t.Parallel()
	code, body := ask(setup(t, relay.Snapshot{State: relay.Holding}, errors.New("stuck")), "/startupz", elsewhere)
	if code != 200 || strings.TrimSpace(body) != `{"started":true}` {
		t.Errorf("%d %s", code, body)
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

// TestAnswersFinishBeforeRunEnds: the process ends when Run has returned.
func TestAnswersFinishBeforeRunEnds(t *testing.T) {
	t.Parallel()
	s := setup(t, full(), nil)
	entered, release := make(chan struct{}), make(chan struct{})
	s.snapshot = &look[relay.Snapshot]{patience: time.Minute, ask: func() relay.Snapshot {
		close(entered)
		<-release
		return full()
	}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answered := make(chan error, 1)
	go func() {
		response, err := client.Get("http://" + s.Addr() + "/status.json")
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		answered <- err
	}()
	<-entered
	cancel()
	for { // until nobody new is let in
		conn, err := net.Dial("tcp", s.Addr())
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	select {
	case err := <-ended:
		t.Errorf("Run returned %v while an answer was under way", err)
		ended <- err
	default:
	}
	close(release)
	if err := <-answered; err != nil {
		t.Error(err)
	}
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
