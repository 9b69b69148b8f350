package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/metrics"
	"github.com/walpost/walpost/internal/relay"
)

const (
	// patience with a look at the relay, which takes microseconds. A probe whose
	// own timeout is shorter gets no answer, which means the same to it.
	patience = 2 * time.Second
	grace    = time.Second // of answers under way at the end
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
	alive    *look[error]
	snapshot *look[relay.Snapshot]
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
	s := &Server{
		opt: opt, log: opt.Log,
		alive:    &look[error]{ask: opt.Live, patience: patience},
		snapshot: &look[relay.Snapshot]{ask: opt.Snapshot, patience: patience},
	}
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
		ErrorLog:          s.stdlog(),
	}
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run serves until ctx ends; answers under way get a second to finish.
func (s *Server) Run(ctx context.Context) error {
	s.log.Info("admin listener", zap.String("address", s.Addr()))
	closed := make(chan struct{}) // closed by the function below
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if s.http.Shutdown(closing) != nil {
			_ = s.http.Close()
		}
	})
	err := s.http.Serve(s.listener)
	if !stop() {
		<-closed // Serve returns as soon as Shutdown begins
	}
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		_ = s.http.Close()
		return fmt.Errorf("admin listener: %w", err)
	}
	return nil
}

// Close frees the address of a server that is not run.
func (s *Server) Close() error { return s.listener.Close() }

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for path, p := range map[string]probe{
		"/livez":       s.live,
		"/healthz":     s.live,
		"/readyz":      s.ready,
		"/startupz":    s.started,
		"/status.json": s.status,
		// Manifests written for Debezium Server ask here.
		"/q/health/live":  probe(s.live).quarkus,
		"/q/health/ready": probe(s.ready).quarkus,
	} {
		mux.Handle("GET "+path, p)
	}
	mux.Handle("GET /metrics", s.opt.Metrics.Handler(s.stdlog()))
	mux.HandleFunc("/", s.nothing)
	return mux
}

// stdlog is the logger in the form that net/http and the metrics handler take.
func (s *Server) stdlog() *log.Logger {
	l, err := zap.NewStdLogAt(s.log.Named("admin"), zap.WarnLevel)
	if err != nil { // only for a level that does not exist
		return log.New(io.Discard, "", 0)
	}
	return l
}
