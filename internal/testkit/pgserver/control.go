package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/walpost/walpost/internal/testkit/proc"
)

// stopSignals are what the postmaster understands.
var stopSignals = map[Mode]syscall.Signal{
	Smart:     syscall.SIGTERM,
	Fast:      syscall.SIGINT,
	Immediate: syscall.SIGQUIT,
}

// closeTimeout is how long Close waits for each of its attempts.
const closeTimeout = 5 * time.Second

// PID returns the postmaster's process id, 0 if the server does not run.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return 0
	}
	return s.process.PID()
}

func (s *Server) running() bool { return s.process != nil && s.process.Running() }

// StartAgain starts the stopped or killed server on the same data and port, and
// returns when it answers queries.
//
// After a kill the old postmaster's lock file is still there, and a new one
// refuses to start as long as anything of the old one is alive; so it tries
// again until ctx ends.
func (s *Server) StartAgain(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running() {
		return nil
	}
	for {
		err := s.startOnce(ctx)
		if err == nil || !errors.Is(err, errBusy) {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

var errBusy = errors.New("the previous server is not gone yet")

func (s *Server) startOnce(ctx context.Context) error {
	log := s.path("postgres.log")
	before := size(log)
	process, err := proc.Start(proc.Spec{
		Path: filepath.Join(s.binaries.Dir, "postgres"),
		Args: []string{"-D", s.path("data")},
		Env:  proc.Env(),
		Log:  log,
		User: s.user,
		// The postmaster takes its children along, and kills after 5 s what
		// does not go.
		DeathSignal: syscall.SIGQUIT,
	})
	if err != nil {
		return err
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.answers(ctx)
		if err == nil {
			s.process = process
			return nil
		}
		select {
		case <-tick.C:
		case <-process.Done():
			said := s.logSince(before)
			for _, busy := range []string{"lock file", "shared memory block", "Address already in use"} {
				if strings.Contains(said, busy) {
					return fmt.Errorf("%w: %s", errBusy, said)
				}
			}
			return fmt.Errorf("the server ended while starting: %w: %s", process.Err(), said)
		case <-ctx.Done():
			_, killErr := process.SignalTree(syscall.SIGKILL)
			return errors.Join(fmt.Errorf("the server does not answer: %w: %s", err, s.logSince(before)), killErr)
		}
	}
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (s *Server) logSince(offset int64) string {
	content, err := os.ReadFile(s.path("postgres.log"))
	if err != nil || int64(len(content)) < offset {
		return "(no log)"
	}
	return tail(content[offset:], 20)
}

// Stop stops the server and returns when it is gone. When ctx ends first the
// server goes on stopping.
func (s *Server) Stop(ctx context.Context, mode Mode) error {
	s.mu.Lock()
	process := s.process
	s.mu.Unlock()
	if process == nil {
		return nil
	}
	sig, ok := stopSignals[mode]
	if !ok {
		return fmt.Errorf("stop PostgreSQL: unknown mode %q", mode)
	}
	if err := process.Signal(sig); err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	if err := process.Wait(ctx); err != nil {
		return fmt.Errorf("stop PostgreSQL (%s): %w", mode, err)
	}
	return nil
}

// Restart stops the server and starts it again.
func (s *Server) Restart(ctx context.Context, mode Mode) error {
	if err := s.Stop(ctx, mode); err != nil {
		return err
	}
	return s.StartAgain(ctx)
}

// Kill9 kills the postmaster and all its children with SIGKILL and returns when
// they are gone.
func (s *Server) Kill9(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	pids, err := s.process.SignalTree(syscall.SIGKILL)
	if err != nil {
		return fmt.Errorf("kill PostgreSQL: %w", err)
	}
	if err := s.process.Wait(ctx); err != nil {
		return err
	}
	return proc.WaitGone(ctx, pids)
}

// Pause freezes all processes of the server; connections stay open.
func (s *Server) Pause() error { return s.signalAll(syscall.SIGSTOP) }

// Resume lets a frozen server go on.
func (s *Server) Resume() error { return s.signalAll(syscall.SIGCONT) }

func (s *Server) signalAll(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	_, err := s.process.SignalTree(sig)
	return err
}

// Close stops the server, whatever state it is in, and deletes its data.
func (s *Server) Close() error {
	var err error
	if s.PID() != 0 {
		_ = s.Resume()
		// Fast waits for replication clients, which may be gone without the
		// server knowing; so immediate follows.
		err = s.stopWithin(Fast)
		if err != nil {
			err = s.stopWithin(Immediate)
		}
		if err != nil {
			ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
			defer cancel()
			err = s.Kill9(ctx)
		}
	}
	if s.reserved != nil {
		s.reserved.Release()
		s.reserved = nil
	}
	return errors.Join(err, s.dir.Remove())
}

func (s *Server) stopWithin(mode Mode) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return s.Stop(ctx, mode)
}
