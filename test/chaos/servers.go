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
	"golang.org/x/sync/errgroup"

	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/internal/testkit/proxy"
	"github.com/walpost/walpost/internal/testkit/topic"
)

const (
	slotName   = "chaos"
	judgeSlot  = "chaos_judge"
	database   = "postgres"
	topicOf    = "chaos."
	partitions = 4 // of each topic at the start
)

// aggregateTypes are also the topics.
var aggregateTypes = []string{"order", "payment", "shipment"}

// servers are what the relay stands between.
type servers struct {
	pg     *pgserver.Server
	pgLine *proxy.Proxy // before PostgreSQL, for the relay alone
	kafka  *kafkaserver.Cluster
	binary string
}

func startServers(ctx context.Context, o options, dir string, log func(string, ...any)) (*servers, error) {
	s := &servers{}
	group, starting := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		s.pg, err = pgserver.Start(starting, pgserver.Options{
			Major: o.pg, FsyncOff: true, Log: log,
			Settings: map[string]string{
				"checkpoint_timeout": "30s", // which is when slots reach the disk
				"max_wal_size":       "2GB",
				"deadlock_timeout":   "200ms",
			},
		})
		if err == nil {
			s.pgLine, err = proxy.New(s.pg.Addr())
		}
		return err
	})
	group.Go(func() (err error) {
		s.kafka, err = kafkaserver.Start(starting, kafkaserver.Options{Brokers: o.brokers, Proxied: true, Log: log})
		return err
	})
	group.Go(func() (err error) {
		if s.binary = o.walpost; s.binary == "" {
			s.binary, err = build(starting, dir)
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return s, err
	}
	for _, t := range aggregateTypes {
		spec := topic.Spec{Name: topicOf + t, Partitions: partitions, Replication: o.brokers}
		if err := topic.Create(ctx, s.kafka.DirectAddr(), spec); err != nil {
			return s, err
		}
	}
	return s, nil
}

// build makes the binary that is tested.
func build(ctx context.Context, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	path := filepath.Join(dir, "walpost")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/walpost")
	cmd.Dir = strings.TrimSpace(string(root))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build walpost: %w\n%s", err, out)
	}
	return path, nil
}

func (s *servers) close() error {
	var errs []error
	if s.pgLine != nil {
		s.pgLine.Close()
	}
	if s.kafka != nil {
		errs = append(errs, s.kafka.Close())
	}
	if s.pg != nil {
		errs = append(errs, s.pg.Close())
	}
	return errors.Join(errs...)
}

// prepare makes what the relay, the writers and the judge need in PostgreSQL.
func (s *servers) prepare(ctx context.Context) error {
	init := exec.CommandContext(ctx, s.binary, "init", "--create-table",
		"--dsn", s.pg.DSN(database), "--slot", slotName, "--publication", slotName)
	init.Dir = os.TempDir()
	if out, err := init.CombinedOutput(); err != nil {
		return fmt.Errorf("walpost init: %w\n%s", err, out)
	}
	db, err := pgx.Connect(ctx, s.pg.SocketDSN(database))
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	for _, sql := range []string{
		// The row of an aggregate is locked by whoever writes its next events, so
		// versions are handed out in commit order.
		`create table aggregates (type text, id text, version int not null default 0, primary key (type, id))`,
		`create table foreign_traffic (id bigserial primary key, pad text)`,
		`select pg_create_logical_replication_slot('` + judgeSlot + `', 'pgoutput')`,
	} {
		if _, err := db.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	_, err = db.Exec(ctx, `insert into aggregates select t, n::text from unnest($1::text[]) t, generate_series(1, $2::int) n`,
		aggregateTypes, aggregatesPerType)
	return err
}

// query runs f with a connection that nothing stands before, until it succeeds.
func (s *servers) query(ctx context.Context, f func(*pgx.Conn) error) error {
	for {
		err := s.once(ctx, f)
		if err == nil || ctx.Err() != nil {
			return err
		}
		pause(ctx, 100*time.Millisecond)
	}
}

func (s *servers) once(ctx context.Context, f func(*pgx.Conn) error) error {
	call, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	db, err := pgx.Connect(call, s.pg.SocketDSN(database))
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(call))
	return f(db)
}

// walEnd is where the WAL ends now.
func (s *servers) walEnd(ctx context.Context) (lsn uint64, err error) {
	err = s.query(ctx, func(db *pgx.Conn) error {
		return db.QueryRow(ctx, `select (pg_current_wal_insert_lsn() - '0/0')::int8`).Scan(&lsn)
	})
	return lsn, err
}

// confirmed is the slot's position in PostgreSQL.
func (s *servers) confirmed(ctx context.Context) (lsn uint64, err error) {
	err = s.once(ctx, func(db *pgx.Conn) error {
		return db.QueryRow(ctx, `select (confirmed_flush_lsn - '0/0')::int8 from pg_replication_slots where slot_name = $1`, slotName).Scan(&lsn)
	})
	return lsn, err
}
