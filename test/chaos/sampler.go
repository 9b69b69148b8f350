package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// sample says: everything below this position was confirmed, and this is how
// far the partitions reached at a later moment.
type sample struct {
	at        time.Time
	confirmed uint64
	ends      map[string][]int64 // by topic and partition; -1 unknown
}

// sampler takes samples as long as it runs.
type sampler struct {
	bench *bench

	mu      sync.Mutex
	samples []sample
}

func newSampler(b *bench) *sampler { return &sampler{bench: b} }

func (s *sampler) all() []sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.samples
}

func (s *sampler) run(ctx context.Context) {
	transport := &kafka.Transport{MetadataTTL: 500 * time.Millisecond, DialTimeout: time.Second}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(s.bench.servers.kafka.DirectAddr()...), Transport: transport, Timeout: 2 * time.Second}
	var last uint64
	for ctx.Err() == nil {
		confirmed, moved := s.bench.recorder.position()
		if confirmed > last {
			// Kafka is asked after the position was read: what it says then must
			// hold for the position.
			if ends, err := ends(ctx, client); err == nil {
				last = confirmed
				s.mu.Lock()
				s.samples = append(s.samples, sample{time.Now(), confirmed, ends})
				s.mu.Unlock()
			}
		}
		pause(ctx, 200*time.Millisecond)
		if confirmed == last {
			select {
			case <-moved:
			case <-ctx.Done():
			}
		}
	}
}

func ends(ctx context.Context, client *kafka.Client) (map[string][]int64, error) {
	all := map[string][]int64{}
	topics := map[string][]kafka.OffsetRequest{}
	for _, t := range aggregateTypes {
		name := topicOf + t
		n, err := partitionCount(ctx, client, name)
		if err != nil {
			return nil, err
		}
		for p := range n {
			all[name] = append(all[name], -1)
			topics[name] = append(topics[name], kafka.LastOffsetOf(p))
		}
	}
	response, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: topics})
	if err != nil {
		return nil, err
	}
	for name, list := range response.Topics {
		for _, o := range list {
			if o.Error == nil && o.LastOffset >= 0 && o.Partition < len(all[name]) {
				all[name][o.Partition] = o.LastOffset
			}
		}
	}
	return all, nil
}

func partitionCount(ctx context.Context, client *kafka.Client, name string) (int, error) {
	response, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{name}})
	if err != nil {
		return 0, err
	}
	for _, t := range response.Topics {
		if t.Name == name {
			return len(t.Partitions), t.Error
		}
	}
	return 0, fmt.Errorf("topic %q is not in the answer", name)
}
