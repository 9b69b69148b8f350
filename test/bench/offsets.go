package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/internal/testkit/topic"
)

// offsets asks the broker how many records there are in a topic. It keeps its
// connection, so that asking costs little.
type offsets struct {
	brokers   []string
	client    *kafka.Client
	transport *kafka.Transport
	widths    map[string]int // partitions of the topics that were made
}

func newOffsets(brokers []string) *offsets {
	transport := &kafka.Transport{MetadataTTL: 5 * time.Second}
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Transport: transport, Timeout: 10 * time.Second}
	return &offsets{brokers: brokers, client: client, transport: transport, widths: map[string]int{}}
}

func (o *offsets) close() error {
	o.transport.CloseIdleConnections()
	return nil
}

// count returns the records that consumers can read, of a topic that began empty
// and has neither transactions, whose markers count too, nor compaction.
func (o *offsets) count(ctx context.Context, name string) (int64, error) {
	requests := make([]kafka.OffsetRequest, o.widths[name])
	for i := range requests {
		requests[i] = kafka.LastOffsetOf(i)
	}
	response, err := o.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{name: requests}})
	if err != nil {
		return 0, err
	}
	var n int64
	for _, p := range response.Topics[name] {
		if p.Error != nil {
			return 0, fmt.Errorf("topic %q, partition %d: %w", name, p.Partition, p.Error)
		}
		n += p.LastOffset
	}
	return n, nil
}

// await returns when at least n records are there, and the time that was. It
// ends early when c, unless that is nil, has ended.
func (o *offsets) await(ctx context.Context, name string, n int64, c *child, interval time.Duration) (time.Time, error) {
	var at time.Time
	err := poll(ctx, interval, patience, fmt.Sprintf("%d records", n), func() (bool, error) {
		got, err := o.count(ctx, name)
		at = time.Now()
		// A topic that was just made has partitions whose leader has not heard
		// of it.
		var code kafka.Error
		if errors.As(err, &code) && code.Temporary() {
			return false, nil
		}
		if err != nil || got >= n || c == nil {
			return got >= n, err
		}
		return false, c.ended()
	})
	return at, err
}

// create makes a topic and returns when its partitions answer, so that a relay
// never has to wait for them.
func (o *offsets) create(ctx context.Context, spec topic.Spec) error {
	if err := topic.Create(ctx, o.brokers, spec); err != nil {
		return err
	}
	o.widths[spec.Name] = spec.Partitions
	_, err := o.await(ctx, spec.Name, 0, nil, 10*time.Millisecond)
	return err
}
