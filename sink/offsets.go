package sink

import (
	"context"
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
	defer k.disconnect()
	t := &tail{k: k}
	var partitions []Partition
	err := t.again(ctx, func(call context.Context) error {
		partitions = nil
		cluster, err := k.metadata(call, nil)
		if err != nil {
			return err
		}
		for i := range cluster.Topics {
			topic := &cluster.Topics[i]
			err := kafka.Error(topic.ErrorCode)
			switch {
			case topic.IsInternal || !s.Topics(topic.Name):
				continue
			case err != 0 && classify(err).class == Passing:
				return fmt.Errorf("%s: %w", topic.Name, err) // to leave it out would be to repeat what is there
			case err != 0:
				k.log.Warn("topic not looked at: what is there may come twice", zap.String("topic", topic.Name), zap.Error(err))
				continue
			}
			for _, p := range topic.Partitions {
				partitions = append(partitions, Partition{topic.Name, p.PartitionIndex})
			}
		}
		return nil
	})
	if err != nil || len(partitions) == 0 {
		return nil, err
	}
	offsets, err := t.offsets(ctx, partitions, latest)
	if err != nil {
		return nil, err
	}
	if s.Records > 0 {
		for p, end := range offsets {
			offsets[p] = max(end-s.Records, 0)
		}
		return offsets, nil
	}
	since, err := t.offsets(ctx, partitions, max(s.Time.UnixMilli(), 0))
	for p, at := range since {
		if end, ok := offsets[p]; ok && at >= 0 {
			offsets[p] = min(end, at)
		}
	}
	return offsets, err
}

// offsets asks until it has every partition's answer; those that are refused are
// left out.
func (t *tail) offsets(ctx context.Context, partitions []Partition, time int64) (map[Partition]int64, error) {
	found := make(map[Partition]int64, len(partitions))
	err := t.again(ctx, func(call context.Context) error {
		answers, err := t.k.listOffsets(call, partitions, time)
		if err != nil {
			return err
		}
		for p, o := range answers {
			switch {
			case o.err == nil:
				found[p] = o.at
			case !o.answered() || classify(o.err).class == Passing:
				return fmt.Errorf("%s/%d: %w", p.Topic, p.Number, o.err)
			}
		}
		return nil
	})
	return found, err
}
