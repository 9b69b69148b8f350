package main

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walpost/walpost/outbox"
)

const (
	// maxPoll bounds what is applied before the group may rebalance: it must take
	// less time than rebalanceTimeout, however slow the database is.
	maxPoll          = 500
	rebalanceTimeout = time.Minute
	// patience is how long one event may take, also when the process is stopped.
	patience = 20 * time.Second
	// pause is how long a partition rests whose event could not be dealt with.
	pause = time.Second
)

// options of a worker.
type options struct {
	brokers  []string
	group    string
	topics   []string
	consumer *outbox.Consumer
	handler  outbox.Handler
	log      *slog.Logger
	kafka    []kgo.Opt // more of them: TLS, SASL, timeouts
}

// worker is a member of a consumer group.
type worker struct {
	options
	client *kgo.Client
}

func newWorker(o options) (*worker, error) {
	w := &worker{options: o}
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(o.brokers...),
		kgo.ConsumerGroup(o.group),
		kgo.ConsumeTopics(o.topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.RebalanceTimeout(rebalanceTimeout),
		// Only what was marked is committed, and only what has been dealt with is
		// marked.
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(time.Second),
		// No partition changes hands between a poll and AllowRebalance.
		kgo.BlockRebalanceOnPoll(),
		// A callback of one's own replaces the commit that the client makes here.
		kgo.OnPartitionsRevoked(func(ctx context.Context, client *kgo.Client, _ map[string][]int32) {
			w.commit(ctx, client)
		}),
		// Lost partitions have another owner already, so there is nothing to commit.
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
			o.log.Warn("partitions lost", "partitions", lost)
		}),
	}, o.kafka...)...)
	if err != nil {
		return nil, err
	}
	w.client = client
	return w, nil
}

// commit commits what is marked. If it cannot be, the events come again, and are
// known again.
func (w *worker) commit(ctx context.Context, client *kgo.Client) {
	if err := client.CommitMarkedOffsets(ctx); err != nil {
		w.log.Warn("offsets not committed", "err", err)
	}
}

// run applies events until ctx ends. It finishes what it is at, commits, and
// leaves the group.
func (w *worker) run(ctx context.Context) error {
	defer w.client.CloseAllowingRebalance()
	for ctx.Err() == nil {
		fetches := w.client.PollRecords(ctx, maxPoll)
		if fetches.IsClientClosed() {
			return errors.New("the Kafka client is closed")
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			if ctx.Err() == nil { // else it is only that
				w.log.Warn("not fetched", "topic", topic, "partition", partition, "err", err)
			}
		})
		w.applyAll(ctx, fetches)
		w.client.AllowRebalance()
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	w.commit(end, w.client)
	return nil
}

// applyAll applies the partitions of a poll side by side: events of one aggregate
// are in one partition.
func (w *worker) applyAll(ctx context.Context, fetches kgo.Fetches) {
	var lanes sync.WaitGroup
	var mu sync.Mutex
	var failed []*kgo.Record
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		lanes.Go(func() {
			if r := w.apply(ctx, p.Records); r != nil {
				mu.Lock()
				failed = append(failed, r)
				mu.Unlock()
			}
		})
	})
	lanes.Wait()
	for _, r := range failed {
		w.rewind(r)
	}
}

// apply applies a partition's records in order, and gives the one that it could
// not deal with. That one must not be skipped, nor be passed by a later one.
func (w *worker) apply(ctx context.Context, records []*kgo.Record) *kgo.Record {
	for _, r := range records {
		if ctx.Err() != nil {
			return nil // the next owner begins here
		}
		if err := w.applyOne(ctx, r); err != nil {
			w.log.Error("not applied", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "err", err)
			return r
		}
		w.client.MarkCommitRecords(r)
	}
	return nil
}

func (w *worker) applyOne(ctx context.Context, r *kgo.Record) error {
	m, err := outbox.Parse(outbox.Record{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value, Time: r.Timestamp,
	}, headers(r))
	if err != nil {
		// A topic with others' records in it returns nil here for those that it knows.
		return err
	}
	// The end of ctx stops the worker between two events, not within one.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_, err = w.consumer.Process(ctx, m, w.handler)
	return err
}

func headers(r *kgo.Record) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, h := range r.Headers {
			if !yield(h.Key, h.Value) {
				return
			}
		}
	}
}

// rewind lets the partition go on with the record r, after a pause in which the
// others go on.
func (w *worker) rewind(r *kgo.Record) {
	partition := map[string][]int32{r.Topic: {r.Partition}}
	w.client.PauseFetchPartitions(partition)
	w.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{
		r.Topic: {r.Partition: {Epoch: r.LeaderEpoch, Offset: r.Offset}},
	})
	time.AfterFunc(pause, func() { w.client.ResumeFetchPartitions(partition) })
}
