package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/walpost/walpost/internal/testkit/debezium"
	"github.com/walpost/walpost/internal/testkit/topic"
)

// tuned is what raises Debezium's rate and lowers its latency.
func tuned() map[string]string {
	return map[string]string{
		"max.batch.size": "16384", "max.queue.size": "65536", "poll.interval.ms": "10",
		"producer.override.linger.ms": "5", "producer.override.batch.size": "524288",
		"producer.override.buffer.memory": "134217728", "producer.override.enable.idempotence": "true",
		"producer.override.max.in.flight.requests.per.connection": "5",
	}
}

// connector routes the bench's table, in the columns that walpost's init gives
// it, into one topic.
func (r *rig) connector(slotName, topicName string, more map[string]string) (map[string]string, error) {
	config, err := debezium.Outbox(r.pg.DSN(database), slotName, publication, "public.outbox_events")
	if err != nil {
		return nil, err
	}
	maps.Copy(config, map[string]string{
		"transforms.outbox.table.field.event.id":              "event_id",
		"transforms.outbox.table.field.event.key":             "aggregate_id",
		"transforms.outbox.table.field.event.payload":         "payload",
		"transforms.outbox.route.by.field":                    "aggregate_type",
		"transforms.outbox.route.topic.replacement":           topicName,
		"transforms.outbox.table.fields.additional.placement": "event_type:header:eventType",
	})
	maps.Copy(config, more)
	return config, nil
}

// drainDebezium runs a Connect worker with one connector. Its CPU and memory are
// those of the JVM from its launch to the last record; the time that a JVM takes
// to start is in the whole rate, not in the rate from the first record to the
// last.
func (r *rig) drainDebezium(ctx context.Context, j job, d *Drain, more map[string]string) error {
	name := "bench." + j.slot
	if err := r.offsets.create(ctx, topic.Spec{Name: name, Partitions: partitions}); err != nil {
		return err
	}
	config, err := r.connector(j.slot, name, more)
	if err != nil {
		return err
	}
	d.Start = time.Now()
	p, err := debezium.Start(ctx, debezium.Options{Connector: config, Brokers: r.cluster.Addr(), Log: r.say, Worker: map[string]string{
		"connector.client.config.override.policy": "All",
	}})
	if err != nil {
		return err
	}
	err = func() error {
		sender := r.watchSender(ctx, j.slot)
		defer sender.seconds()
		if d.First, err = r.offsets.await(ctx, name, 1, nil, 3*time.Millisecond); err != nil {
			return fmt.Errorf("%w\n%s", err, p.LogTail())
		}
		if d.Last, err = r.offsets.await(ctx, name, int64(j.rows), nil, 5*time.Millisecond); err != nil {
			return fmt.Errorf("%w\n%s", err, p.LogTail())
		}
		d.WalSender = sender.seconds()
		if d.CPU, err = cpuOf(p.PID()); err != nil {
			return err
		}
		d.PeakRSS, err = peakRSS(p.PID())
		return err
	}()
	if err = errors.Join(err, p.Close()); err != nil {
		return err
	}
	n, err := r.offsets.count(ctx, name)
	if err != nil {
		return err
	}
	if n != int64(j.rows) {
		return fmt.Errorf("%d records in the topic, want %d", n, j.rows)
	}
	return topic.Delete(ctx, r.cluster.Addr(), name)
}
