package outboxkafka_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"

	"github.com/walpost/walpost/outbox"
	"github.com/walpost/walpost/outbox/outboxkafka"
)

// pool is the service's *pgxpool.Pool.
var pool outbox.Beginner

func reserveStock(ctx context.Context, tx pgx.Tx, m outbox.Message) error {
	_, err := tx.Exec(ctx, `insert into reservations (order_id) values ($1)`, m.AggregateID)
	return err
}

func ExampleRunner() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	consumer, err := outbox.NewConsumer(pool, outbox.ConsumerOptions{Name: "stock"})
	if err != nil {
		slog.Error("consumer", "err", err)
		return
	}
	runner, err := outboxkafka.New(outboxkafka.Options{
		Brokers:  []string{"kafka:9092"},
		Group:    "stock",
		Topics:   []string{"outbox.event.order"},
		Consumer: consumer,
		Handler:  reserveStock,
		Log:      slog.Default(),
	})
	if err != nil {
		slog.Error("runner", "err", err)
		return
	}
	if err := runner.Run(ctx); err != nil { // until SIGTERM
		slog.Error("runner", "err", err)
	}
}

func ExampleOptions_security() {
	options := outboxkafka.Options{
		Brokers: []string{"kafka:9093"},
		Dialer: &kafka.Dialer{
			Timeout: 10 * time.Second,
			TLS:     &tls.Config{MinVersion: tls.VersionTLS12},
			SASLMechanism: plain.Mechanism{
				Username: os.Getenv("KAFKA_USER"),
				Password: os.Getenv("KAFKA_PASSWORD"),
			},
		},
	}
	_ = options // and group, topics, consumer, handler, as in the example of Runner
}

// A health check: partitions that stand still for a minute need somebody.
func ExampleRunner_Partitions() {
	healthy := func(runner *outboxkafka.Runner) bool {
		for _, p := range runner.Partitions() {
			if p.Err != nil && time.Since(p.Since) > time.Minute {
				return false
			}
		}
		return true
	}
	_ = healthy
}
