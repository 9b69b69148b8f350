package topic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"golang.org/x/sync/errgroup"
)

// Header is a header of a record; a nil value is Kafka's null.
type Header = kafka.Header

// Record is a record as it was stored. A nil key or value is Kafka's null.
type Record struct {
	Topic      string
	Partition  int
	Offset     int64
	Key, Value []byte
	Headers    []Header
	Time       time.Time
}

// Header returns the value of the first header of that name.
func (r *Record) Header(name string) (value []byte, ok bool) {
	for _, h := range r.Headers {
		if h.Key == name {
			return h.Value, true
		}
	}
	return nil, false
}

// Range is where a partition starts and ends: End is the high watermark, the
// offset after the last record that consumers may see.
type Range struct{ Start, End int64 }

const (
	parallel = 4       // partitions read at once
	fetchMax = 4 << 20 // bytes a fetch asks for
)

// Read returns all records, partition by partition, each in order of offsets.
func Read(ctx context.Context, brokers []string, name string) ([]Record, error) {
	return ReadFrom(ctx, brokers, name, nil)
}

// ReadFrom is Read from an offset for each partition; a partition without one is
// read from its start.
func ReadFrom(ctx context.Context, brokers []string, name string, from map[int]int64) ([]Record, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, done := newClient(brokers)
	defer done()
	ranges, err := ranges(ctx, client, brokers, name)
	if err != nil {
		return nil, fmt.Errorf("read topic %q: %w", name, err)
	}
	found := make([][]Record, len(ranges))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for partition, r := range ranges {
		start := max(r.Start, from[partition])
		group.Go(func() error {
			records, err := readPartition(ctx, client, name, partition, start, r.End)
			found[partition] = records
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("read topic %q: %w", name, err)
	}
	var all []Record
	for _, records := range found {
		all = append(all, records...)
	}
	return all, nil
}

// Ranges returns start and end of each partition, by number.
func Ranges(ctx context.Context, brokers []string, name string) ([]Range, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, done := newClient(brokers)
	defer done()
	found, err := ranges(ctx, client, brokers, name)
	if err != nil {
		return nil, fmt.Errorf("offsets of topic %q: %w", name, err)
	}
	return found, nil
}

// Count returns the number of offsets between starts and ends: the number of
// records if there are no transactions and no compaction.
func Count(ctx context.Context, brokers []string, name string) (int64, error) {
	found, err := Ranges(ctx, brokers, name)
	if err != nil {
		return 0, err
	}
	var n int64
	for _, r := range found {
		n += r.End - r.Start
	}
	return n, nil
}

func ranges(ctx context.Context, client *kafka.Client, brokers []string, name string) ([]Range, error) {
	var found []Range
	var fatal error
	err := await(ctx, func() error {
		var err error
		found, err = rangesOnce(ctx, client, brokers, name)
		if errors.Is(err, kafka.UnknownTopicOrPartition) {
			fatal = err // it will not come by waiting
			return nil
		}
		return err
	})
	return found, errors.Join(err, fatal)
}

func rangesOnce(ctx context.Context, client *kafka.Client, brokers []string, name string) ([]Range, error) {
	var partitions []kafka.Partition
	var err error
	for _, broker := range brokers { // one that answers is enough
		if partitions, err = ask(ctx, broker, name); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	requests := make([]kafka.OffsetRequest, 0, 2*len(partitions))
	for _, p := range partitions {
		requests = append(requests, kafka.FirstOffsetOf(p.ID), kafka.LastOffsetOf(p.ID))
	}
	response, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{name: requests},
	})
	if err != nil {
		return nil, err
	}
	found := make([]Range, len(partitions))
	for _, p := range response.Topics[name] {
		if p.Error != nil {
			return nil, fmt.Errorf("partition %d: %w", p.Partition, p.Error)
		}
		if p.Partition >= len(found) || p.FirstOffset < 0 || p.LastOffset < 0 {
			return nil, fmt.Errorf("partition %d: offsets %d to %d", p.Partition, p.FirstOffset, p.LastOffset)
		}
		found[p.Partition] = Range{Start: p.FirstOffset, End: p.LastOffset}
	}
	if len(response.Topics[name]) != len(found) {
		return nil, fmt.Errorf("offsets of %d partitions, want %d", len(response.Topics[name]), len(found))
	}
	return found, nil
}

func readPartition(ctx context.Context, client *kafka.Client, name string, partition int, next, end int64) ([]Record, error) {
	var records []Record
	for next < end {
		err := await(ctx, func() error {
			batch, err := fetch(ctx, client, name, partition, next)
			if err != nil {
				return err
			}
			if len(batch) == 0 {
				// Below the end and nothing there: a transaction marker, or a
				// batch that compaction has emptied.
				next++
				return nil
			}
			records = append(records, batch...)
			next = batch[len(batch)-1].Offset + 1
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("partition %d at offset %d: %w", partition, next, err)
		}
	}
	// A fetch may return records that came after the end was asked for.
	for len(records) > 0 && records[len(records)-1].Offset >= end {
		records = records[:len(records)-1]
	}
	return records, nil
}

// fetch returns the records from an offset on that one request brings.
func fetch(ctx context.Context, client *kafka.Client, name string, partition int, from int64) ([]Record, error) {
	response, err := client.Fetch(ctx, &kafka.FetchRequest{
		Topic: name, Partition: partition, Offset: from,
		MinBytes: 1, MaxBytes: fetchMax, MaxWait: 5 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	if response.Error != nil {
		return nil, response.Error
	}
	var records []Record
	for {
		r, err := response.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, err
		}
		record, err := copyRecord(r)
		if err != nil {
			return nil, err
		}
		if record.Offset < from {
			continue // a batch is sent whole
		}
		record.Topic, record.Partition = name, partition
		records = append(records, record)
	}
}

// copyRecord takes a record out of the pages that kafka-go lends.
func copyRecord(r *protocol.Record) (Record, error) {
	record := Record{Offset: r.Offset, Headers: r.Headers, Time: r.Time}
	var err error
	if record.Key, err = content(r.Key); err != nil {
		return Record{}, fmt.Errorf("key at offset %d: %w", r.Offset, err)
	}
	if record.Value, err = content(r.Value); err != nil {
		return Record{}, fmt.Errorf("value at offset %d: %w", r.Offset, err)
	}
	return record, nil
}

func content(b protocol.Bytes) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	defer b.Close()
	data := make([]byte, b.Len())
	_, err := io.ReadFull(b, data)
	return data, err
}
