package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/setup"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/internal/testkit/proc"
	"github.com/walpost/walpost/slot"
)

const (
	publication = "walpost"
	database    = "postgres"
)

// rig is the servers, the programs and what is needed to drive them.
type rig struct {
	pg       *pgserver.Server
	cluster  *kafkaserver.Cluster
	dir      *proc.Dir
	sql      *pgx.Conn
	offsets  *offsets
	walpost  string // the product's binary
	discard  string // ours
	receiver string // pg_recvlogical; empty: our own reader
	profile  string // file for a CPU profile of discard; empty: none
	profiles string // folder for those of the product; empty: none
	say      func(format string, args ...any)
	runs     int // names logs and results apart
	closers  []func() error
}

// newRig builds and starts everything. Close it also after an error.
func newRig(ctx context.Context, opt options, say func(string, ...any)) (*rig, error) {
	r := &rig{say: say, profile: opt.profile, profiles: opt.profiles}
	var err error
	if r.dir, err = proc.NewDir(ctx, "bench"); err != nil {
		return r, err
	}
	r.closers = append(r.closers, r.dir.Remove)
	if err := r.build(ctx); err != nil {
		return r, err
	}
	if !opt.ownReader {
		if r.receiver, err = findReceiver(ctx, say); err != nil {
			return r, err
		}
	}
	if r.receiver == "" {
		say("the limit is measured with our own reader, not with pg_recvlogical")
	}
	// No checkpoint, vacuum or WAL recycling in the middle of a measurement.
	r.pg, err = pgserver.Start(ctx, pgserver.Options{Log: say, Settings: map[string]string{
		"max_wal_size": "20GB", "checkpoint_timeout": "1h", "shared_buffers": "512MB",
		"autovacuum": "off", "track_commit_timestamp": "on",
	}})
	if err != nil {
		return r, err
	}
	r.closers = append(r.closers, r.pg.Close)
	r.cluster, err = kafkaserver.Start(ctx, kafkaserver.Options{Throughput: true, Log: say})
	if err != nil {
		return r, err
	}
	r.closers = append(r.closers, r.cluster.Close)
	r.offsets = newOffsets(r.cluster.Addr())
	r.closers = append(r.closers, r.offsets.close)
	return r, r.prepare(ctx)
}

// build makes the two binaries from the sources that this program was made of.
func (r *rig) build(ctx context.Context) error {
	r.walpost, r.discard = filepath.Join(r.dir.Path, "walpost"), filepath.Join(r.dir.Path, "discard")
	for path, pkg := range map[string]string{r.walpost: "cmd/walpost", r.discard: "test/bench/discard"} {
		args := []string{"build", "-o", path}
		if pkg == "cmd/walpost" {
			more, err := r.overlay(ctx)
			if err != nil {
				return err
			}
			// As in the Dockerfile.
			args = append(append(args, "-trimpath", "-ldflags", "-s -w"), more...)
		}
		cmd := exec.CommandContext(ctx, "go", append(args, module+pkg)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
	}
	return nil
}

const module = "github.com/walpost/walpost/"

// goList returns the folder of a package.
func goList(ctx context.Context, pkg string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", module+pkg).Output()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", pkg, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// findReceiver returns the path of pg_recvlogical, "" where there is none.
func findReceiver(ctx context.Context, say func(string, ...any)) (string, error) {
	const name = "pg_recvlogical"
	binaries, err := pgserver.Find(ctx, 0, say)
	if err != nil {
		return "", err
	}
	installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	for _, path := range append([]string{filepath.Join(binaries.Dir, name)}, installed...) {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return "", nil
	}
	return path, err
}

func (r *rig) prepare(ctx context.Context) error {
	conf, err := pg.ParseDSN(r.pg.DSN(database))
	if err != nil {
		return err
	}
	const first = "bench_init" // setup makes all three
	if _, err := setup.Run(ctx, conf, setup.Options{
		Slot: first, Publication: publication, CreateTables: true, Checkpoint: true,
		Tables: []slot.Table{{Schema: "public", Name: "outbox_events"}},
	}); err != nil {
		return err
	}
	if r.sql, err = pgx.Connect(ctx, r.pg.SocketDSN(database)); err != nil {
		return err
	}
	r.closers = append(r.closers, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		return r.sql.Close(ctx)
	})
	if err := r.exec(ctx, createFill); err != nil {
		return err
	}
	return r.dropSlots(ctx, first)
}

func (r *rig) exec(ctx context.Context, statements ...string) error {
	for _, sql := range statements {
		if _, err := r.sql.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%.60s: %w", sql, err)
		}
	}
	return nil
}

func (r *rig) createSlot(ctx context.Context, name string) error {
	_, err := r.sql.Exec(ctx, "select pg_create_logical_replication_slot($1, 'pgoutput')", name)
	if err != nil {
		return fmt.Errorf("create slot %q: %w", name, err)
	}
	return nil
}

// onKafka is the rig on a cluster of its own, until end.
func (r *rig) onKafka(ctx context.Context, opt kafkaserver.Options) (inner *rig, end func() error, err error) {
	cluster, err := kafkaserver.Start(ctx, opt)
	if err != nil {
		return nil, nil, err
	}
	other := *r
	other.cluster, other.offsets = cluster, newOffsets(cluster.Addr())
	return &other, func() error { return errors.Join(other.offsets.close(), cluster.Close()) }, nil
}

// dropSlots waits for walsenders that have not noticed yet that they are alone.
func (r *rig) dropSlots(ctx context.Context, names ...string) error {
	const (
		busy = `select count(*) from pg_replication_slots where slot_name = any($1) and active`
		drop = `select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = any($1)`
	)
	return poll(ctx, 20*time.Millisecond, 20*time.Second, "slots to be free", func() (bool, error) {
		var left int
		if err := r.sql.QueryRow(ctx, busy, names).Scan(&left); err != nil || left > 0 {
			return false, err
		}
		_, err := r.sql.Exec(ctx, drop, names)
		return err == nil, err
	})
}

// close ends everything, the last first.
func (r *rig) close() error {
	var errs []error
	for i := len(r.closers) - 1; i >= 0; i-- {
		errs = append(errs, r.closers[i]())
	}
	return errors.Join(errs...)
}

// poll calls f at intervals until it says yes or fails.
func poll(ctx context.Context, interval, patience time.Duration, what string, f func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("waited %v for %s", patience, what))
	defer cancel()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if ok, err := f(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
