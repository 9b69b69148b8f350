package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/internal/retry"
	"github.com/walpost/walpost/outbox"
)

const partitions = 3

// broker is the drill's own way to Kafka, past the proxy.
type broker struct {
	opt       Options
	topic     string
	transport *kafka.Transport
	client    *kafka.Client
	made      bool
}

func newBroker(opt Options, topic string) *broker {
	t := &kafka.Transport{TLS: opt.TLS, SASL: opt.SASL, ClientID: application}
	return &broker{opt: opt, topic: topic, transport: t, client: &kafka.Client{Addr: kafka.TCP(opt.Brokers...), Timeout: 10 * time.Second, Transport: t}}
}

func (b *broker) close() { b.transport.CloseIdleConnections() }

func (b *broker) create(ctx context.Context) error {
	b.made = true
	response, err := b.client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
		{Topic: b.topic, NumPartitions: partitions, ReplicationFactor: -1},
	}})
	if err == nil {
		err = response.Errors[b.topic]
	}
	if err != nil {
		b.made = false
		return &Error{Text: "create topic " + b.topic, Way: "check --brokers; the principal needs Create, Write, Read, Describe and Delete on topics " + topicPrefix + "* and Read and Delete on groups of that name", Err: err}
	}
	return nil
}

func (b *broker) drop(ctx context.Context, groups []string) error {
	if !b.made {
		return nil
	}
	var errs []error
	response, err := b.client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{b.topic}})
	if err == nil {
		err = response.Errors[b.topic]
	}
	if err != nil && !errors.Is(err, kafka.UnknownTopicOrPartition) {
		errs = append(errs, err)
	}
	for _, group := range groups {
		err := again(ctx, func() error {
			response, err := b.client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
			if err == nil {
				err = response.Errors[group]
			}
			return err
		})
		if err != nil && !errors.Is(err, kafka.GroupIdNotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// again repeats what a broker refuses while a leader or coordinator is new or not
// yet known everywhere, as right after a topic is made. It never repeats what has an
// unknown outcome: a drill counts records.
func again(ctx context.Context, do func() error) error {
	end := time.Now().Add(10 * time.Second)
	for {
		err := do()
		passing := slices.ContainsFunc([]error{
			kafka.NotLeaderForPartition, kafka.LeaderNotAvailable, kafka.UnknownTopicOrPartition,
			kafka.NotCoordinatorForGroup, kafka.GroupCoordinatorNotAvailable, kafka.GroupLoadInProgress, kafka.NonEmptyGroup,
		}, func(e error) bool { return errors.Is(err, e) })
		if !passing || time.Now().After(end) {
			return err
		}
		if err := retry.Wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// ends gives the first offset after each partition's last record.
func (b *broker) ends(ctx context.Context) (total int64, each [partitions]int64, err error) {
	requests := make([]kafka.OffsetRequest, partitions)
	for i := range requests {
		requests[i] = kafka.LastOffsetOf(i)
	}
	err = again(ctx, func() error {
		total, each = 0, [partitions]int64{}
		response, err := b.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{b.topic: requests}})
		if err != nil {
			return err
		}
		if n := len(response.Topics[b.topic]); n != partitions {
			return fmt.Errorf("%d partitions answered, want %d: %w", n, partitions, kafka.LeaderNotAvailable)
		}
		for _, p := range response.Topics[b.topic] {
			if p.Error != nil {
				return p.Error
			}
			each[p.Partition] = p.LastOffset
			total += p.LastOffset
		}
		return nil
	})
	if err != nil {
		return 0, each, fmt.Errorf("ask for the end of %s: %w", b.topic, err)
	}
	return total, each, nil
}

// read gives every event of the topic, per partition in order.
func (b *broker) read(ctx context.Context) ([]outbox.Message, error) {
	_, ends, err := b.ends(ctx)
	if err != nil {
		return nil, err
	}
	var all []outbox.Message
	for partition, end := range ends {
		for offset := int64(0); offset < end; {
			response, err := b.client.Fetch(ctx, &kafka.FetchRequest{
				Topic: b.topic, Partition: partition, Offset: offset, MinBytes: 1, MaxBytes: 4 << 20, MaxWait: 100 * time.Millisecond,
			})
			if err == nil {
				err = response.Error
			}
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", b.topic, err)
			}
			before := offset
			for {
				record, err := response.Records.ReadRecord()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					return nil, fmt.Errorf("read %s: %w", b.topic, err)
				}
				if record.Offset < offset {
					continue
				}
				offset = record.Offset + 1
				m, err := message(b.topic, partition, record)
				if err != nil {
					return nil, err
				}
				all = append(all, m)
			}
			if offset == before {
				offset++ // a control record, which is not shown
			}
		}
	}
	return all, nil
}

func message(topic string, partition int, record *kafka.Record) (outbox.Message, error) {
	key, err := kafka.ReadAll(record.Key)
	if err != nil {
		return outbox.Message{}, err
	}
	value, err := kafka.ReadAll(record.Value)
	if err != nil {
		return outbox.Message{}, err
	}
	return outbox.Parse(outbox.Record{Topic: topic, Partition: int32(partition), Offset: record.Offset, Key: key, Value: value, Time: record.Time}, pairs(record.Headers))
}

func pairs(headers []kafka.Header) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, h := range headers {
			if !yield(h.Key, h.Value) {
				return
			}
		}
	}
}

// produce writes messages as they are, each to its own partition.
func (b *broker) produce(ctx context.Context, messages []outbox.Message) error {
	for _, m := range messages {
		headers := make([]kafka.Header, len(m.Headers))
		for i, h := range m.Headers {
			headers[i] = kafka.Header{Key: h.Key, Value: h.Value}
		}
		if err := again(ctx, func() error {
			response, err := b.client.Produce(ctx, &kafka.ProduceRequest{
				Topic: b.topic, Partition: int(m.Partition), RequiredAcks: kafka.RequireAll,
				Records: kafka.NewRecordReader(kafka.Record{Time: m.Time, Key: kafka.NewBytes(m.Key), Value: kafka.NewBytes(m.Value), Headers: headers}),
			})
			if err == nil {
				err = response.Error
			}
			return err
		}); err != nil {
			return fmt.Errorf("produce to %s: %w", b.topic, err)
		}
	}
	return nil
}
