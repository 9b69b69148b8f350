package outboxtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/outbox"
	"github.com/walpost/walpost/outbox/outboxtest"
)

// t is what a test function gets.
var t *testing.T

func placeOrder(ctx context.Context, tx pgx.Tx, id string) error { return nil }

func reserveStock(ctx context.Context, tx pgx.Tx, m outbox.Message) error { return nil }

func ExampleRequireWritten() {
	db := outboxtest.DB(t) // OUTBOXTEST_DSN=postgres://...
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if err := placeOrder(t.Context(), tx, "42"); err != nil {
		t.Fatal(err)
	}
	outboxtest.RequireWritten(t, tx, outboxtest.Want{
		Type: "OrderPlaced", AggregateID: "42", Version: 1,
		Payload: map[string]any{"total": "12.50"},
	})
}

func ExampleRequireNothingWritten() {
	db := outboxtest.DB(t)
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := placeOrder(t.Context(), tx, "no such customer"); err == nil {
		t.Fatal("it was accepted")
	}
	outboxtest.RequireNothingWritten(t, tx, outboxtest.Want{Type: "OrderPlaced"})
}

func ExampleStorm() {
	db := outboxtest.DB(t)
	// The service has written its events; now the consumer gets them.
	events := outboxtest.Messages(t, db)
	consumer, err := outbox.NewConsumer(db, outbox.ConsumerOptions{Name: "stock"})
	if err != nil {
		t.Fatal(err)
	}
	outboxtest.Storm(t, consumer, reserveStock, events, func() {
		var reserved int
		if err := db.QueryRow(t.Context(), "select sum(quantity) from reservations").Scan(&reserved); err != nil {
			t.Fatal(err)
		}
		if reserved != 7 {
			t.Errorf("%d reserved, want 7", reserved)
		}
	})
}
