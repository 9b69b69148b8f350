package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/demo"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/setup"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/internal/testkit/topic"
	"github.com/walpost/walpost/slot"
)

const (
	partitions  = 12
	application = "walpost-demo"
	// How long an answer of Kafka, and the whole of the cleaning up, may take.
	kafkaTimeout = 20 * time.Second
	cleanTimeout = 45 * time.Second
)

// names are what the demo makes. On servers of somebody else they are unique.
type names struct {
	slot   string // and publication
	schema string
	topics string // prefix of the topics
}

func newNames(external bool) names {
	if !external {
		return names{slot: "walpost", schema: "public", topics: "outbox.event"}
	}
	id := "walpost_demo_" + uuid.NewString()[:8]
	return names{slot: id, schema: id, topics: id}
}

func (n names) topic() string { return n.topics + "." + demo.AggregateType }

// atEnd runs f when the demo ends, before everything that was registered
// earlier.
func (d *demonstration) atEnd(f func(context.Context) error) { d.ends = append(d.ends, f) }

func (d *demonstration) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	var errs []error
	for _, f := range slices.Backward(d.ends) {
		errs = append(errs, f(ctx))
	}
	return errors.Join(errs...)
}

func (d *demonstration) startPostgres(ctx context.Context) (err error) {
	dsn := d.opt.dsn
	if dsn == "" {
		// Nobody needs the data after a crash of the machine.
		server, err := pgserver.Start(ctx, pgserver.Options{FsyncOff: true, Log: d.say})
		if err != nil {
			return err
		}
		d.atEnd(func(context.Context) error { return server.Close() })
		dsn, d.postgres = server.DSN("postgres"), server.String()
	}
	d.dsn = dsn
	if d.conn, err = pg.ParseDSN(dsn); err != nil {
		return err
	}
	if d.opt.dsn != "" {
		d.postgres = "PostgreSQL at " + pg.Address(d.conn)
		return d.withPostgres(ctx, func(conn *pgx.Conn) error { return conn.Ping(ctx) }) // before more is started
	}
	return nil
}

func (d *demonstration) startKafka(ctx context.Context) error {
	switch {
	case len(d.opt.brokers) > 0:
		d.brokers, d.kafka = d.opt.brokers, fmt.Sprintf("Kafka at %v", d.opt.brokers)
	case d.opt.kafka == kafkaMaven:
		cluster, err := kafkaserver.Start(ctx, kafkaserver.Options{Log: d.say})
		if err != nil {
			return err
		}
		d.atEnd(func(context.Context) error { return cluster.Close() })
		d.brokers, d.kafka = cluster.Addr(), cluster.String()
	default:
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			return fmt.Errorf("start an in-process broker: %w", err)
		}
		d.atEnd(func(context.Context) error { cluster.Close(); return nil })
		d.brokers, d.kafka = cluster.ListenAddrs(), "an in-process broker"
		d.say("in-process Kafka broker at %s", d.brokers[0])
	}
	return nil
}

func (d *demonstration) createTopic(ctx context.Context) error {
	name := d.names.topic()
	create, cancel := context.WithTimeout(ctx, kafkaTimeout)
	defer cancel()
	if d.opt.external() {
		// Even when the creation fails: it may have happened.
		d.atEnd(func(ctx context.Context) error {
			if !d.reached {
				return nil
			}
			return hint(topic.Delete(ctx, d.brokers, name), "delete topic "+name+" yourself")
		})
	}
	if _, err := topic.List(create, d.brokers); err != nil {
		return hint(fmt.Errorf("reach Kafka at %v: %w", d.brokers, err), "check --brokers; it has to be a listener without TLS and SASL")
	}
	d.reached = true
	return hint(topic.Create(create, d.brokers, topic.Spec{Name: name, Partitions: partitions}),
		"the demo creates a topic of its own, and has to be allowed to")
}

// prepare makes the tables, the publication and the slot.
func (d *demonstration) prepare(ctx context.Context) error {
	if d.opt.external() {
		if err := d.makeSchema(ctx); err != nil {
			return err
		}
	}
	_, err := setup.Run(ctx, d.conn, setup.Options{
		Slot: d.names.slot, Publication: d.names.slot, CreateTables: true, Checkpoint: true,
		Tables: []slot.Table{{Schema: d.names.schema, Name: "outbox_events"}},
	})
	if err != nil {
		return err
	}
	return d.service.Prepare(ctx)
}

const (
	guardSQL    = `select to_regnamespace('walpost') is not null, to_regprocedure('walpost.append_only()') is not null`
	dropSlotSQL = `select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1`
)

// makeSchema makes a schema in somebody else's database, and takes care that
// nothing of ours stays there.
func (d *demonstration) makeSchema(ctx context.Context) error {
	name := pg.QuoteIdent(d.names.schema)
	return d.withPostgres(ctx, func(conn *pgx.Conn) error {
		var schema, guard bool // of "walpost init"
		if err := conn.QueryRow(ctx, guardSQL).Scan(&schema, &guard); err != nil {
			return fmt.Errorf("look for the append-only guard: %w", err)
		}
		drop := []string{"drop publication if exists " + name, "drop schema if exists " + name + " cascade"}
		// Not cascade: if somebody uses it by now, it stays.
		if !guard {
			drop = append(drop, "drop function if exists walpost.append_only()")
		}
		if !schema {
			drop = append(drop, "drop table if exists walpost.checkpoint, walpost.checkpoint_offset", "drop schema if exists walpost")
		}
		d.atEnd(func(ctx context.Context) error {
			way := "drop slot, publication and schema " + d.names.schema + " yourself: the slot keeps WAL"
			return hint(d.withPostgres(ctx, func(conn *pgx.Conn) error { return d.drop(ctx, conn, drop) }), way)
		})
		if _, err := conn.Exec(ctx, "create schema "+name); err != nil {
			return hint(fmt.Errorf("create schema %s: %w", d.names.schema, err),
				"the demo works in a schema of its own; its role needs the right to create in the database")
		}
		d.say("made schema, slot, publication and topic %s; they are dropped at the end", d.names.schema)
		return nil
	})
}

func (d *demonstration) drop(ctx context.Context, conn *pgx.Conn, statements []string) error {
	var errs []error
	// The walsender may need a moment to notice that the relay is gone.
	err := eventually(ctx, func() error { _, err := conn.Exec(ctx, dropSlotSQL, d.names.slot); return err })
	if err != nil {
		errs = append(errs, fmt.Errorf("drop slot %s: %w", d.names.slot, err))
	}
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil && pg.SQLState(err) != dependentObjects && pg.SQLState(err) != noSuchSchema {
			errs = append(errs, fmt.Errorf("%s: %w", statement, err))
		}
	}
	return errors.Join(errs...)
}

// SQLSTATEs that mean that there is nothing for us to drop.
const (
	dependentObjects = "2BP01"
	noSuchSchema     = "3F000"
)

func (d *demonstration) withPostgres(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := pg.Connect(ctx, d.conn, application)
	if err != nil {
		return err
	}
	return errors.Join(f(conn), conn.Close(context.WithoutCancel(ctx)))
}

// eventually repeats f for some seconds.
func eventually(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// hint gives an error that may be nil its second line.
func hint(err error, way string) error {
	if err == nil {
		return nil
	}
	return &cli.Exit{Code: cli.Failure, Err: err, Way: way}
}
