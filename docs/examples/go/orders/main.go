// Orders is a small service that writes events: each change of an order, and the
// event that tells of it, are one transaction.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/walpost/walpost/outbox"
)

const usage = "usage: orders migrate | orders place N"

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
	if os.Getenv("DATABASE_URL") == "" {
		return errors.New("DATABASE_URL is not set: it is the connection string of the service's database")
	}
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	switch {
	case len(args) == 1 && args[0] == "migrate":
		return migrate(ctx, pool)
	case len(args) == 2 && args[0] == "place":
		n, err := strconv.Atoi(args[1])
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a number of orders: %s", args[1], usage)
		}
		return place(ctx, pool, n)
	}
	return errors.New(usage)
}

const createOrders = `
create table if not exists orders (
  id      bigint generated always as identity primary key,
  amount  bigint not null,
  status  text   not null,
  version bigint not null
)`

// migrate makes the table of orders and the outbox.
func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, createOrders); err != nil {
		return fmt.Errorf("create the table of orders: %w", err)
	}
	report, err := outbox.Migrate(ctx, pool, outbox.MigrateOptions{
		SchemaOptions: outbox.SchemaOptions{Parts: outbox.Writing},
	})
	if err != nil {
		return err
	}
	for _, step := range report.Steps {
		fmt.Println(step.Object, step.State)
	}
	return nil
}

// place places n orders, and pays each.
func place(ctx context.Context, pool *pgxpool.Pool, n int) error {
	writer, err := outbox.NewWriter(outbox.WriterOptions{RequireVersion: true})
	if err != nil {
		return err
	}
	for i := range n {
		id, err := placeOrder(ctx, pool, writer, int64(10*(i+1)))
		if err != nil {
			return err
		}
		if err := payOrder(ctx, pool, writer, id); err != nil {
			return err
		}
		fmt.Printf("order %d placed and paid\n", id)
	}
	return nil
}

// order is the payload of an event.
type order struct {
	Amount int64 `json:"amount"`
}

func placeOrder(ctx context.Context, pool *pgxpool.Pool, writer *outbox.Writer, amount int64) (id int64, err error) {
	err = outbox.RunTx(ctx, pool, writer, func(tx pgx.Tx, events *outbox.Buffer) error {
		err := tx.QueryRow(ctx, `insert into orders (amount, status, version) values ($1, 'placed', 1) returning id`, amount).Scan(&id)
		events.Add(&outbox.Event{
			AggregateType: "order", AggregateID: fmt.Sprint(id), Version: 1,
			Type: "OrderPlaced", Payload: order{amount},
		})
		return err
	})
	return id, err
}

func payOrder(ctx context.Context, pool *pgxpool.Pool, writer *outbox.Writer, id int64) error {
	return outbox.RunTx(ctx, pool, writer, func(tx pgx.Tx, events *outbox.Buffer) error {
		var amount, version int64
		// The version counts the order's events, and the update locks its row.
		err := tx.QueryRow(ctx, `update orders set status = 'paid', version = version + 1
			where id = $1 returning amount, version`, id).Scan(&amount, &version)
		events.Add(&outbox.Event{
			AggregateType: "order", AggregateID: fmt.Sprint(id), Version: version,
			Type: "OrderPaid", Payload: order{amount},
		})
		return err
	})
}
