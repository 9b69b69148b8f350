package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/walpost/walpost/internal/testkit/debezium"
)

// debeziumRelay is Debezium in a Connect worker. A task that has failed is started
// again with its worker, as somebody who watches it would.
type debeziumRelay struct {
	home      string
	connector map[string]string // wins over debezium.Outbox
	worker    map[string]string

	opts debezium.Options

	mu      sync.Mutex // held while the worker is started or ended
	process *debezium.Process
	cancel  context.CancelFunc
	watcher sync.WaitGroup

	told  sync.Mutex
	ended int
	why   string
}

func (d *debeziumRelay) prepare(_ context.Context, r *rig) error {
	connector, err := debezium.Outbox(r.relayDSN(), r.slot, r.slot, table)
	if err != nil {
		return err
	}
	maps.Copy(connector, d.connector)
	worker := map[string]string{
		// Saved once a minute by default, and the slot confirmed with it: each
		// scenario would take minutes.
		"offset.flush.interval.ms": "1000",
	}
	maps.Copy(worker, d.worker)
	d.opts = debezium.Options{
		Connector: connector, Worker: worker, Brokers: r.kafka(), Dir: r.dir, Home: d.home, Heap: "512m", Log: r.kit.log,
	}
	return nil
}

func (d *debeziumRelay) start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	if d.process == nil {
		d.process, err = debezium.Start(ctx, d.opts)
	} else {
		err = d.process.StartAgain(ctx)
	}
	if err != nil {
		return err
	}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.cancel = cancel
	d.watcher.Go(func() { d.watch(watching) })
	return nil
}

// watch starts the worker again when it ends or its task fails.
func (d *debeziumRelay) watch(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		why := "the worker ended"
		if d.process.Running() {
			status, err := d.process.Status(ctx)
			if err != nil || status.State != debezium.StateFailed {
				continue
			}
			why = cause(status.Trace)
		}
		d.told.Lock()
		d.ended++
		d.why = why
		d.told.Unlock()
		if err := d.again(ctx); err != nil && ctx.Err() == nil {
			d.told.Lock()
			d.why = err.Error()
			d.told.Unlock()
		}
	}
}

func (d *debeziumRelay) again(ctx context.Context) error {
	if err := d.process.Kill(ctx); err != nil {
		return err
	}
	return d.process.StartAgain(ctx)
}

// cause is the last cause of a Java stack trace.
func cause(trace string) string {
	lines := strings.Split(strings.TrimSpace(trace), "\n")
	found := lines[0]
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, "Caused by: "); ok {
			found = text
		}
	}
	return found
}

func (d *debeziumRelay) kill(ctx context.Context) error {
	return d.end(func(p *debezium.Process) error { return p.Kill(ctx) })
}

func (d *debeziumRelay) stop(ctx context.Context) error {
	return d.end(func(p *debezium.Process) error {
		soft, cancel := context.WithTimeout(ctx, stopPatience)
		defer cancel()
		if err := p.Stop(soft); err != nil {
			return errors.Join(fmt.Errorf("end the relay by SIGTERM: %w", err), p.Kill(ctx))
		}
		return nil
	})
}

func (d *debeziumRelay) end(how func(*debezium.Process) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
		d.watcher.Wait()
		d.cancel = nil
	}
	if d.process == nil {
		return nil
	}
	return how(d.process)
}

func (d *debeziumRelay) ends() (int, string) {
	d.told.Lock()
	defer d.told.Unlock()
	return d.ended, d.why
}

func (d *debeziumRelay) tail() string {
	if d.process == nil {
		return "(never started)"
	}
	return d.process.LogTail()
}

func (d *debeziumRelay) close() error {
	return d.end(func(p *debezium.Process) error { return p.Close() })
}
