package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/metrics"
	"github.com/walpost/walpost/internal/relay"
)

// Options of a Server; all but Log are required.
type Options struct {
	Listen   string // host:port; an empty host is every address
	Snapshot func() relay.Snapshot
	Live     func() error // nil when the loops turn
	Metrics  *metrics.Metrics
	Log      *zap.Logger
}

// Server is the admin listener.
type Server struct {
	opt      Options
	log      *zap.Logger
	listener net.Listener
	http     *http.Server
}

// ListenError says that the address cannot be used.
type ListenError struct {
	Address string
	Err     error
}

func (e *ListenError) Error() string {
	return fmt.Sprintf("admin listener %s: %v", e.Address, e.Err)
}

// Hint says what to do.
func (e *ListenError) Hint() string {
	return "set admin.listen (--admin-listen, WALPOST_ADMIN_LISTEN) to a free address, or to off"
}

// Unwrap gives the cause.
func (e *ListenError) Unwrap() error { return e.Err }

// New listens, so that a bad address is an error before anything starts.
func New(opt Options) (*Server, error) {
	if opt.Log == nil {
		opt.Log = zap.NewNop()
	}
	s := &Server{opt: opt, log: opt.Log}
	opt.Metrics.Observe(func() metrics.Values { return values(opt.Snapshot()) })
	listener, err := net.Listen("tcp", opt.Listen)
	if err != nil {
		return nil, &ListenError{opt.Listen, err}
	}
	s.listener = listener
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
	}
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	s.log.Info("admin listener", zap.String("address", s.Addr()))
	stop := context.AfterFunc(ctx, func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if s.http.Shutdown(closing) != nil {
			_ = s.http.Close()
		}
	})
	defer stop()
	if err := s.http.Serve(s.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin listener: %w", err)
	}
	return nil
}

// Close frees the address of a server that is not run.
func (s *Server) Close() error { return s.listener.Close() }

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	get := func(path string, h http.HandlerFunc) { mux.HandleFunc("GET "+path, h) }
	get("/livez", s.live)
	get("/healthz", s.live)
	get("/readyz", s.ready)
	get("/startupz", func(w http.ResponseWriter, _ *http.Request) {
		// The configuration was good, or nobody would listen here.
		answer(w, http.StatusOK, map[string]any{"started": true})
	})
	mux.Handle("GET /metrics", s.opt.Metrics.Handler())
	get("/status.json", local(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, StatusFrom(s.opt.Snapshot()))
	}))
	// Manifests written for Debezium Server ask here.
	get("/q/health/live", quarkus(s.live))
	get("/q/health/ready", quarkus(s.ready))
	return mux
}

func (s *Server) live(w http.ResponseWriter, r *http.Request) {
	// A deadlock would hang the look itself, and must show as not live.
	result := make(chan error, 1)
	go func() { result <- s.opt.Live() }()
	timer := time.NewTimer(2 * time.Second)
	defer timer.Stop()
	var err error
	select {
	case err = <-result:
	case <-timer.C:
		err = errors.New("the status is locked")
	case <-r.Context().Done():
		return
	}
	if err != nil {
		answer(w, http.StatusServiceUnavailable, map[string]any{"live": false, "reason": err.Error()})
		return
	}
	answer(w, http.StatusOK, map[string]any{"live": true})
}

// readiness is the body of /readyz.
type readiness struct {
	Ready     bool      `json:"ready"`
	State     string    `json:"state"`
	Slot      string    `json:"slot"`
	Reason    *string   `json:"reason"`
	HolderPID *int32    `json:"holder_pid,omitempty"`
	Since     time.Time `json:"since"`
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	snapshot := s.opt.Snapshot()
	body := readiness{
		Ready: snapshot.Ready, State: string(snapshot.State), Slot: snapshot.SlotName,
		Reason: text(snapshot.Reason), Since: snapshot.Since.UTC(),
	}
	if r.URL.Query().Get("standby") == "ok" {
		body.Ready = snapshot.StandbyReady
	}
	if snapshot.State == relay.WaitingForSlot && snapshot.Slot != nil {
		body.HolderPID = snapshot.Slot.ActivePID
	}
	if !body.Ready && body.Reason == nil {
		body.Reason = text(string(snapshot.State))
	}
	code := http.StatusOK
	if !body.Ready {
		code = http.StatusServiceUnavailable
	}
	answer(w, code, body)
}

// local serves only requests from this machine.
func local(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			answer(w, http.StatusForbidden, map[string]any{"error": "served to this machine only"})
			return
		}
		h(w, r)
	}
}

// quarkus turns an answer into the form of MicroProfile Health.
func quarkus(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var c capture
		h(&c, r)
		status := "UP"
		if c.code != http.StatusOK {
			status = "DOWN"
		}
		answer(w, c.code, map[string]any{"status": status, "checks": []any{
			map[string]any{"name": "walpost", "status": status, "data": json.RawMessage(c.body)},
		}})
	}
}

type capture struct {
	code   int
	header http.Header
	body   []byte
}

func (c *capture) Header() http.Header {
	if c.header == nil {
		c.header = make(http.Header)
	}
	return c.header
}
func (c *capture) WriteHeader(code int) { c.code = code }
func (c *capture) Write(b []byte) (int, error) {
	c.body = append(c.body, b...)
	return len(b), nil
}

func answer(w http.ResponseWriter, code int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		code, data = http.StatusInternalServerError, []byte(`{"error":"cannot encode the answer"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n'))
}
