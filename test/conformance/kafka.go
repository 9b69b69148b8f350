package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/topic"
)

// The third broker is started to be known and then stopped for good: a topic that
// has a replica there and wants two in sync takes no record, which the broker says
// clearly and before it writes anything, until it is content with one.
const (
	brokers    = 3
	goneIndex  = 2
	leaderNode = 1
	goneNode   = 3
)

// Topics of a relay's own, such as Debezium's heartbeats, come by being used.
func startKafka(ctx context.Context, log func(string, ...any)) (*kafkaserver.Cluster, error) {
	cluster, err := kafkaserver.Start(ctx, kafkaserver.Options{Brokers: brokers, AutoCreateTopics: true, Log: log, Settings: map[string]string{
		"default.replication.factor":               "1",
		"offsets.topic.replication.factor":         "1",
		"transaction.state.log.replication.factor": "1",
		"transaction.state.log.min.isr":            "1",
	}})
	if err != nil {
		return nil, err
	}
	if err := cluster.Term(ctx, goneIndex); err != nil {
		return nil, errors.Join(err, cluster.Close())
	}
	return cluster, nil
}

// addrs are those of the brokers that are there.
func addrs(cluster *kafkaserver.Cluster) []string { return cluster.Addr()[:goneIndex] }

// admin runs a request until it succeeds or the kit's patience is at its end: a
// starved broker says that there is no controller.
func (r *rig) admin(ctx context.Context, do func(*kafka.Client) error) error {
	deadline := time.Now().Add(r.kit.patience)
	for {
		err := r.adminOnce(r.kafka(), do)
		if err == nil || time.Now().After(deadline) || pause(ctx, 200*time.Millisecond) != nil {
			return err
		}
	}
}

// adminOnce runs a request with a client of its own.
func (r *rig) adminOnce(brokers []string, do func(*kafka.Client) error) error {
	transport := &kafka.Transport{MetadataTTL: 100 * time.Millisecond}
	defer transport.CloseIdleConnections()
	return do(&kafka.Client{Addr: kafka.TCP(brokers...), Transport: transport, Timeout: 10 * time.Second})
}

// createTopic makes a topic of one partition and waits until it can be used or,
// if it is to be held, until it cannot.
func (r *rig) createTopic(ctx context.Context, name string, held bool) error {
	replicas, inSync := []int{leaderNode}, "1"
	if held {
		replicas, inSync = append(replicas, goneNode), "2"
	}
	err := r.admin(ctx, func(client *kafka.Client) error {
		response, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
			Topic: r.topic(name), NumPartitions: -1, ReplicationFactor: -1,
			ReplicaAssignments: []kafka.ReplicaAssignment{{Partition: 0, Replicas: replicas}},
			ConfigEntries:      []kafka.ConfigEntry{{ConfigName: "min.insync.replicas", ConfigValue: inSync}},
		}}})
		if err == nil {
			err = response.Errors[r.topic(name)]
		}
		if errors.Is(err, kafka.TopicAlreadyExists) {
			return nil // an answer before this one was lost
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("create topic %s: %w", r.topic(name), err)
	}
	// Each broker learns of it in its own time.
	for {
		err := r.usable(ctx, name)
		if err == nil {
			return nil
		}
		if pause(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("create topic %s: %w: %w", r.topic(name), context.Cause(ctx), err)
		}
	}
}

// usable says why a broker does not know the topic with one replica in sync yet.
func (r *rig) usable(ctx context.Context, name string) error {
	for _, broker := range r.kafka() {
		err := r.adminOnce([]string{broker}, func(client *kafka.Client) error {
			response, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{r.topic(name)}})
			if err != nil {
				return err
			}
			for _, t := range response.Topics {
				if t.Error != nil {
					return t.Error
				}
				for _, p := range t.Partitions {
					if len(p.Isr) != 1 {
						return fmt.Errorf("%d replicas in sync", len(p.Isr))
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	_, err := topic.Ranges(ctx, r.kafka(), r.topic(name))
	return err
}

// release lets held topics have their records.
func (r *rig) release(ctx context.Context, names ...string) error {
	for _, name := range names {
		err := r.admin(ctx, func(client *kafka.Client) error {
			response, err := client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
				Resources: []kafka.IncrementalAlterConfigsRequestResource{{
					ResourceType: kafka.ResourceTypeTopic, ResourceName: r.topic(name),
					Configs: []kafka.IncrementalAlterConfigsRequestConfig{{
						Name: "min.insync.replicas", Value: "1", ConfigOperation: kafka.ConfigOperationSet,
					}},
				}},
			})
			if err == nil && len(response.Resources) > 0 {
				err = response.Resources[0].Error
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("release topic %s: %w", r.topic(name), err)
		}
	}
	return nil
}
