package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/walpost/walpost/internal/wire"
)

// watch lets the service work at a human pace and prints what arrives, until
// ctx ends.
func (d *demonstration) watch(ctx context.Context, instance *wire.Instance) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(d.brokers...),
		kgo.ConsumeTopics(d.names.topic()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(500*time.Millisecond),
	)
	if err != nil {
		return fmt.Errorf("read from Kafka: %w", err)
	}
	defer client.Close()
	d.say("%s → %s, topic %s; Ctrl-C ends it", d.postgres, d.kafka, d.names.topic())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.service.Run(ctx) })
	group.Go(func() error {
		return d.withPostgres(ctx, func(conn *pgx.Conn) error { return d.print(ctx, conn, client, instance) })
	})
	err = group.Wait()
	if errors.Is(err, context.Canceled) || errors.Is(err, syscall.EPIPE) { // nobody wants more
		return nil
	}
	return err
}

const lineFormat = "%-12s %-10s %4s  %-16s %9s  %-15s  %s\n"

func (d *demonstration) print(ctx context.Context, conn *pgx.Conn, client *kgo.Client, instance *wire.Instance) error {
	_, err := fmt.Fprintf(d.stdout, lineFormat, "time", "order", "ver.", "event", "commit→", "part./offset", "slot lag")
	for err == nil {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := fetches.Err(); err != nil {
			d.say("reading from Kafka: %v", err)
		}
		if fetches.Empty() {
			continue
		}
		now := time.Now()
		lag, lagErr := d.lag(ctx, conn, instance)
		if lagErr != nil {
			return lagErr
		}
		for r := range fetches.RecordsAll() {
			headers := map[string]string{}
			for _, h := range r.Headers {
				headers[h.Key] = string(h.Value)
			}
			_, err = fmt.Fprintf(d.stdout, lineFormat, now.Format("15:04:05.000"), r.Key, headers["aggregate_version"], headers["event_type"],
				max(now.Sub(r.Timestamp), 0).Round(time.Millisecond), fmt.Sprintf("%d/%d", r.Partition, r.Offset), lag)
		}
	}
	return err
}

const lagSQL = `select pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint from pg_replication_slots where slot_name = $1`

// lag is the slot's, in bytes as PostgreSQL sees it and in seconds.
func (d *demonstration) lag(ctx context.Context, conn *pgx.Conn, instance *wire.Instance) (string, error) {
	var bytes int64
	if err := conn.QueryRow(ctx, lagSQL, d.names.slot).Scan(&bytes); err != nil {
		return "", fmt.Errorf("ask for the slot's lag: %w", err)
	}
	s := instance.Snapshot()
	return fmt.Sprintf("%s, %.1f s, %d delivered", size(bytes), s.Age.Seconds(), s.EventsPublished), nil
}

func size(bytes int64) string {
	if bytes < 10_000 {
		return fmt.Sprintf("%d B", bytes)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}
