package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/internal/testkit/proxy"
)

func postgresFaults() []fault {
	return []fault{
		{"pg-kill", "kill -9 of the server with all its processes", postgresDomain, false, pgKill},
		{"pg-fast", "fast shutdown, which must not wait for the relay", postgresDomain, false, pgFast},
		{"pg-immediate", "immediate shutdown", postgresDomain, false, pgImmediate},
		{"pg-confirm-kill", "kill -9 right behind a confirmation", postgresDomain, false, pgConfirmKill},
		{"pg-terminate", "pg_terminate_backend on the walsender, some times", postgresDomain, false, pgTerminate},
		{"pg-stall", "the server freezes", postgresDomain, false, pgStall},
		{"pg-cut", "the relay's connections are cut, some times", postgresDomain, false, pgCut},
		{"pg-cut-mid", "the connection breaks in the middle of a message", postgresDomain, false, pgCutMid},
		{"pg-line-stall", "the line stalls in both directions", postgresDomain, false, pgLineStall},
		{"pg-half-open", "the line stalls in one direction", postgresDomain, false, pgHalfOpen},
	}
}

// patience with a server that has to go or to come.
const serverPatience = 60 * time.Second

func pgKill(ctx context.Context, b *bench, r *rand.Rand) error {
	pause(ctx, between(r, 0, time.Second))
	return killPostgres(ctx, b, r)
}

func killPostgres(ctx context.Context, b *bench, r *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	if err := b.servers.pg.Kill9(ctx); err != nil {
		return err
	}
	pause(ctx, between(r, 0, time.Second))
	return b.servers.pg.StartAgain(ctx)
}

func pgFast(ctx context.Context, b *bench, r *rand.Rand) error {
	pause(ctx, between(r, 0, time.Second))
	began := time.Now()
	stopping, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	if err := b.servers.pg.Stop(stopping, pgserver.Fast); err != nil {
		return err
	}
	b.note("fast shutdown took %s", time.Since(began))
	starting, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	pause(ctx, between(r, 0, time.Second))
	return b.servers.pg.StartAgain(starting)
}

func pgImmediate(ctx context.Context, b *bench, r *rand.Rand) error {
	pause(ctx, between(r, 0, time.Second))
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	return b.servers.pg.Restart(ctx, pgserver.Immediate)
}

func pgConfirmKill(ctx context.Context, b *bench, r *rand.Rand) error {
	_, moved := b.recorder.position()
	select {
	case <-moved:
	case <-time.After(10 * time.Second): // a fault at the same time may hold everything
	case <-ctx.Done():
	}
	pause(ctx, between(r, 0, 20*time.Millisecond))
	return killPostgres(ctx, b, r)
}

func pgTerminate(ctx context.Context, b *bench, r *rand.Rand) error {
	for range 1 + r.IntN(3) {
		_ = b.servers.once(ctx, func(db *pgx.Conn) error {
			_, err := db.Exec(ctx, `select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1`, slotName)
			return err
		})
		pause(ctx, between(r, 100*time.Millisecond, time.Second))
	}
	return nil
}

func pgStall(ctx context.Context, b *bench, r *rand.Rand) error {
	if err := b.servers.pg.Pause(); err != nil {
		return err
	}
	pause(ctx, between(r, 500*time.Millisecond, 6*time.Second))
	return b.servers.pg.Resume()
}

func pgCut(ctx context.Context, b *bench, r *rand.Rand) error {
	for range 1 + r.IntN(4) {
		b.servers.pgLine.Cut()
		pause(ctx, between(r, 50*time.Millisecond, time.Second))
	}
	return nil
}

func pgCutMid(ctx context.Context, b *bench, r *rand.Rand) error {
	for range 1 + r.IntN(4) {
		direction := proxy.Direction(r.IntN(2))
		n := int64(1 + r.IntN(200_000))
		if direction == proxy.ToServer {
			n = int64(1 + r.IntN(1000))
		}
		b.servers.pgLine.DropAfter(n, direction)
		pause(ctx, between(r, 50*time.Millisecond, time.Second))
	}
	return nil
}

func pgLineStall(ctx context.Context, b *bench, r *rand.Rand) error {
	b.servers.pgLine.Stall()
	pause(ctx, between(r, 500*time.Millisecond, 7*time.Second))
	b.servers.pgLine.Resume()
	return nil
}

func pgHalfOpen(ctx context.Context, b *bench, r *rand.Rand) error {
	d := proxy.Direction(r.IntN(2))
	b.note("stall in direction %s", fmt.Sprint(d))
	b.servers.pgLine.StallTo(d)
	pause(ctx, between(r, 500*time.Millisecond, 7*time.Second))
	if r.IntN(2) == 0 {
		b.servers.pgLine.Cut()
	}
	b.servers.pgLine.Resume()
	return nil
}
