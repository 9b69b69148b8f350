package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/walpost/walpost/internal/testkit/proc"
)

// relay is what is tested. start runs it until kill or stop; if it ends by
// itself it is started again.
type relay interface {
	prepare(ctx context.Context, r *rig) error // once, before the first start
	start(ctx context.Context) error
	kill(ctx context.Context) error // SIGKILL
	stop(ctx context.Context) error // SIGTERM
	ends() (n int, why string)      // how often it ended by itself
	tail() string                   // of its log
	close() error
}

const (
	restartDelay = 500 * time.Millisecond
	stopPatience = 30 * time.Second
)

// command is a relay that is one process, with children if it has some.
type command struct {
	path string
	args []string
	env  []string
	log  string

	mu      sync.Mutex
	process *proc.Process
	wanted  bool
	ended   int
	why     string
	tasks   sync.WaitGroup
}

func (c *command) start(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = true
	return c.launch()
}

// launch starts a process; c.mu is held.
func (c *command) launch() error {
	process, err := proc.Start(proc.Spec{
		Path: c.path, Args: c.args, Env: c.env, Log: c.log,
		User: proc.Self(), DeathSignal: syscall.SIGKILL,
	})
	if err != nil {
		return err
	}
	c.process = process
	c.tasks.Go(func() { c.watch(process) })
	return nil
}

// watch starts the next process if this one ends by itself.
func (c *command) watch(process *proc.Process) {
	<-process.Done()
	c.mu.Lock()
	own := c.wanted && c.process == process
	if own {
		c.ended++
		c.why = fmt.Sprint(process.Err())
	}
	c.mu.Unlock()
	if !own {
		return
	}
	time.Sleep(restartDelay)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted && c.process == process {
		if err := c.launch(); err != nil {
			c.wanted, c.why = false, err.Error()
		}
	}
}

func (c *command) kill(ctx context.Context) error { return c.end(ctx, syscall.SIGKILL) }

func (c *command) stop(ctx context.Context) error {
	soft, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	if err := c.end(soft, syscall.SIGTERM); err != nil {
		return errors.Join(err, c.kill(ctx))
	}
	return nil
}

func (c *command) end(ctx context.Context, sig syscall.Signal) error {
	c.mu.Lock()
	c.wanted = false
	process := c.process
	c.mu.Unlock()
	if process == nil {
		return nil
	}
	pids, err := process.SignalTree(sig)
	if err != nil {
		return fmt.Errorf("end the relay: %w", err)
	}
	if err := process.Wait(ctx); err != nil {
		return fmt.Errorf("end the relay by %s: %w", sig, err)
	}
	return proc.WaitGone(ctx, pids)
}

func (c *command) ends() (int, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended, c.why
}

func (c *command) tail() string { return tailOf(c.log) }

func (c *command) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	err := c.kill(ctx)
	c.tasks.Wait()
	return err
}

func tailOf(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// execRelay is any command.
type execRelay struct {
	command
	text string
}

func (e *execRelay) prepare(_ context.Context, r *rig) error {
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	e.path, e.log = "/bin/sh", r.file("relay.log")
	// A process starts in the root folder; the command is meant from here.
	e.args = []string{"-c", "cd '" + strings.ReplaceAll(folder, "'", `'\''`) + "' || exit\n" + e.text}
	at := r.recorder.addr()
	e.env = append(os.Environ(),
		"PGHOST="+at.IP.String(), fmt.Sprintf("PGPORT=%d", at.Port), "PGUSER=postgres", "PGDATABASE="+database, "PGSSLMODE=disable",
		"DATABASE_URL="+r.relayDSN(),
		"KAFKA_BOOTSTRAP="+strings.Join(r.kafka(), ","),
		"OUTBOX_SLOT="+r.slot, "OUTBOX_PUBLICATION="+r.slot, "OUTBOX_TABLE="+table,
		"OUTBOX_STATE_DIR="+r.dir,
	)
	return nil
}

// walpostRelay is the product's own binary, with defaults.
type walpostRelay struct {
	command
	binary string
}

func (w *walpostRelay) prepare(ctx context.Context, r *rig) error {
	common := []string{"--dsn", r.relayDSN(), "--slot", r.slot, "--publication", r.slot, "--table", table}
	_, err := proc.Run(ctx, proc.Self(), proc.Env(), w.binary, append([]string{"init"}, common...)...)
	if err != nil {
		return fmt.Errorf("walpost init: %w", err)
	}
	w.path, w.log, w.env = w.binary, r.file("relay.log"), proc.Env()
	w.args = append([]string{"run", "--brokers", strings.Join(r.kafka(), ","), "--admin-listen", "off", "--log-format", "json"}, common...)
	return nil
}
