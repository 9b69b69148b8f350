package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/walpost/walpost/internal/testkit/proc"
	"github.com/walpost/walpost/internal/testkit/topic"
)

// job is one drain to do.
type job struct {
	phase, consumer, slot string
	rows, round           int
	end                   string // WAL position behind the backlog
}

// patience is how long a drain may take.
const patience = 3 * time.Minute

func (r *rig) drain(ctx context.Context, j job) (Drain, error) {
	d := Drain{
		Phase: j.phase, Consumer: j.consumer, Round: j.round, Rows: j.rows,
		CPU: nan(), WalSender: nan(), PeakRSS: nan(), Mallocs: nan(), Requests: nan(),
	}
	var err error
	switch j.consumer {
	case byReceiver:
		err = r.drainReceiver(ctx, j, &d)
	case byReader:
		err = r.drainDiscard(ctx, j, &d, "-reader")
	case byDiscard:
		var more []string
		if r.profile != "" {
			more = []string{"-cpuprofile", r.profile}
		}
		err = r.drainDiscard(ctx, j, &d, more...)
	case byKafka:
		err = r.drainKafka(ctx, j, &d)
	case byDefault:
		err = r.drainDebezium(ctx, j, &d, nil)
	case byTuned:
		err = r.drainDebezium(ctx, j, &d, tuned())
	default:
		err = errors.New("unknown consumer")
	}
	return d, err
}

// child is a consumer's process.
type child struct {
	*proc.Process
	log   string
	start time.Time
}

func (r *rig) start(path string, args ...string) (*child, error) {
	return r.startWith(nil, path, args...)
}

func (r *rig) startWith(env []string, path string, args ...string) (*child, error) {
	r.runs++
	c := &child{log: filepath.Join(r.dir.Path, fmt.Sprintf("%d-%s.log", r.runs, filepath.Base(path))), start: time.Now()}
	var err error
	c.Process, err = proc.Start(proc.Spec{
		Path: path, Args: args, Env: append(proc.Env(), env...), Log: c.log, User: proc.Self(), DeathSignal: syscall.SIGKILL,
	})
	return c, err
}

// ended is the error of a process that should still run.
func (c *child) ended() error {
	if c.Running() {
		return nil
	}
	data, _ := os.ReadFile(c.log)
	return fmt.Errorf("process ended: %w: %s", c.status(), strings.TrimSpace(string(data)))
}

func (c *child) status() error {
	if err := c.Err(); err != nil {
		return err
	}
	return errors.New("exit status 0")
}

// kill is for deferring: it does nothing after a clean stop.
func (c *child) kill() {
	_ = c.Signal(syscall.SIGKILL)
	<-c.Done()
}

// stop asks the process to end and waits.
func (c *child) stop(ctx context.Context) error {
	if err := c.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 25*time.Second)
	defer cancel()
	if err := c.Wait(ctx); err != nil {
		return err
	}
	if c.Err() != nil {
		return c.ended()
	}
	return nil
}

// usage notes CPU time and memory while the process still runs.
func (c *child) usage(d *Drain) error {
	cpu, err := cpuOf(c.PID())
	if err != nil {
		return err
	}
	rss, err := peakRSS(c.PID())
	if err != nil {
		return err
	}
	d.CPU, d.PeakRSS = cpu, rss
	return nil
}

// startReceiver lets pg_recvlogical write what a slot gives to /dev/null.
func (r *rig) startReceiver(slot string, more ...string) (*child, error) {
	return r.start(r.receiver, append([]string{"-d", r.pg.DSN(database), "--slot", slot, "--start", "-f", os.DevNull,
		"--no-loop", "-o", "proto_version=1", "-o", "publication_names=" + publication}, more...)...)
}

// drainReceiver lets pg_recvlogical write to /dev/null. It ends by itself, when
// the walsender says that it has reached the end.
func (r *rig) drainReceiver(ctx context.Context, j job, d *Drain) error {
	c, err := r.startReceiver(j.slot, "--endpos", j.end)
	if err != nil {
		return err
	}
	defer c.kill()
	sender := r.watchSender(ctx, j.slot)
	defer sender.seconds()
	d.Start = c.start
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(patience)
	var bytes uint64
	for c.Running() {
		select {
		case <-c.Done():
			d.Last = time.Now()
		case <-tick.C:
			if n, err := written(c.PID()); err == nil && n > 0 {
				if bytes == 0 {
					d.First = time.Now()
				}
				bytes = n
			}
			_ = c.usage(d) // gone: then the values of two milliseconds ago stand
		case <-timeout:
			return fmt.Errorf("not done after %v", patience)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if c.Err() != nil {
		return c.ended()
	}
	if d.Last.IsZero() {
		d.Last = time.Now()
	}
	if least := uint64(j.rows) * 300; bytes < least {
		return fmt.Errorf("pg_recvlogical wrote %d bytes, and the payloads alone have about %d", bytes, least)
	}
	d.WalSender = sender.seconds()
	return nil
}

// drainDiscard runs our program, which says itself when it is through.
func (r *rig) drainDiscard(ctx context.Context, j job, d *Drain, more ...string) error {
	result := filepath.Join(r.dir.Path, j.slot+".json")
	args := []string{"-dsn", r.pg.DSN(database), "-slot", j.slot, "-publication", publication, "-events", fmt.Sprint(j.rows), "-result", result}
	c, err := r.start(r.discard, append(args, more...)...)
	if err != nil {
		return err
	}
	defer c.kill()
	sender := r.watchSender(ctx, j.slot)
	defer sender.seconds()
	var data []byte
	err = poll(ctx, 2*time.Millisecond, patience, "the end of the backlog", func() (bool, error) {
		var err error
		if data, err = os.ReadFile(result); errors.Is(err, fs.ErrNotExist) {
			return false, c.ended()
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	if err := c.usage(d); err != nil {
		return err
	}
	d.WalSender = sender.seconds()
	var got struct {
		Events      int
		FirstMicros int64 `json:"first_micros"`
		LastMicros  int64 `json:"last_micros"`
		Mallocs     float64
	}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&got); err != nil {
		return err
	}
	if got.Events != j.rows {
		return fmt.Errorf("%d events, want %d", got.Events, j.rows)
	}
	d.Start, d.First, d.Last, d.Mallocs = c.start, time.UnixMicro(got.FirstMicros), time.UnixMicro(got.LastMicros), got.Mallocs
	return c.stop(ctx)
}

const partitions = 12

// drainKafka runs the product. When the first and the last record are there is
// asked of the broker.
func (r *rig) drainKafka(ctx context.Context, j job, d *Drain) error {
	name := "bench." + j.slot
	if err := r.offsets.create(ctx, topic.Spec{Name: name, Partitions: partitions}); err != nil {
		return err
	}
	w, err := r.startWalpost(ctx, j.slot, name)
	if err != nil {
		return err
	}
	defer w.close()
	sender := r.watchSender(ctx, j.slot)
	defer sender.seconds()
	d.Start = w.start
	if d.First, err = r.offsets.await(ctx, name, 1, w.child, 3*time.Millisecond); err != nil {
		return err
	}
	if d.Last, err = r.offsets.await(ctx, name, int64(j.rows), w.child, 5*time.Millisecond); err != nil {
		return err
	}
	if err := w.usage(d); err != nil {
		return err
	}
	d.WalSender = sender.seconds()
	if err := w.count(ctx, d); err != nil {
		return err
	}
	if err := w.finishProfile(ctx); err != nil {
		return err
	}
	if err := w.stop(ctx); err != nil {
		return err
	}
	n, err := r.offsets.count(ctx, name)
	if err != nil {
		return err
	}
	if n != int64(j.rows) {
		return fmt.Errorf("%d records in the topic, want %d", n, j.rows)
	}
	return topic.Delete(ctx, r.cluster.Addr(), name)
}
