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

	"golang.org/x/sync/errgroup"
)

// bench is one run.
type bench struct {
	opt      options
	dir      string
	began    time.Time
	servers  *servers
	recorder *recorder
	first    *instance // runs all the time
	second   *instance // comes for some faults
	writers  *writers
	sampler  *sampler
	judge    *judge
	rounds   []round
	drawn    map[string]int

	mu         sync.Mutex
	complaints []string
	counts     map[string]int
	suspects   map[int]bool // numbers of the rounds that a failure points at
}

func newBench(ctx context.Context, o options) (*bench, error) {
	b := &bench{opt: o, began: time.Now(), drawn: map[string]int{}, counts: map[string]int{}, suspects: map[int]bool{}}
	var err error
	if b.dir, err = os.MkdirTemp("", "walpost-chaos-"); err != nil {
		return nil, err
	}
	b.say("seed %d, %d broker(s), logs in %s", o.seed, o.brokers, b.dir)
	if b.servers, err = startServers(ctx, o, b.dir, b.say); err != nil {
		return b, err
	}
	if err := b.servers.prepare(ctx); err != nil {
		return b, err
	}
	b.recorder = newRecorder(b.servers.pgLine.Addr(), b.complain, b.note)
	if b.first, err = newInstance("first", b); err != nil {
		return b, err
	}
	if b.second, err = newInstance("second", b); err != nil {
		return b, err
	}
	b.sampler = newSampler(b)
	b.judge = newJudge(b)
	b.writers = newWriters(b)
	return b, nil
}

// run is all rounds of a schedule, as often as it is to be repeated.
func (b *bench) run(ctx context.Context, s schedule) error {
	if err := b.first.start(); err != nil {
		return err
	}
	sampling, stopSampling := context.WithCancel(ctx)
	var samples sync.WaitGroup
	samples.Go(func() { b.sampler.run(sampling) })
	defer samples.Wait()
	defer stopSampling()
	b.writers.start(ctx)
	defer b.writers.stop()
	total := len(s) * b.opt.repeat
	for n := range total {
		if err := b.round(ctx, s[n%len(s)]); err != nil {
			return err
		}
		last := n == total-1
		if (n+1)%b.opt.judgeEvery == 0 || last {
			b.writers.stop()
			if err := b.verdict(ctx, last); err != nil {
				return err
			}
			if !last {
				b.writers.start(ctx)
			}
		}
	}
	return nil
}

// round breaks something, and waits until the relay has caught up.
func (b *bench) round(ctx context.Context, s step) error {
	r := round{step: s, began: time.Now()}
	var err error
	if r.lsn, err = b.servers.walEnd(ctx); err != nil {
		return err
	}
	for _, f := range s.faults {
		b.drawn[f.name]++
	}
	b.rounds = append(b.rounds, r)
	b.note("%s", r)
	group, doing := errgroup.WithContext(ctx)
	if len(s.faults) == 0 {
		pause(ctx, 2*time.Second) // the writers go on meanwhile
	}
	for _, f := range s.faults {
		dice := s.dice(b.opt.seed, f)
		group.Go(func() error {
			// Two faults do not begin in the same instant.
			pause(doing, between(dice, 0, 600*time.Millisecond))
			if err := f.do(doing, b, dice); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	whole := time.Now()
	if err := b.caughtUp(ctx); err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	r.ended, r.healing = time.Now(), time.Since(whole)
	b.rounds[len(b.rounds)-1] = r
	b.say("%s: %.1f s, caught up after %.1f s, %d events written", r, time.Since(r.began).Seconds(), r.healing.Seconds(), b.writers.events.Load())
	return b.violations()
}

// caughtUp waits until the slot has confirmed what is in the WAL now.
func (b *bench) caughtUp(ctx context.Context) error {
	target, err := b.servers.walEnd(ctx)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(b.opt.patience)
	var at uint64
	for ctx.Err() == nil {
		var err error
		if at, err = b.servers.confirmed(ctx); err == nil && at >= target {
			return nil
		}
		if err := b.violations(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return finding{fmt.Errorf("the slot is at %X and does not reach %X; the relay's last words:\n%s\n%s",
				at, target, b.first.tail(25), b.second.tail(10))}
		}
		pause(ctx, 100*time.Millisecond)
	}
	return context.Cause(ctx)
}

// verdict waits until all is delivered, and judges.
func (b *bench) verdict(ctx context.Context, last bool) error {
	if err := b.caughtUp(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := b.judge.look(ctx, last); err != nil {
		return err
	}
	b.say("judged in %.1f s: %s", time.Since(began).Seconds(), b.judge)
	return errors.Join(b.violations(), b.judge.verdict())
}

// complain notes something that must not happen.
func (b *bench) complain(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	b.note("VIOLATION: %s", text)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) < 50 {
		b.complaints = append(b.complaints, fmt.Sprintf("%s (after %.1f s)", text, time.Since(b.began).Seconds()))
	}
}

// count notes that something worth knowing happened.
func (b *bench) count(what string) {
	b.note("%s", what)
	b.mu.Lock()
	b.counts[what]++
	b.mu.Unlock()
}

// suspect notes a round that a failure points at.
func (b *bench) suspect(r round) {
	b.mu.Lock()
	b.suspects[r.step.number] = true
	b.mu.Unlock()
}

func (b *bench) violations() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) == 0 {
		return nil
	}
	return finding{fmt.Errorf("%d violations:\n%s", len(b.complaints), strings.Join(b.complaints, "\n"))}
}

// say tells the user; note is for the log in the folder.
func (b *bench) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(b.opt.out, "%7.1f %s\n", time.Since(b.began).Seconds(), text)
	b.note("%s", text)
}

func (b *bench) note(format string, args ...any) {
	file, err := os.OpenFile(b.dir+"/bench.log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	defer file.Close()
	fmt.Fprintf(file, "%s %s\n", time.Now().UTC().Format(time.RFC3339Nano), fmt.Sprintf(format, args...))
}

// finish ends everything, and writes the report.
func (b *bench) finish(failure error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, i := range []*instance{b.first, b.second} {
		if i != nil {
			_ = i.signal(syscall.SIGCONT)
			i.stop(ctx, syscall.SIGKILL)
		}
	}
	if b.recorder != nil {
		b.recorder.close()
	}
	var err error
	if b.servers != nil {
		err = b.servers.close()
	}
	if b.opt.report != "" && b.judge != nil {
		err = errors.Join(err, b.writeReport(failure))
	}
	if failure == nil && !b.opt.keep {
		return errors.Join(err, os.RemoveAll(b.dir))
	}
	b.say("logs are in %s", b.dir)
	return err
}
