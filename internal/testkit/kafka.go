package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/walpost/walpost/internal/testkit/container"
	"github.com/walpost/walpost/internal/testkit/fetch"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/topic"
)

// Kafka returns the shared cluster of one broker. Tests must not stop it.
func Kafka(t testing.TB) *kafkaserver.Cluster {
	t.Helper()
	return sharedKafka(t, 1)
}

// Kafka3 returns the shared cluster of three brokers.
func Kafka3(t testing.TB) *kafkaserver.Cluster {
	t.Helper()
	return sharedKafka(t, 3)
}

func sharedKafka(t testing.TB, brokers int) *kafkaserver.Cluster {
	t.Helper()
	needServers(t)
	needMain(t)
	suite.mu.Lock()
	entry := suite.kafka[brokers]
	if entry == nil {
		entry = &shared[*kafkaserver.Cluster]{}
		suite.kafka[brokers] = entry
	}
	suite.mu.Unlock()
	cluster, err := entry.get(func() (*kafkaserver.Cluster, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		cluster, err := startSharedKafka(ctx, brokers)
		if err == nil {
			suite.use(fmt.Sprintf("%s, %d broker(s)", cluster, cluster.Len()))
		}
		return cluster, err
	})
	if err != nil {
		fatal(t, err)
	}
	return cluster
}

func startSharedKafka(ctx context.Context, brokers int) (*kafkaserver.Cluster, error) {
	if text := os.Getenv("WALPOST_TEST_BROKERS"); text != "" {
		if addrs := strings.Split(text, ","); len(addrs) >= brokers {
			return kafkaserver.External(addrs, "Kafka from WALPOST_TEST_BROKERS"), nil
		}
	}
	cluster, err := kafkaserver.Start(ctx, kafkaserver.Options{Brokers: brokers, Log: say})
	if err == nil {
		suite.onClose(cluster.Close)
		return cluster, nil
	}
	var noJava *kafkaserver.NoJavaError
	var noJars *fetch.Error
	if brokers > 1 || !errors.As(err, &noJava) && !errors.As(err, &noJars) {
		return nil, err
	}
	addr, stop, dockerErr := container.Kafka(ctx)
	if dockerErr != nil {
		return nil, fmt.Errorf("%w; %w", err, dockerErr)
	}
	suite.onClose(stopped(stop))
	return kafkaserver.External([]string{addr}, "Kafka "+kafkaserver.Version+" from a container"), nil
}

// PrivateKafka starts a cluster for one test alone, which may do with it what it
// wants.
func PrivateKafka(t testing.TB, opts kafkaserver.Options) *kafkaserver.Cluster {
	t.Helper()
	needServers(t)
	if opts.Log == nil {
		opts.Log = t.Logf
	}
	cluster, err := kafkaserver.Start(t.Context(), opts)
	if err != nil {
		fatal(t, err)
	}
	suite.use(fmt.Sprintf("%s, %d broker(s)", cluster, cluster.Len()))
	t.Cleanup(func() {
		for i := range cluster.Len() {
			if t.Failed() {
				t.Logf("the last lines of broker %d:\n%s", i, cluster.LogTail(i))
			}
		}
		if err := cluster.Close(); err != nil {
			t.Errorf("close %s: %v", cluster, err)
		}
	})
	return cluster
}

// CreateTopic creates a topic that is deleted when the test ends, with as many
// partitions as given or, for 0, the broker's default.
func CreateTopic(t testing.TB, brokers []string, name string, partitions int) {
	t.Helper()
	CreateTopicSpec(t, brokers, topic.Spec{Name: name, Partitions: partitions})
}

// CreateTopicSpec is CreateTopic with everything that can be said of a topic.
func CreateTopicSpec(t testing.TB, brokers []string, spec topic.Spec) {
	t.Helper()
	if err := topic.Create(t.Context(), brokers, spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { DeleteTopic(t, brokers, spec.Name) })
}

// DeleteTopic deletes a topic. It is only logged if that fails: the test may
// have stopped the brokers.
func DeleteTopic(t testing.TB, brokers []string, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := topic.Delete(ctx, brokers, name); err != nil {
		t.Log(err)
	}
}

// ReadAll returns all records of a topic up to its present end, partition by
// partition.
func ReadAll(t testing.TB, brokers []string, name string) []topic.Record {
	t.Helper()
	records, err := topic.Read(t.Context(), brokers, name)
	if err != nil {
		t.Fatal(err)
	}
	return records
}
