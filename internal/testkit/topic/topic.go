package topic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
)

// Spec says what topic to create.
type Spec struct {
	Name        string
	Partitions  int               // 0: the broker's default
	Replication int               // 0: the broker's default
	Config      map[string]string // such as max.message.bytes
}

// patience is how long an operation may take if its context has no deadline.
const patience = 60 * time.Second

// Create creates a topic and waits until all these brokers know its leaders.
func Create(ctx context.Context, brokers []string, spec Spec) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, done := newClient(brokers)
	defer done()
	config := kafka.TopicConfig{Topic: spec.Name, NumPartitions: -1, ReplicationFactor: -1}
	if spec.Partitions != 0 {
		config.NumPartitions = spec.Partitions
	}
	if spec.Replication != 0 {
		config.ReplicationFactor = spec.Replication
	}
	for name, value := range spec.Config {
		config.ConfigEntries = append(config.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	var refused error // trying again does not help
	err := await(ctx, func() error {
		response, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{config}})
		if err == nil {
			err = response.Errors[spec.Name]
		}
		if errors.Is(err, kafka.BrokerNotAvailable) {
			return err // a broker that has just started, or is starved
		}
		refused = err
		return nil
	})
	if err = errors.Join(err, refused); err != nil {
		return fmt.Errorf("create topic %q: %w", spec.Name, err)
	}
	for _, broker := range brokers {
		if err := await(ctx, func() error { return led(ctx, broker, spec.Name, spec.Partitions) }); err != nil {
			return fmt.Errorf("create topic %q: broker %s: %w", spec.Name, broker, err)
		}
	}
	return nil
}

// Delete deletes a topic; one that does not exist is fine.
func Delete(ctx context.Context, brokers []string, name string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, done := newClient(brokers)
	defer done()
	response, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{name}})
	if err == nil {
		err = response.Errors[name]
	}
	if err != nil && !errors.Is(err, kafka.UnknownTopicOrPartition) {
		return fmt.Errorf("delete topic %q: %w", name, err)
	}
	return nil
}

// List returns the names of all topics but internal ones, sorted.
func List(ctx context.Context, brokers []string) ([]string, error) {
	client, done := newClient(brokers)
	defer done()
	response, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	var names []string
	for _, t := range response.Topics {
		if !t.Internal {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// led says why a broker does not know all leaders of a topic yet.
func led(ctx context.Context, broker, name string, want int) error {
	partitions, err := ask(ctx, broker, name)
	if err != nil {
		return err
	}
	if len(partitions) == 0 || len(partitions) < want {
		return fmt.Errorf("knows %d partitions", len(partitions))
	}
	for _, p := range partitions {
		if p.Leader.Port == 0 {
			return fmt.Errorf("knows no leader of partition %d", p.ID)
		}
	}
	return nil
}

// ask asks one broker, not the cached view that a kafka.Transport has of all.
func ask(ctx context.Context, broker, name string) ([]kafka.Partition, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := (&kafka.Dialer{}).DialContext(ctx, "tcp", broker)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	return conn.ReadPartitions(name)
}

// await repeats f until it succeeds or ctx ends.
func await(ctx context.Context, f func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// newClient returns a client whose connections are its own, and what closes them.
func newClient(brokers []string) (client *kafka.Client, done func()) {
	transport := &kafka.Transport{
		MetadataTTL: 200 * time.Millisecond, // a moved leader is found soon
		DialTimeout: 5 * time.Second,
	}
	return &kafka.Client{Addr: kafka.TCP(brokers...), Transport: transport, Timeout: 30 * time.Second},
		transport.CloseIdleConnections
}
