package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/outbox"
)

// write makes n deposits, from number start on.
func write(ctx context.Context, conn *pgx.Conn, n, start int, broken mistake) error {
	writer, err := outbox.NewWriter(outbox.WriterOptions{RequireVersion: true})
	if err != nil {
		return err
	}
	guess := map[string]int64{}
	for i := start; i < start+n; i++ {
		if err := deposit(ctx, conn, writer, i, broken, guess); err != nil {
			return fmt.Errorf("deposit %d: %w", i, err)
		}
	}
	return nil
}

func deposit(ctx context.Context, conn *pgx.Conn, writer *outbox.Writer, i int, broken mistake, guess map[string]int64) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // does nothing after the commit
	event := &outbox.Event{
		AggregateType: "account",
		AggregateID:   fmt.Sprintf("acct-%d", i%7),
		Type:          "Deposited",
		Payload:       map[string]int{"amount": 1, "n": i},
	}
	// The update locks the account, so its events get into the outbox in the order
	// of their versions.
	err = tx.QueryRow(ctx, `update account set balance = balance + 1, version = version + 1 where id = $1 returning version`,
		event.AggregateID).Scan(&event.Version)
	if err != nil {
		return err
	}
	if broken == versionGuessed {
		guess[event.AggregateID]++
		event.Version = guess[event.AggregateID]
	}
	if broken == outsideTransaction {
		if err := writeApart(ctx, writer, event); err != nil {
			return err
		}
	} else if err := writer.Write(ctx, tx, event); err != nil {
		return err
	}
	if i%10 == 9 {
		return tx.Rollback(ctx)
	}
	return tx.Commit(ctx)
}

// writeApart is the mistake of a second connection.
func writeApart(ctx context.Context, writer *outbox.Writer, event *outbox.Event) error {
	conn, err := connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return writer.Write(ctx, tx, event) })
}
