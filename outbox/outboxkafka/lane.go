package outboxkafka

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/outbox"
)

// lane is a partition that this member has.
type lane struct {
	runner     *Runner
	log        *slog.Logger
	topic      string
	partition  int
	start      int64 // may be one of kafka-go's relative offsets
	fetchBytes int64
	marks      *marks

	mu         sync.Mutex
	state      Partition
	fetchErr   error
	fetchSince time.Time
}

// batch is what a fetch gave: records in order, and where to go on behind them.
type batch struct {
	records []kafka.Message
	next    int64
}

func (l *lane) String() string { return fmt.Sprintf("%s/%d", l.topic, l.partition) }

// run fetches and processes until ctx ends. The next fetch is made while a batch
// is processed. Handlers run under another context, which ends later.
func (l *lane) run(ctx, handlers context.Context) {
	batches := make(chan batch) // closed by the fetching goroutine
	var fetching sync.WaitGroup
	defer fetching.Wait()
	fetching.Go(func() {
		defer close(batches)
		l.fetchAll(ctx, batches)
	})
	for b := range batches {
		l.process(ctx, handlers, b)
	}
}

// process deals with the records one after the other. What is not begun when ctx
// ends belongs to the partition's next owner.
func (l *lane) process(ctx, handlers context.Context, b batch) {
	wait := newBackoff()
	for left := b.records; len(left) > 0; {
		if ctx.Err() != nil {
			return
		}
		n, err := l.step(handlers, left)
		if n > 0 {
			l.done(left[n-1].Offset + 1)
			left, wait = left[n:], newBackoff()
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			l.log.InfoContext(ctx, "event left to the next owner", "offset", left[0].Offset, "err", err)
			return
		}
		l.stalled(ctx, left[0].Offset, err)
		if !wait.wait(ctx) {
			return
		}
	}
	l.done(b.next)
}

// step deals with one or some of the records, and says with how many.
func (l *lane) step(ctx context.Context, records []kafka.Message) (int, error) {
	var ms []outbox.Message
	for i := range records[:min(len(records), l.runner.opt.Batch)] {
		m, err := parse(&records[i])
		if err == nil {
			ms = append(ms, m)
			continue
		}
		if i > 0 {
			break // those before it come first
		}
		if l.runner.opt.NotAnEvent == nil {
			return 0, err
		}
		if err := l.runner.opt.NotAnEvent(ctx, records[i], err); err != nil {
			return 0, err
		}
		return 1, nil
	}
	if len(ms) == 1 {
		r, err := l.runner.consumer.Process(ctx, ms[0], l.runner.opt.Handler)
		if err != nil {
			return 0, err
		}
		l.report(ctx, r)
		return 1, nil
	}
	results, err := l.runner.consumer.ProcessBatch(ctx, ms, l.runner.opt.Handler)
	for _, r := range results {
		l.report(ctx, r)
	}
	return len(results), err
}

func parse(record *kafka.Message) (outbox.Message, error) {
	return outbox.Parse(outbox.Record{
		Topic: record.Topic, Partition: int32(record.Partition), Offset: record.Offset,
		Key: record.Key, Value: record.Value, Time: record.Time,
	}, headers(record.Headers))
}

func headers(list []kafka.Header) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, h := range list {
			if !yield(h.Key, h.Value) {
				return
			}
		}
	}
}

// report tells of what somebody will have to look at. The rest is for
// ConsumerOptions.Observe.
func (l *lane) report(ctx context.Context, r outbox.Result) {
	switch r.Outcome {
	case outbox.Parked, outbox.Held, outbox.TooOld:
		args := []any{"event_id", r.Message.ID.String(), "event_type", r.Message.Type, "offset", r.Message.Offset, "outcome", r.Outcome.String(), "reason", string(r.Reason)}
		if r.Err != nil {
			args = append(args, "err", r.Err)
		}
		l.log.WarnContext(ctx, "event parked", args...)
	}
}

// done marks everything below next as dealt with.
func (l *lane) done(next int64) {
	l.marks.set(l.topic, l.partition, next)
	l.mu.Lock()
	stalled := l.state.Err != nil
	l.state.Next, l.state.Err, l.state.Since = next, nil, time.Time{}
	l.mu.Unlock()
	if stalled {
		l.log.Info("partition goes on", "next", next)
	}
}

// stalled tells of an error when it is a new one.
func (l *lane) stalled(ctx context.Context, offset int64, err error) {
	l.mu.Lock()
	again := l.state.Err != nil && l.state.Err.Error() == err.Error()
	if l.state.Err == nil {
		l.state.Since = time.Now()
	}
	l.state.Err = err
	l.mu.Unlock()
	if again {
		return
	}
	args := []any{"offset", offset, "err", err}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) && hinted.Hint() != "" {
		args = append(args, "hint", hinted.Hint())
	}
	l.log.ErrorContext(ctx, "partition stands still", args...)
}
