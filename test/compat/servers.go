package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/internal/testkit/topic"
)

// partitions that a topic gets when it is first written.
const partitions = "12"

// servers are one PostgreSQL, and a Kafka for each lane: configurations name their
// topics, so a Kafka serves one run at a time, and is empty before each.
type servers struct {
	pg    *pgserver.Server
	lanes []*lane
	log   func(format string, args ...any)
}

type lane struct{ kafka *kafkaserver.Cluster }

func startServers(ctx context.Context, major, lanes int, log func(string, ...any)) (_ *servers, err error) {
	s := &servers{log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	s.pg, err = pgserver.Start(ctx, pgserver.Options{Major: major, FsyncOff: true, Log: log, Settings: map[string]string{
		"max_replication_slots": "50", "max_wal_senders": "50",
	}})
	if err != nil {
		return nil, err
	}
	for range lanes {
		kafka, err := kafkaserver.Start(ctx, kafkaserver.Options{
			AutoCreateTopics: true, Log: log, Settings: map[string]string{"num.partitions": partitions},
		})
		if err != nil {
			return nil, err
		}
		s.lanes = append(s.lanes, &lane{kafka})
	}
	return s, nil
}

func (s *servers) close() error {
	var errs []error
	for _, l := range s.lanes {
		errs = append(errs, l.kafka.Close())
	}
	if s.pg != nil {
		errs = append(errs, s.pg.Close())
	}
	return errors.Join(errs...)
}

func (l *lane) brokers() []string { return l.kafka.Addr() }

// records are all that are there. A starved broker may not answer in time.
func (l *lane) records(ctx context.Context) ([]record, error) {
	return patiently(ctx, l.read)
}

// patiently tries a few times.
func patiently[T any](ctx context.Context, do func(context.Context) (T, error)) (T, error) {
	for try := 0; ; try++ {
		once, cancel := context.WithTimeout(ctx, 10*time.Second)
		result, err := do(once)
		cancel()
		if err == nil || try == 5 || ctx.Err() != nil {
			return result, err
		}
	}
}

func (l *lane) read(ctx context.Context) ([]record, error) {
	names, err := topic.List(ctx, l.brokers())
	if err != nil {
		return nil, err
	}
	var all []topic.Record
	for _, name := range names {
		found, err := topic.Read(ctx, l.brokers(), name)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return fromKafka(all), nil
}

func (l *lane) clear(ctx context.Context) error {
	_, err := patiently(ctx, func(ctx context.Context) (any, error) {
		names, err := topic.List(ctx, l.brokers())
		for _, name := range names {
			err = errors.Join(err, topic.Delete(ctx, l.brokers(), name))
		}
		return nil, err
	})
	return err
}

// database is one for a single run.
type database struct {
	servers *servers
	name    string
	slot    string
	conn    *pgx.Conn // of the rows' author
}

func (s *servers) newDatabase(ctx context.Context) (*database, error) {
	d := &database{servers: s, name: testkit.Unique("compat"), slot: testkit.Unique("compat")}
	if err := s.exec(ctx, "create database "+d.name); err != nil {
		return nil, err
	}
	var err error
	if d.conn, err = pgx.Connect(ctx, s.pg.SocketDSN(d.name)); err != nil {
		return nil, err
	}
	return d, nil
}

// exec runs a statement that concerns no database of a run.
func (s *servers) exec(ctx context.Context, sql string, args ...any) error {
	conn, err := pgx.Connect(ctx, s.pg.SocketDSN("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql, args...)
	return err
}

// drop drops the database with its slots, once nobody holds them.
func (d *database) drop(ctx context.Context) error {
	err := d.conn.Close(ctx)
	return errors.Join(err, await(ctx, 20*time.Second, "slots to be free", func() (bool, error) {
		if err := d.servers.exec(ctx, `select pg_drop_replication_slot(slot_name) from pg_replication_slots
			where database = $1 and not active`, d.name); err != nil {
			return false, nil // somebody was faster
		}
		return d.servers.exec(ctx, "drop database "+d.name+" with (force)") == nil, nil
	}))
}

func (d *database) execute(ctx context.Context, script string) error {
	return execute(ctx, d.conn, script)
}

// end is where the WAL ends now.
func (d *database) end(ctx context.Context) (lsn string, err error) {
	err = d.conn.QueryRow(ctx, "select pg_current_wal_lsn()::text").Scan(&lsn)
	return lsn, err
}

func (d *database) is(ctx context.Context, sql string, args ...any) (bool, error) {
	var is bool
	err := d.conn.QueryRow(ctx, "select coalesce(("+sql+"), false)", args...).Scan(&is)
	return is, err
}

// streaming says that somebody reads the slot. A slot that is being made is active
// too, and where it will begin is not settled then.
func (d *database) streaming(ctx context.Context) (bool, error) {
	return d.is(ctx, `select true from pg_stat_replication r
		join pg_replication_slots s on s.active_pid = r.pid where slot_name = $1 and state in ('catchup', 'streaming')
		and confirmed_flush_lsn is not null`, d.slot)
}

func (d *database) confirmed(ctx context.Context, lsn string) (bool, error) {
	return d.is(ctx, "select confirmed_flush_lsn >= $2::text::pg_lsn from pg_replication_slots where slot_name = $1", d.slot, lsn)
}

func (d *database) sent(ctx context.Context, lsn string) (bool, error) {
	return d.is(ctx, `select sent_lsn >= $2::text::pg_lsn from pg_stat_replication r
		join pg_replication_slots s on s.active_pid = r.pid where slot_name = $1`, d.slot, lsn)
}

// rewritten is the configuration of a connector with the run's own server,
// database and slot.
func (d *database) rewritten(config map[string]string) map[string]string {
	own := map[string]string{
		"database.hostname": "127.0.0.1", "database.port": fmt.Sprint(d.servers.pg.Port()), "database.user": pgserver.Superuser,
		"database.password": "unused", "database.dbname": d.name, "slot.name": d.slot,
	}
	for key, value := range config {
		if _, ok := own[key]; !ok {
			own[key] = value
		}
	}
	return own
}

// await repeats cond until it holds, at most for a time.
func await(ctx context.Context, within time.Duration, what string, cond func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("waited %v for %s", within, what))
	defer cancel()
	for {
		ok, err := cond()
		if ok || err != nil && ctx.Err() == nil {
			return err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

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
