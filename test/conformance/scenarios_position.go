package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// positionScenarios are about which position is confirmed, and when.
func positionScenarios() []scenario {
	return []scenario{
		{
			name: "keepalive", held: []string{"a"},
			what: "keepalives of a server that is busy elsewhere, while an event is in flight; then the relay is killed",
			run:  keepalive,
		},
		{
			name: "walstart-len", free: []string{"large"}, held: []string{"a"},
			what: "a row that is much longer in the stream than in the WAL is acked, small ones after it are not; then the relay is killed",
			run:  walStartLen,
		},
		{
			name: "end-lsn", free: []string{"a"},
			what: "restarts after everything was delivered: the last transaction must not come again, nor the next be missed",
			run:  endLSN,
		},
		{
			name: "quiet", free: []string{"a"},
			what: "no event for a while and 48 MB of foreign WAL: the slot must follow and WAL must not pile up",
			run:  quiet, settings: map[string]string{"max_wal_size": "64MB"},
		},
	}
}

func keepalive(ctx context.Context, r *rig) error {
	var held []event
	return steps(
		func() error { return r.start(ctx) },
		func() (err error) {
			held, err = r.writeEach(ctx, r.rows("a", 3, 3))
			return err
		},
		func() error { return r.keepalives(ctx, held) },
		func() error { return r.beat(ctx) },
		func() error { r.notYet("after keepalives", held); return nil },
		func() error { return r.crash(ctx) },
		func() error { return r.release(ctx, "a") },
		func() error { return r.start(ctx) },
	)
}

// keepalives makes the server send some that are above these events, and waits
// until the relay has said something afterwards.
func (r *rig) keepalives(ctx context.Context, above []event) error {
	var updates int
	last := above[len(above)-1].after
	err := r.await(ctx, "keepalives above the events in flight", func() (bool, error) {
		if err := r.foreign(ctx, 10); err != nil {
			return false, err
		}
		var end uint64
		end, updates = r.recorder.progress()
		return end > last, nil
	})
	if err != nil {
		return err
	}
	return r.await(ctx, "a status update", func() (bool, error) {
		if err := r.foreign(ctx, 1); err != nil {
			return false, err
		}
		_, now := r.recorder.progress()
		return now > updates+1, nil
	})
}

func walStartLen(ctx context.Context, r *rig) error {
	large := r.rows("large", 1, 1)
	var held []event
	return steps(
		func() error { return r.start(ctx) },
		func() error {
			// 400 kB that the server keeps compressed in less than 10.
			_, err := r.commit(ctx, large, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, `insert into `+table+` values ($1, $2, $3, 'Made', jsonb_build_object('pad', repeat('x', 400000)))`,
					large[0].id, large[0].kind, large[0].key)
				return err
			})
			return err
		},
		func() (err error) {
			held, err = r.writeEach(ctx, r.rows("a", 20, 5))
			return err
		},
		func() error { return r.awaitCount(ctx, "large", 1) },
		func() error { return r.beat(ctx) },
		func() error { r.notYet("after a long row", held); return nil },
		func() error { return r.crash(ctx) },
		func() error { return r.release(ctx, "a") },
		func() error { return r.start(ctx) },
	)
}

func endLSN(ctx context.Context, r *rig) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	// Soft stops, and at last a crash when everything is confirmed.
	for _, end := range []func(context.Context) error{r.relay.stop, r.relay.stop, r.relay.kill} {
		err := steps(
			func() error { _, err := r.writeEach(ctx, r.rows("a", 5, 2)); return err },
			func() error { return r.awaitAll(ctx) },
			func() error { return r.beat(ctx) },
			func() error { return end(ctx) },
			func() error { return r.awaitFree(ctx) },
			func() error { return r.start(ctx) },
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// Limits of the scenario quiet.
const (
	quietRounds  = 3
	quietBehind  = 1 << 20  // bytes that the slot may be behind
	quietRetains = 32 << 20 // bytes of WAL that it may hold
)

func quiet(ctx context.Context, r *rig) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	if _, err := r.writeEach(ctx, r.rows("a", 2, 1)); err != nil {
		return err
	}
	if err := r.awaitAll(ctx); err != nil {
		return err
	}
	for range quietRounds {
		if err := r.foreign(ctx, 16<<10); err != nil {
			return err
		}
	}
	began := time.Now()
	var behind, retained int64
	for time.Since(began) < r.kit.bound {
		// What the server keeps moves on at checkpoints, and with foreign commits.
		if err := r.foreign(ctx, 1); err != nil {
			return err
		}
		if err := r.exec(ctx, `checkpoint`); err != nil {
			return err
		}
		var err error
		if behind, retained, err = r.lag(ctx); err != nil {
			return err
		}
		if behind < quietBehind && retained < quietRetains {
			r.found.notes = append(r.found.notes, fmt.Sprintf("the slot holds %.1f MB", megabytes(retained)))
			return nil
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	r.found.stuck = append(r.found.stuck, fmt.Sprintf("after %v of foreign traffic the slot is %.1f MB behind and holds %.1f MB of WAL",
		r.kit.bound, megabytes(behind), megabytes(retained)))
	return nil
}

func (r *rig) lag(ctx context.Context) (behind, retained int64, err error) {
	db, err := r.connect(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer db.Close(ctx)
	err = db.QueryRow(ctx, `select (pg_current_wal_lsn() - confirmed_flush_lsn)::int8, (pg_current_wal_lsn() - restart_lsn)::int8
		from pg_replication_slots where slot_name = $1`, r.slot).Scan(&behind, &retained)
	return behind, retained, err
}

func megabytes(n int64) float64 { return float64(n) / (1 << 20) }
