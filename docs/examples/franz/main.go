// Franz is a consumer of the events of orders on franz-go: it keeps a history of
// each order.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/walpost/walpost/outbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The event's id is not unique here, so that a second effect could be seen.
const createHistory = `
create table if not exists history (
  n        bigint generated always as identity primary key,
  event_id uuid   not null,
  order_id text   not null,
  version  bigint not null,
  what     text   not null
)`

func run(ctx context.Context) error {
	for _, name := range []string{"DATABASE_URL", "KAFKA_BROKERS"} {
		if os.Getenv(name) == "" {
			return errors.New(name + " is not set")
		}
	}
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrate(ctx, pool); err != nil {
		return err
	}
	consumer, err := outbox.NewConsumer(pool, outbox.ConsumerOptions{Name: "history"})
	if err != nil {
		return err
	}
	w, err := newWorker(options{
		brokers:  strings.Split(os.Getenv("KAFKA_BROKERS"), ","),
		group:    "history",
		topics:   []string{"outbox.event.order"},
		consumer: consumer,
		handler:  note,
		log:      slog.Default(),
	})
	if err != nil {
		return err
	}
	return w.run(ctx)
}

func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, createHistory); err != nil {
		return fmt.Errorf("create the history: %w", err)
	}
	_, err := outbox.Migrate(ctx, pool, outbox.MigrateOptions{
		SchemaOptions: outbox.SchemaOptions{Parts: outbox.Consumption},
	})
	return err
}

// note is the effect of one event.
func note(ctx context.Context, tx pgx.Tx, m outbox.Message) error {
	_, err := tx.Exec(ctx, `insert into history (event_id, order_id, version, what) values ($1::uuid, $2, $3, $4)`,
		m.ID.String(), m.AggregateID, m.Version, m.Type)
	return err
}
