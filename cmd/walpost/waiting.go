package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/config"
	"github.com/walpost/walpost/internal/metrics"
	"github.com/walpost/walpost/internal/relay"
)

// waiting answers probes as long as there is no relay yet that could: it would
// be restarted for nothing.
type waiting struct {
	name    string // of the slot
	started time.Time
	stop    func()

	mu    sync.Mutex
	since time.Time
	err   error
}

// newWaiting listens at admin.listen until end is called.
func newWaiting(ctx context.Context, cfg *config.Config, log *zap.Logger) (*waiting, error) {
	now := time.Now()
	w := &waiting{name: cfg.Postgres.Slot, started: now, since: now, stop: func() {}}
	if cfg.Admin.Listen == "" {
		return w, nil
	}
	server, err := admin.New(admin.Options{
		Listen: cfg.Admin.Listen, Snapshot: w.snapshot, Live: func() error { return nil },
		Metrics: metrics.New(metrics.Options{Slot: w.name, Version: version, Revision: revision}), Log: log,
	})
	if err != nil {
		return nil, &cli.Exit{Code: cli.Usage, Err: err}
	}
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Run(ctx); err != nil {
			log.Warn("probes are not answered", zap.Error(err))
		}
	})
	w.stop = func() { cancel(); serving.Wait() }
	return w, nil
}

// failed notes why it still waits.
func (w *waiting) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// end frees the address.
func (w *waiting) end() {
	if w != nil {
		w.stop()
	}
}

func (w *waiting) snapshot() relay.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := relay.Snapshot{
		At: time.Now(), StartedAt: w.started, State: relay.Holding, Since: w.since, Reason: "postgres_unreachable", SlotName: w.name,
	}
	if w.err != nil {
		s.Detail = w.err.Error()
		if h, ok := errors.AsType[interface {
			error
			Hint() string
		}](w.err); ok {
			s.Hint = h.Hint()
		}
	}
	return s
}
