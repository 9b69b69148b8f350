package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/internal/testkit/topic"
)

const (
	database = "postgres"
	table    = "public.outboxevent"
	prefix   = "outbox.event."
)

// rig is what one scenario runs in.
type rig struct {
	kit      *kit
	pg       *pgserver.Server
	recorder *recorder
	relay    relay
	slot     string // also the publication
	kinds    map[string]string
	dir      string
	ledger   *ledger
	found    finding
}

// errStuck ends a scenario early; the finding says what is stuck.
var errStuck = errors.New("stuck")

func newRig(ctx context.Context, k *kit, s scenario) (*rig, error) {
	r := &rig{kit: k, slot: testkit.Unique("conformance"), kinds: map[string]string{}, ledger: newLedger()}
	var err error
	if r.dir, err = os.MkdirTemp("", "walpost-conformance-"); err != nil {
		return nil, err
	}
	if r.pg, err = pgserver.Start(ctx, pgserver.Options{Major: k.pg, FsyncOff: true, Settings: s.settings, Log: k.log}); err != nil {
		return r, err
	}
	r.found.server = "PostgreSQL " + r.pg.Version()
	if r.recorder, err = newRecorder(r.pg.Addr()); err != nil {
		return r, err
	}
	err = r.exec(ctx,
		`create table `+table+` (id uuid primary key, aggregatetype varchar(255) not null,
			aggregateid varchar(255) not null, type varchar(255) not null, payload jsonb)`,
		`create table noise (pad text)`,
		`create publication `+r.slot+` for table `+table+` with (publish = 'insert')`,
		`select pg_create_logical_replication_slot('`+r.slot+`', 'pgoutput')`)
	if err != nil {
		return r, err
	}
	for _, name := range slices.Concat(s.free, s.held) {
		r.kinds[name] = testkit.Unique(name)
		if err := r.createTopic(ctx, name, slices.Contains(s.held, name)); err != nil {
			return r, err
		}
	}
	r.relay = k.relay()
	return r, r.relay.prepare(ctx, r)
}

// close ends everything; the folder stays if keep says so.
func (r *rig) close(keep bool) error {
	var errs []error
	if r.relay != nil {
		errs = append(errs, r.relay.close())
	}
	if r.recorder != nil {
		r.recorder.close()
	}
	if r.pg != nil {
		errs = append(errs, r.pg.Close())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for name := range r.kinds {
		errs = append(errs, topic.Delete(ctx, r.kafka(), r.topic(name)))
	}
	if !keep {
		errs = append(errs, os.RemoveAll(r.dir))
	}
	return errors.Join(errs...)
}

func (r *rig) file(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) kafka() []string { return addrs(r.kit.kafka) }

// kind is the aggregate type of a scenario's short name: topics of scenarios that
// share a cluster differ.
func (r *rig) kind(name string) string { return r.kinds[name] }

func (r *rig) topic(name string) string { return prefix + r.kinds[name] }

// rows makes n events of a type over some keys.
func (r *rig) rows(name string, n, keys int) []event { return rows(r.kind(name), n, keys) }

// relayDSN leads through the recorder.
func (r *rig) relayDSN() string {
	return r.pg.DSNVia(r.recorder.addr().String(), database, pgserver.Superuser, "")
}

// connect opens a connection that the recorder is not in the way of.
func (r *rig) connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.Connect(ctx, r.pg.SocketDSN(database))
}

// exec runs statements, each in a transaction of its own.
func (r *rig) exec(ctx context.Context, statements ...string) error {
	db, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	for _, sql := range statements {
		if _, err := db.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

func (r *rig) number(ctx context.Context, sql string, args ...any) (n int64, err error) {
	db, err := r.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer db.Close(ctx)
	err = db.QueryRow(ctx, sql, args...).Scan(&n)
	return n, err
}

// start starts the relay and waits until it has its slot.
func (r *rig) start(ctx context.Context) error {
	if err := r.relay.start(ctx); err != nil {
		return err
	}
	return r.awaitActive(ctx)
}

func (r *rig) awaitActive(ctx context.Context) error {
	return r.await(ctx, "the relay to take its slot", func() (bool, error) {
		n, err := r.number(ctx, `select count(*) from pg_replication_slots where slot_name = $1 and active`, r.slot)
		return n == 1, err
	})
}

// crash kills the relay and waits until the server has noticed.
func (r *rig) crash(ctx context.Context) error {
	if err := r.relay.kill(ctx); err != nil {
		return err
	}
	return r.awaitFree(ctx)
}

func (r *rig) awaitFree(ctx context.Context) error {
	return r.await(ctx, "the server to see that the relay has gone", func() (bool, error) {
		n, err := r.number(ctx, `select count(*) from pg_replication_slots where slot_name = $1 and active`, r.slot)
		return n == 0, err
	})
}

// await repeats cond until it holds. When the kit's patience is at its end, that
// is a finding, and the error errStuck.
func (r *rig) await(ctx context.Context, what string, cond func() (bool, error)) error {
	deadline := time.Now().Add(r.kit.patience)
	for {
		ok, err := cond()
		if ok && err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			text := fmt.Sprintf("waited %v for %s", r.kit.patience, what)
			if err != nil {
				text += ": " + err.Error()
			}
			r.found.stuck = append(r.found.stuck, text)
			return errStuck
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// beat is time for the relay to save and confirm what was acked.
func (r *rig) beat(ctx context.Context) error { return pause(ctx, r.kit.beat) }

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
