package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/walpost/walpost/internal/testkit/proxy"
)

func relayFaults() []fault {
	return []fault{
		{"relay-kill", "SIGKILL, then a start without any local state", relayDomain, false, relayKill},
		{"relay-kills", "SIGKILL several times in a row, also during recovery", relayDomain, false, relayKills},
		{"relay-kill-late", "SIGKILL while requests hang in the line; they arrive when the next process reads or writes", relayDomain, false, relayKillLate},
		{"relay-term", "SIGTERM", relayDomain, false, relayTerm},
		{"relay-freeze", "SIGSTOP for less than the server's patience", relayDomain, false, relayFreeze},
		{"relay-zombie", "SIGSTOP until a second instance has taken over, then SIGCONT", relayDomain, false, relayZombie},
		{"relay-two", "a second instance waits and takes over by SIGKILL of the first", relayDomain, false, relayTwo},
	}
}

func relayKill(ctx context.Context, b *bench, r *rand.Rand) error {
	pause(ctx, between(r, 0, time.Second))
	<-b.first.signal(syscall.SIGKILL)
	return nil
}

func relayKills(ctx context.Context, b *bench, r *rand.Rand) error {
	for range 2 + r.IntN(3) {
		<-b.first.signal(syscall.SIGKILL)
		pause(ctx, between(r, 250*time.Millisecond, 1500*time.Millisecond))
	}
	return nil
}

// relayKillLate is what the fence's empty transaction is for.
func relayKillLate(ctx context.Context, b *bench, r *rand.Rand) error {
	for _, line := range b.lines() {
		line.StallOpen(proxy.ToServer)
	}
	pause(ctx, between(r, 50*time.Millisecond, 400*time.Millisecond))
	<-b.first.signal(syscall.SIGKILL)
	pause(ctx, between(r, 200*time.Millisecond, 1500*time.Millisecond))
	for _, line := range b.lines() {
		line.Resume()
	}
	return nil
}

func relayTerm(ctx context.Context, b *bench, r *rand.Rand) error {
	pause(ctx, between(r, 0, time.Second))
	select {
	case <-b.first.signal(syscall.SIGTERM):
		return nil
	case <-time.After(25 * time.Second):
		return finding{errors.New("the relay does not end after SIGTERM within its drain timeout")}
	}
}

func relayFreeze(ctx context.Context, b *bench, r *rand.Rand) error {
	b.first.signal(syscall.SIGSTOP)
	pause(ctx, between(r, 500*time.Millisecond, 3*time.Second))
	b.first.signal(syscall.SIGCONT)
	return nil
}

// takeover waits until the second instance streams.
func takeover(ctx context.Context, b *bench, patience time.Duration) bool {
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) && ctx.Err() == nil {
		if b.recorder.streaming(b.second.name) {
			return true
		}
		pause(ctx, 50*time.Millisecond)
	}
	return false
}

// withSecond runs f while a second instance runs; afterwards there is one again.
func withSecond(ctx context.Context, b *bench, r *rand.Rand, f func() error) error {
	if err := b.second.start(); err != nil {
		return err
	}
	err := f()
	b.second.stop(ctx, []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[r.IntN(2)])
	return err
}

func relayZombie(ctx context.Context, b *bench, r *rand.Rand) error {
	if b.opt.freeze > 0 {
		return longZombie(ctx, b, r)
	}
	return withSecond(ctx, b, r, func() error {
		pause(ctx, between(r, 0, 300*time.Millisecond))
		b.first.signal(syscall.SIGSTOP)
		defer b.first.signal(syscall.SIGCONT)
		if takeover(ctx, b, 20*time.Second) {
			b.count("zombies: a second instance took over meanwhile")
			stay := between(r, 200*time.Millisecond, 3*time.Second)
			if r.IntN(15) == 0 {
				stay = 90 * time.Second // longer than every timeout
			}
			pause(ctx, stay)
		} else {
			b.count("zombies: nobody took over in time")
		}
		ended := b.first.signal(syscall.SIGCONT)
		select {
		case <-ended:
			b.count("zombies: ended by themselves")
		case <-time.After(between(r, 2*time.Second, 4*time.Second)):
			b.count("zombies: had nothing to write, and wait for the slot")
		case <-ctx.Done():
		}
		return nil
	})
}

// longZombie freezes an instance that has events in flight, for as long as the
// flag says. Whatever it finds when it wakes up, it has to end by itself, and to
// say why.
func longZombie(ctx context.Context, b *bench, r *rand.Rand) error {
	return withSecond(ctx, b, r, func() error {
		for _, line := range b.lines() {
			line.StallTo(proxy.ToServer)
		}
		pause(ctx, 500*time.Millisecond)
		fenced := b.first.endedWith(fencedCode)
		b.first.signal(syscall.SIGSTOP)
		defer b.first.signal(syscall.SIGCONT)
		frozen := time.Now()
		for _, line := range b.lines() {
			line.Resume()
		}
		if !takeover(ctx, b, b.opt.freeze) {
			return finding{errors.New("nobody took over from the frozen instance")}
		}
		b.say("the first instance is frozen with events in flight; the second took over after %.1f s", time.Since(frozen).Seconds())
		pause(ctx, time.Until(frozen.Add(b.opt.freeze)))
		ended := b.first.signal(syscall.SIGCONT)
		woken := time.Now()
		select {
		case <-ended:
		case <-time.After(zombiePatience):
			return finding{fmt.Errorf("woken up after %s, the frozen instance does not end; its last words:\n%s", b.opt.freeze, b.first.tail(20))}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if b.first.endedWith(fencedCode) == fenced {
			return finding{fmt.Errorf("woken up after %s, the frozen instance ended with another code than %d; its last words:\n%s", b.opt.freeze, fencedCode, b.first.tail(20))}
		}
		b.say("woken up after %.1f s, it ended by itself with exit code %d after %.1f s", woken.Sub(frozen).Seconds(), fencedCode, time.Since(woken).Seconds())
		b.count("zombies: ended by themselves")
		return nil
	})
}

const (
	fencedCode     = 5
	zombiePatience = 30 * time.Second
)

func relayTwo(ctx context.Context, b *bench, r *rand.Rand) error {
	return withSecond(ctx, b, r, func() error {
		pause(ctx, between(r, 200*time.Millisecond, time.Second))
		<-b.first.signal(syscall.SIGKILL)
		if takeover(ctx, b, 2*time.Second) { // the first one's next process may be faster
			b.count("takeovers by an instance that waited")
		}
		pause(ctx, between(r, time.Second, 3*time.Second))
		return nil
	})
}
