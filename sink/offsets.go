package sink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"
)

// Since says where in a partition to begin to look for what somebody else has
// written.
type Since struct {
	// Topics are those to look at.
	Topics func(name string) bool
	// Time is when the first of it may have been written, by the records'
	// timestamps.
	Time time.Time
	// Records takes the place of a Time that means nothing: so many of each
	// partition's newest.
	Records int64
}

// OffsetsSince finds, in every partition of the topics, the first record that is
// as new, or the end where none is. It waits for Kafka as long as it takes.
func (k *Kafka) OffsetsSince(ctx context.Context, s Since) (map[Partition]int64, error) {
	t := &tail{k: k}
	ends, times := make(map[string][]kafka.OffsetRequest), make(map[string][]kafka.OffsetRequest)
	err := t.again(ctx, func(call context.Context) error {
		clear(ends)
		clear(times)
		metadata, err := k.client.Metadata(call, &kafka.MetadataRequest{})
		if err != nil {
			return err
		}
		for _, topic := range metadata.Topics {
			switch {
			case topic.Internal || !s.Topics(topic.Name):
				continue
			case topic.Error != nil && classify(topic.Error).class == Passing:
				return fmt.Errorf("%s: %w", topic.Name, topic.Error) // to leave it out would be to repeat what is there
			case topic.Error != nil:
				k.log.Warn("topic not looked at: what is there may come twice", zap.String("topic", topic.Name), zap.Error(topic.Error))
				continue
			}
			for _, p := range topic.Partitions {
				ends[topic.Name] = append(ends[topic.Name], kafka.LastOffsetOf(p.ID))
				times[topic.Name] = append(times[topic.Name], kafka.TimeOffsetOf(p.ID, s.Time))
			}
		}
		return nil
	})
	if err != nil || len(ends) == 0 {
		return nil, err
	}
	offsets := make(map[Partition]int64)
	err = t.offsets(ctx, ends, func(p Partition, o kafka.PartitionOffsets) { offsets[p] = o.LastOffset })
	if err != nil {
		return nil, err
	}
	if s.Records > 0 {
		for p, end := range offsets {
			offsets[p] = max(end-s.Records, 0)
		}
		return offsets, nil
	}
	// Two calls: where no record is as new, the client library takes the answer
	// to the one question for that to the other.
	err = t.offsets(ctx, times, func(p Partition, o kafka.PartitionOffsets) {
		for offset := range o.Offsets {
			if end, ok := offsets[p]; ok && offset >= 0 {
				offsets[p] = min(end, offset)
			}
		}
	})
	return offsets, err
}

// offsets asks until it has every partition's answer; those that are refused are
// left out.
func (t *tail) offsets(ctx context.Context, requests map[string][]kafka.OffsetRequest, each func(Partition, kafka.PartitionOffsets)) error {
	return t.again(ctx, func(call context.Context) error {
		response, err := t.k.client.ListOffsets(call, &kafka.ListOffsetsRequest{Topics: requests})
		if err != nil {
			return err
		}
		for name, list := range response.Topics {
			for _, o := range list {
				switch {
				case o.Error == nil:
					each(Partition{name, int32(o.Partition)}, o)
				case classify(o.Error).class == Passing, errors.Is(o.Error, kafka.Unknown): // a leader that does not answer
					return fmt.Errorf("%s/%d: %w", name, o.Partition, o.Error)
				}
			}
		}
		return nil
	})
}
