package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/walpost/walpost/internal/testkit/pgserver"
)

// serverScenarios are about what happens to the server and to its objects.
func serverScenarios() []scenario {
	return []scenario{
		{
			name: "publication", free: []string{"a"}, own: true,
			what: "the publication is dropped and made again, with rows in between: to hold is right, to go on without them is not",
			run:  publication,
		},
		{
			name: "slot-back", free: []string{"a"},
			what: "kill -9 of the server takes the slot back to before what was confirmed; then of server and relay at once",
			run:  slotBack,
		},
		{
			name: "fast-shutdown", held: []string{"a"},
			what: "a fast shutdown of the server with events stuck in flight: it must end, and nothing may be confirmed by it",
			run:  fastShutdown,
		},
	}
}

// publication: rows that were committed without a publication are never decoded
// again. The server says so with an error, or, from 18 on, with a warning in its
// own log.
func publication(ctx context.Context, r *rig) error {
	err := steps(
		func() error { return r.start(ctx) },
		func() error { _, err := r.writeEach(ctx, r.rows("a", 5, 2)); return err },
		func() error { return r.awaitAll(ctx) },
		func() error { return r.exec(ctx, `drop publication `+r.slot) },
		func() error { _, err := r.writeEach(ctx, r.rows("a", 5, 2)); return err },
		func() error {
			return r.exec(ctx, `create publication `+r.slot+` for table `+table+` with (publish = 'insert')`)
		},
		func() error { _, err := r.writeEach(ctx, r.rows("a", 5, 2)); return err },
		func() error { return r.foreign(ctx, 10) },
		func() error { return pause(ctx, r.kit.bound) },
	)
	if err != nil {
		return err
	}
	records, err := r.records(ctx)
	if err != nil {
		return err
	}
	if all := r.ledger.all(); !contains(records, all) && !containsAny(records, all[5:]) {
		r.notYet("holding", all[5:])
		r.found.holds = true
		r.found.notes = append(r.found.notes, "holds before the first row that cannot be had, and confirms nothing")
	}
	return nil
}

func slotBack(ctx context.Context, r *rig) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	for _, both := range []bool{false, true} {
		err := steps(
			func() error { _, err := r.writeEach(ctx, r.rows("a", 50, 5)); return err },
			func() error { return r.awaitAll(ctx) },
			func() error { return r.beat(ctx) },
			func() error { return r.pg.Kill9(ctx) },
			func() error {
				if both {
					return r.relay.kill(ctx)
				}
				return nil
			},
			func() error { return r.pg.StartAgain(ctx) },
			func() error {
				if both {
					return r.start(ctx)
				}
				return r.awaitActive(ctx)
			},
		)
		if err != nil {
			return err
		}
	}
	return nil
}

func fastShutdown(ctx context.Context, r *rig) error {
	var held []event
	return steps(
		func() error { return r.start(ctx) },
		func() (err error) {
			held, err = r.writeEach(ctx, r.rows("a", 3, 3))
			return err
		},
		func() error { return r.keepalives(ctx, held) },
		func() error { return r.beat(ctx) },
		func() error {
			stopping, cancel := context.WithTimeout(ctx, r.kit.bound)
			defer cancel()
			err := r.pg.Stop(stopping, pgserver.Fast)
			if err == nil || stopping.Err() == nil || ctx.Err() != nil {
				return err
			}
			r.found.stuck = append(r.found.stuck, fmt.Sprintf("the fast shutdown did not end within %v", r.kit.bound))
			return errors.Join(ctx.Err(), r.pg.Kill9(ctx))
		},
		func() error { r.notYet("by the shutdown", held); return nil },
		func() error { return r.pg.StartAgain(ctx) },
		func() error { return r.release(ctx, "a") },
		func() error { return r.awaitActive(ctx) },
	)
}

func containsAny(records []record, events []event) bool {
	for _, e := range events {
		if contains(records, []event{e}) {
			return true
		}
	}
	return false
}
