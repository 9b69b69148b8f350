package outboxkafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

const (
	longPoll    = 2 * time.Second
	requestTime = 30 * time.Second
)

// fetchAll reads the partition from the lane's start, and hands over batch after
// batch until ctx ends.
func (l *lane) fetchAll(ctx context.Context, to chan<- batch) {
	next, ok := l.begin(ctx)
	if !ok {
		return
	}
	wait := newBackoff()
	for ctx.Err() == nil {
		records, end, err := l.fetch(ctx, next)
		if errors.Is(err, kafka.OffsetOutOfRange) {
			next, err = l.moved(ctx, next)
		}
		if err != nil {
			if ctx.Err() == nil {
				l.unread(ctx, err)
			}
			wait.wait(ctx)
			continue
		}
		wait = newBackoff()
		l.read(end)
		switch {
		case len(records) > 0:
			next = records[len(records)-1].Offset + 1
		case next < end:
			// Below the end and nothing there: the mark of a transaction, or what
			// compaction has emptied.
			next++
		default:
			continue
		}
		select {
		case to <- batch{records, next}:
		case <-ctx.Done():
		}
	}
}

// begin makes an offset of the place to start from. It becomes the group's own at
// once: a second look at the end of the partition would be further on.
func (l *lane) begin(ctx context.Context) (next int64, ok bool) {
	if l.start >= 0 {
		l.mu.Lock()
		l.state.Next = l.start
		l.mu.Unlock()
		return l.start, true
	}
	for wait := newBackoff(); ; {
		first, last, err := l.bounds(ctx)
		if err == nil {
			next := first
			if l.start == kafka.LastOffset {
				next = last
			}
			l.done(next)
			return next, true
		}
		if ctx.Err() == nil {
			l.unread(ctx, err)
		}
		if !wait.wait(ctx) {
			return 0, false
		}
	}
}

// moved finds out why an offset is not in the partition. Either way there are
// events that nobody can read any more, or that are there once more.
func (l *lane) moved(ctx context.Context, next int64) (int64, error) {
	first, last, err := l.bounds(ctx)
	switch {
	case err != nil:
		return next, err
	case next < first:
		l.log.ErrorContext(ctx, "records were removed before they were read", "from", next, "to", first, "records", first-next,
			"hint", "make the topic's retention longer than the consumer is ever down; publish the lost events again from the outbox table")
		return first, nil
	case next > last:
		l.log.ErrorContext(ctx, "the partition ends before the group's offset, so it is read from its start", "offset", next, "start", first, "end", last,
			"hint", "the topic was made anew, or lost records; events that were applied are known again")
		return first, nil
	}
	return next, nil // records have come since
}

func (l *lane) bounds(ctx context.Context) (first, last int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	response, err := l.runner.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{l.topic: {kafka.FirstOffsetOf(l.partition), kafka.LastOffsetOf(l.partition)}},
	})
	if err != nil {
		return 0, 0, err
	}
	for _, p := range response.Topics[l.topic] {
		if p.Partition == l.partition && p.Error == nil && p.FirstOffset >= 0 && p.LastOffset >= 0 {
			return p.FirstOffset, p.LastOffset, nil
		} else if p.Error != nil {
			return 0, 0, p.Error
		}
	}
	return 0, 0, fmt.Errorf("no broker told where %s begins and ends", l)
}

// fetch gives the records from an offset on that one request brings, and the end
// of the partition.
func (l *lane) fetch(ctx context.Context, from int64) (records []kafka.Message, end int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, longPoll+requestTime)
	defer cancel()
	response, err := l.runner.client.Fetch(ctx, &kafka.FetchRequest{
		Topic: l.topic, Partition: l.partition, Offset: from, MinBytes: 1, MaxBytes: l.fetchBytes, MaxWait: longPoll,
	})
	if err != nil {
		return nil, 0, err
	}
	if response.Error != nil {
		return nil, 0, response.Error
	}
	for {
		r, err := response.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return records, response.HighWatermark, nil
		}
		if err != nil {
			return nil, 0, err
		}
		m := kafka.Message{Topic: l.topic, Partition: l.partition, Offset: r.Offset, Time: r.Time, Headers: r.Headers}
		if m.Key, err = content(r.Key); err == nil {
			m.Value, err = content(r.Value)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("record at offset %d: %w", r.Offset, err)
		}
		if r.Offset >= from { // a batch is sent whole
			records = append(records, m)
		}
	}
}

// content takes bytes out of the pages that kafka-go lends; nil is Kafka's null.
func content(b protocol.Bytes) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	defer b.Close()
	data := make([]byte, b.Len())
	_, err := io.ReadFull(b, data)
	return data, err
}
