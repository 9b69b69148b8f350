package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/config"
	"github.com/walpost/walpost/internal/demo"
	"github.com/walpost/walpost/internal/logging"
	"github.com/walpost/walpost/internal/testkit/topic"
	"github.com/walpost/walpost/internal/wire"
)

// demonstration is one run of the program.
type demonstration struct {
	opt            *options
	stdout, stderr io.Writer
	names          names
	ends           []func(context.Context) error

	postgres, kafka string // what they are, for people
	dsn             string
	conn            *pgx.ConnConfig
	brokers         []string
	reached         bool // the brokers have answered
	service         *demo.Service
}

var (
	errInterrupted = errors.New("interrupted before all events were committed and checked")
	errRelayEnded  = errors.New("the relay ended")
)

// say is for what is going on; results go to stdout.
func (d *demonstration) say(format string, args ...any) {
	fmt.Fprintf(d.stderr, format+"\n", args...)
}

func (d *demonstration) run(ctx context.Context) (err error) {
	defer func() {
		if ctx.Err() != nil {
			// Whatever broke off broke off because of that.
			if err = nil; d.opt.events > 0 {
				err = errInterrupted
			}
		}
		err = errors.Join(err, d.clean(ctx))
	}()
	d.names = newNames(d.opt.external())
	if d.opt.serve {
		return d.serve(ctx)
	}
	if err := d.startPostgres(ctx); err != nil {
		return err
	}
	if err := d.startKafka(ctx); err != nil {
		return err
	}
	if err := d.createTopic(ctx); err != nil {
		return err
	}
	pace := demo.Options{Config: d.conn, Schema: d.names.schema, Workers: 2, Pause: 1200 * time.Millisecond}
	if d.opt.events > 0 {
		pace.Events, pace.Workers, pace.Pause = d.opt.events, 4, 0
	}
	d.service = demo.New(pace)
	if err := d.prepare(ctx); err != nil {
		return err
	}
	instance, err := d.relay()
	if err != nil {
		return err
	}
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The relay is stopped softly, by the end of intake, also after a Ctrl-C.
	intake, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var relay errgroup.Group
	relay.Go(func() error {
		err := instance.Run(intake, context.WithoutCancel(ctx))
		if intake.Err() == nil {
			cancel(errRelayEnded)
		}
		return err
	})
	stopped := func() error {
		stop()
		return relay.Wait()
	}
	if d.opt.events > 0 {
		err = d.check(work, instance, stopped)
	} else {
		err = d.watch(work, instance)
	}
	relayErr := stopped()
	switch {
	case relayErr != nil:
		return relayErr // why everything else broke off
	case d.opt.events == 0 && err == nil:
		d.say("%d events committed, %d arrived", d.service.Counts().Events, instance.Snapshot().EventsPublished)
	}
	return err
}

// relay builds what "walpost run" would build of these flags.
func (d *demonstration) relay() (*wire.Instance, error) {
	flags := pflag.NewFlagSet("relay", pflag.ContinueOnError)
	config.AddFlags(flags, func(*config.Option) bool { return true })
	for name, value := range map[string]string{
		"dsn": d.dsn, "slot": d.names.slot, "publication": d.names.slot,
		"table": d.names.schema + ".outbox_events", "topic": d.names.topics + ".<aggregate_type>",
		"admin-listen": "off", "drain-timeout": "5s",
	} {
		if err := flags.Set(name, value); err != nil {
			return nil, err
		}
	}
	for _, broker := range d.brokers {
		if err := flags.Set("brokers", broker); err != nil {
			return nil, err
		}
	}
	// Neither the environment nor a file: nothing may lead elsewhere.
	cfg, err := config.Load(config.Sources{
		Flags: flags, Need: config.NeedPostgres | config.NeedSink,
		ReadFile: func(string) ([]byte, error) { return nil, os.ErrNotExist },
	})
	if err != nil {
		return nil, err
	}
	level := "warn"
	if d.opt.verbose {
		level = "info"
	}
	log, err := logging.New(logging.Options{Writer: d.stderr, Level: level, Format: logging.Console})
	if err != nil {
		return nil, err
	}
	return wire.New(wire.Options{Config: cfg, Version: "demo", Stdout: d.stdout, ReadFile: os.ReadFile, Log: log})
}

// check lets the service commit its events, waits for the relay, and compares.
func (d *demonstration) check(ctx context.Context, instance *wire.Instance, stop func() error) error {
	d.say("committing %d events and relaying them", d.opt.events)
	begin := time.Now()
	progress, quiet := context.WithCancel(ctx)
	var group errgroup.Group
	group.Go(func() error { d.progress(progress, instance); return nil })
	err := d.service.Run(ctx)
	if err == nil {
		err = d.confirmed(ctx, instance)
	}
	took := time.Since(begin)
	quiet()
	_ = group.Wait()
	if err != nil {
		return err
	}
	if err := stop(); err != nil {
		return err
	}
	d.say("reading everything back")
	committed, err := d.service.Committed(ctx)
	if err != nil {
		return err
	}
	records, err := topic.Read(ctx, d.brokers, d.names.topic())
	if err != nil {
		return err
	}
	return d.report(demo.Check(committed, d.service.RolledBack(), records), took)
}

func (d *demonstration) progress(ctx context.Context, instance *wire.Instance) {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			d.say("%d of %d committed, %d delivered", d.service.Counts().Events, d.opt.events, instance.Snapshot().EventsPublished)
		}
	}
}

const (
	flushedSQL   = `select pg_current_wal_flush_lsn()::text`
	confirmedSQL = `select coalesce(confirmed_flush_lsn, '0/0')::text from pg_replication_slots where slot_name = $1`
	// stuck is how long the confirmed position may stand still.
	stuck = time.Minute
)

// confirmed waits until PostgreSQL knows that everything which is committed by
// now is delivered.
func (d *demonstration) confirmed(ctx context.Context, instance *wire.Instance) error {
	return d.withPostgres(ctx, func(conn *pgx.Conn) error {
		target, err := queryLSN(ctx, conn, flushedSQL)
		if err != nil {
			return err
		}
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		var last pglogrepl.LSN
		moved := time.Now()
		for {
			lsn, err := queryLSN(ctx, conn, confirmedSQL, d.names.slot)
			switch {
			case err != nil:
				return err
			case lsn >= target:
				return nil
			case lsn != last:
				last, moved = lsn, time.Now()
			case time.Since(moved) > stuck:
				s := instance.Snapshot()
				return hint(fmt.Errorf("the relay stands still at %s, %s before the last commit: %s %s",
					lsn, size(int64(target-lsn)), s.State, s.Detail), s.Hint)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
}

func queryLSN(ctx context.Context, conn *pgx.Conn, sql string, args ...any) (pglogrepl.LSN, error) {
	var text string
	if err := conn.QueryRow(ctx, sql, args...).Scan(&text); err != nil {
		return 0, fmt.Errorf("ask for a position: %w", err)
	}
	return pglogrepl.ParseLSN(text)
}

// report prints the outcome. It returns an error when the check has failed.
func (d *demonstration) report(r *demo.Report, took time.Duration) error {
	counts := d.service.Counts()
	if counts.Events != r.Committed {
		return fmt.Errorf("the service committed %d events, and the outbox holds %d", counts.Events, r.Committed)
	}
	table := cli.NewTable(d.stdout)
	row := func(name, format string, args ...any) { table.Row(name, fmt.Sprintf(format, args...)) }
	row("from", "%s", d.postgres)
	row("to", "%s, topic %s", d.kafka, d.names.topic())
	row("committed", "%d events in %d transactions, %d orders", r.Committed, counts.Transactions, r.Aggregates)
	row("rolled back", "%d events", counts.RolledBack)
	row("read back", "%d records of %d partitions", r.Records, r.Partitions)
	row("took", "%.2f s, %.0f events/s, written, relayed and confirmed", took.Seconds(), float64(r.Committed)/took.Seconds())
	for _, f := range demo.Faults() {
		if n := r.Count[f]; n > 0 {
			row(string(f), "%d, first: %s", n, r.First[f])
		} else {
			row(string(f), "0")
		}
	}
	if r.OK() {
		table.Row("OK")
		return table.Flush()
	}
	table.Row("FAILED")
	return errors.Join(table.Flush(), hint(errors.New("what arrived is not what was committed"),
		"this is a fault of walpost: please report it, with the table above and the output of --verbose"))
}
