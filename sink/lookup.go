package sink

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/walpost/walpost/internal/retry"
)

// ErrNoTopic says that a topic to be read does not exist.
var ErrNoTopic = errors.New("the topic does not exist")

// LastValues reads a compacted topic, such as Kafka Connect's offsets, up to its
// present end, and gives the last value of every key that keep wants; nil is one
// that was deleted. Only those are held in memory. Of opt it uses what says how to
// connect. It tries again after passing failures, until ctx ends. A record of a
// transaction that was aborted counts like any other.
func LastValues(ctx context.Context, opt Options, topic string, keep func(key []byte) bool) (map[string][]byte, error) {
	opt.Acked = func([]Ack) {}
	k, err := New(opt)
	if err != nil {
		return nil, err
	}
	defer k.transport.CloseIdleConnections()
	l := &lookup{k: k, topic: topic, keep: keep}
	ends, err := l.ends(ctx)
	if err != nil {
		return nil, fmt.Errorf("read topic %q: %w", topic, err)
	}
	values := make(map[string][]byte)
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(tailParallel)
	for p, b := range ends {
		group.Go(func() error {
			found, err := l.partition(ctx, p, b)
			if err != nil {
				return fmt.Errorf("read topic %q, partition %d: %w", topic, p.Number, err)
			}
			// A key is in one partition only, unless the topic was given more.
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(values, found)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return values, nil
}

type lookup struct {
	k     *Kafka
	topic string
	keep  func(key []byte) bool
}

// again repeats a call while its failure passes and ctx lasts; the error is the
// call's own.
func (l *lookup) again(ctx context.Context, call func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		timed, cancel := context.WithTimeout(ctx, l.k.opt.RequestTimeout)
		err := call(timed)
		cancel()
		if err == nil || errors.Is(err, ErrNoTopic) || classify(err).class != Passing {
			return err
		}
		if retry.Wait(ctx, l.k.timing.backoff(Passing, attempt)) != nil {
			return err
		}
	}
}

func (l *lookup) ends(ctx context.Context) (map[Partition]bounds, error) {
	found := make(map[Partition]bounds)
	err := l.again(ctx, func(call context.Context) error {
		cluster, err := l.k.metadata(call, []string{l.topic})
		if err != nil {
			return err
		}
		var asked []Partition
		for _, t := range cluster.Topics {
			switch err := kafka.Error(t.ErrorCode); {
			case errors.Is(err, kafka.UnknownTopicOrPartition):
				return ErrNoTopic
			case err != 0:
				return err
			}
			for _, p := range t.Partitions {
				asked = append(asked, Partition{l.topic, p.PartitionIndex})
			}
		}
		if len(asked) == 0 {
			return ErrNoTopic
		}
		first, last, err := l.k.listBounds(call, asked)
		if err != nil {
			return err
		}
		for p, o := range last {
			if o.err != nil {
				return o.err
			}
			found[p] = bounds{first[p].at, o.at, o.leader}
		}
		return nil
	})
	return found, err
}

func (l *lookup) partition(ctx context.Context, p Partition, b bounds) (map[string][]byte, error) {
	found := make(map[string][]byte)
	at := &place{p, b.leader}
	for from := b.First; from < b.Last; {
		err := l.again(ctx, func(call context.Context) error {
			next, err := l.fetch(call, at, from, found)
			if err == nil {
				from = next
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// fetch reads one answer and returns the offset behind it.
func (l *lookup) fetch(ctx context.Context, p *place, from int64, into map[string][]byte) (int64, error) {
	return l.k.fetch(ctx, p, from, func(r *kafka.Record) error {
		key, err := kafka.ReadAll(r.Key)
		if err != nil || key == nil || !l.keep(key) {
			return err
		}
		into[string(key)], err = kafka.ReadAll(r.Value)
		return err
	})
}
