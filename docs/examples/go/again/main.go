// Again sends every record of a topic once more, byte for byte: what a consumer
// sees after a replay, or when whoever publishes has lost its memory.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/segmentio/kafka-go"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: again TOPIC")
	}
	if os.Getenv("KAFKA_BROKERS") == "" {
		return errors.New("KAFKA_BROKERS is not set")
	}
	client := &kafka.Client{Addr: kafka.TCP(strings.Split(os.Getenv("KAFKA_BROKERS"), ",")...), Timeout: 30 * time.Second}
	metadata, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: args})
	if err != nil {
		return fmt.Errorf("look up the partitions of %s: %w", args[0], err)
	}
	sent := 0
	for _, t := range metadata.Topics {
		if t.Error != nil {
			return fmt.Errorf("topic %s: %w", t.Name, t.Error)
		}
		for _, p := range t.Partitions {
			n, err := repeat(ctx, client, t.Name, p.ID)
			if err != nil {
				return fmt.Errorf("partition %d of %s: %w", p.ID, t.Name, err)
			}
			sent += n
		}
	}
	fmt.Printf("%d records sent again\n", sent)
	return nil
}

// repeat reads what a partition holds now, and appends it.
func repeat(ctx context.Context, client *kafka.Client, topic string, partition int) (int, error) {
	offsets, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{topic: {kafka.FirstOffsetOf(partition), kafka.LastOffsetOf(partition)}},
	})
	if err != nil {
		return 0, err
	}
	bounds := offsets.Topics[topic][0]
	if bounds.Error != nil {
		return 0, bounds.Error
	}
	var records []kafka.Record
	for next := bounds.FirstOffset; next < bounds.LastOffset; {
		response, err := client.Fetch(ctx, &kafka.FetchRequest{
			Topic: topic, Partition: partition, Offset: next, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: 500 * time.Millisecond,
		})
		if err != nil {
			return 0, err
		}
		if response.Error != nil {
			return 0, response.Error
		}
		before := next
		for {
			r, err := response.Records.ReadRecord()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return 0, err
			}
			if r.Offset < next || r.Offset >= bounds.LastOffset { // a batch comes whole
				continue
			}
			copied, err := content(r)
			if err != nil {
				return 0, err
			}
			records = append(records, copied)
			next = r.Offset + 1
		}
		if next == before {
			next++ // the mark of a transaction, which is no record
		}
	}
	if len(records) == 0 {
		return 0, nil
	}
	response, err := client.Produce(ctx, &kafka.ProduceRequest{
		Topic: topic, Partition: partition, RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(records...),
	})
	if err != nil {
		return 0, err
	}
	return len(records), response.Error
}

// content is a record apart from the pages that it was read into.
func content(r *kafka.Record) (kafka.Record, error) {
	key, err := kafka.ReadAll(r.Key)
	if err != nil {
		return kafka.Record{}, err
	}
	value, err := kafka.ReadAll(r.Value)
	if err != nil {
		return kafka.Record{}, err
	}
	return kafka.Record{Key: kafka.NewBytes(key), Value: kafka.NewBytes(value), Headers: r.Headers}, nil
}
