package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walpost/walpost/outbox"
)

// idle is after how long without a record consume ends.
const idle = 10 * time.Second

// crashed is the exit code of a crash on purpose.
const crashed = 42

func connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
}

// consume applies n records, one transaction and one offset each.
func consume(ctx context.Context, conn *pgx.Conn, n int, broken mistake) error {
	crashAfter, _ := strconv.Atoi(os.Getenv("CRASH_AFTER")) // 0 without one: never
	options := outbox.ConsumerOptions{Name: os.Getenv("CONSUMER"), Versions: outbox.RejectGaps}
	if broken == gapsIgnored {
		options.Versions = outbox.IgnoreVersions
	}
	consumer, err := outbox.NewConsumer(conn, options)
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Getenv("KAFKA_BROKERS"), ",")...),
		kgo.ConsumerGroup(os.Getenv("CONSUMER")),
		kgo.ConsumeTopics(os.Getenv("TOPIC")),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		// A partition is not given away in the middle of a record.
		kgo.BlockRebalanceOnPoll(),
	)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	for seen := 1; seen <= n; seen++ {
		record, err := next(ctx, client)
		if record == nil || err != nil {
			return err
		}
		if broken == offsetFirst {
			if err := client.CommitRecords(ctx, record); err != nil {
				return err
			}
		}
		if err := process(ctx, conn, consumer, record, broken); err != nil {
			return err
		}
		if seen == crashAfter {
			os.Exit(crashed)
		}
		if err := client.CommitRecords(ctx, record); err != nil {
			return fmt.Errorf("commit the offset: %w", err)
		}
	}
	return nil
}

// next is nil after a while without a record.
func next(ctx context.Context, client *kgo.Client) (*kgo.Record, error) {
	waiting, cancel := context.WithTimeout(ctx, idle)
	defer cancel()
	for {
		client.AllowRebalance()
		fetches := client.PollRecords(waiting, 1)
		if records := fetches.Records(); len(records) > 0 {
			return records[0], nil
		}
		// Neither records nor an error: what came was of a partition that is
		// another member's by now.
		switch err := fetches.Err(); {
		case errors.Is(err, context.DeadlineExceeded):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("read Kafka: %w", err)
		}
	}
}

func process(ctx context.Context, conn *pgx.Conn, consumer *outbox.Consumer, record *kgo.Record, broken mistake) error {
	m, err := outbox.Parse(outbox.Record{
		Topic: record.Topic, Partition: record.Partition, Offset: record.Offset,
		Key: record.Key, Value: record.Value, Time: record.Timestamp,
	}, headers(record))
	if err != nil {
		return err
	}
	switch broken {
	case noDedup:
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return apply(ctx, tx, m) })
	case dedupApart:
		tag, err := conn.Exec(ctx, `insert into processed_events (consumer, event_id) values ($1, $2) on conflict do nothing`,
			os.Getenv("CONSUMER"), m.ID.String())
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return apply(ctx, tx, m) })
	}
	_, err = consumer.Process(ctx, m, apply)
	return err
}

func headers(record *kgo.Record) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, h := range record.Headers {
			if !yield(h.Key, h.Value) {
				return
			}
		}
	}
}

// apply is the effect of an event.
func apply(ctx context.Context, tx pgx.Tx, m outbox.Message) error {
	var deposited struct{ Amount int64 }
	if err := json.Unmarshal(m.Value, &deposited); err != nil {
		return outbox.Permanent(err)
	}
	_, err := tx.Exec(ctx, `insert into account_view as v (id, balance, events) values ($1, $2, 1)
		on conflict (id) do update set balance = v.balance + excluded.balance, events = v.events + 1`, m.AggregateID, deposited.Amount)
	return err
}
