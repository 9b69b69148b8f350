// Billing is a small service that consumes the events of orders: an invoice for
// each order that is placed, a payment for each that is paid. The effects would be
// wrong if an event had one twice: a second invoice, or twice the payment.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/walpost/walpost/outbox"
	"github.com/walpost/walpost/outbox/outboxkafka"
)

const usage = "usage: billing run | billing invoices"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
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
	switch strings.Join(args, " ") {
	case "run":
		if err := migrate(ctx, pool); err != nil {
			return err
		}
		return consume(ctx, pool)
	case "invoices":
		return printInvoices(ctx, pool)
	}
	return errors.New(usage)
}

// The order's id is not unique here, so that a second invoice could be seen.
const createInvoices = `
create table if not exists invoices (
  id       bigint generated always as identity primary key,
  order_id text   not null,
  amount   bigint not null,
  paid     bigint not null default 0
)`

// migrate makes the table of invoices and what a consumer remembers.
func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, createInvoices); err != nil {
		return fmt.Errorf("create the table of invoices: %w", err)
	}
	_, err := outbox.Migrate(ctx, pool, outbox.MigrateOptions{
		SchemaOptions: outbox.SchemaOptions{Parts: outbox.Consumption},
	})
	return err
}

// consume applies events until ctx ends.
func consume(ctx context.Context, pool *pgxpool.Pool) error {
	consumer, err := outbox.NewConsumer(pool, outbox.ConsumerOptions{
		Name: "billing",
		Observe: func(r outbox.Result) {
			if r.Err == nil {
				fmt.Printf("order %s %s: %s\n", r.Message.AggregateID, r.Message.Type, r.Outcome)
			}
		},
	})
	if err != nil {
		return err
	}
	runner, err := outboxkafka.New(outboxkafka.Options{
		Brokers:  strings.Split(os.Getenv("KAFKA_BROKERS"), ","),
		Group:    "billing",
		Topics:   []string{"outbox.event.order"},
		Consumer: consumer,
		Handler:  bill,
		Log:      slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	fmt.Println("billing is running")
	return runner.Run(ctx)
}

// bill is the effect of one event. It shares its transaction with the note that
// the event has been applied.
func bill(ctx context.Context, tx pgx.Tx, m outbox.Message) error {
	var order struct{ Amount int64 }
	if err := json.Unmarshal(m.Value, &order); err != nil {
		return outbox.Permanent(fmt.Errorf("read the order: %w", err))
	}
	switch m.Type {
	case "OrderPlaced":
		_, err := tx.Exec(ctx, `insert into invoices (order_id, amount) values ($1, $2)`, m.AggregateID, order.Amount)
		return err
	case "OrderPaid":
		_, err := tx.Exec(ctx, `update invoices set paid = paid + $2 where order_id = $1`, m.AggregateID, order.Amount)
		return err
	}
	return nil // a type that this service has no use for
}

func printInvoices(ctx context.Context, pool *pgxpool.Pool) error {
	rows, err := pool.Query(ctx, `select order_id, amount, paid from invoices order by order_id::bigint, id`)
	if err != nil {
		return err
	}
	type invoice struct {
		OrderID      string
		Amount, Paid int64
	}
	invoices, err := pgx.CollectRows(rows, pgx.RowToStructByPos[invoice])
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "order\tamount\tpaid")
	for _, i := range invoices {
		fmt.Fprintf(table, "%s\t%d\t%d\n", i.OrderID, i.Amount, i.Paid)
	}
	return table.Flush()
}
