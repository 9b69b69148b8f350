package topic_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/walpost/walpost/internal/testkit/topic"
)

func TestReadReturnsWhatWasWritten(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	ctx, brokers := t.Context(), cluster.ListenAddrs()
	if err := topic.Create(ctx, brokers, topic.Spec{Name: "t", Partitions: 3}); err != nil {
		t.Fatal(err)
	}
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	at := time.UnixMilli(1_700_000_000_123)
	writer := &kafka.Writer{
		Addr: kafka.TCP(brokers...), Topic: "t", Transport: transport, BatchTimeout: time.Millisecond,
		Balancer: kafka.BalancerFunc(func(m kafka.Message, _ ...int) int { return m.Partition }),
	}
	var want []topic.Record
	var messages []kafka.Message
	for partition := range 3 {
		for i := range 5 {
			r := topic.Record{
				Topic: "t", Partition: partition, Offset: int64(i), Time: at,
				Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, "v%d", i),
				Headers: []topic.Header{{Key: "id", Value: []byte{byte(i)}}},
			}
			switch i {
			case 3:
				r.Key, r.Value = nil, nil
			case 4:
				r.Value = []byte{}
			}
			want = append(want, r)
			messages = append(messages, kafka.Message{
				Partition: partition, Key: r.Key, Value: r.Value, Headers: r.Headers, Time: at,
			})
		}
	}
	if err := writer.WriteMessages(ctx, messages...); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}

	got, err := topic.Read(ctx, brokers, "t")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	got, err = topic.ReadFrom(ctx, brokers, "t", map[int]int64{0: 5, 1: 5, 2: 4})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[14:], got); diff != "" {
		t.Errorf("records from offsets (-want +got):\n%s", diff)
	}
	if n, err := topic.Count(ctx, brokers, "t"); n != 15 || err != nil {
		t.Errorf("Count = %d, %v, want 15", n, err)
	}

	if err := topic.Delete(ctx, brokers, "t"); err != nil {
		t.Fatal(err)
	}
	if err := topic.Delete(ctx, brokers, "t"); err != nil {
		t.Errorf("deleting a topic that is gone = %v, want nil", err)
	}
	if _, err := topic.Read(ctx, brokers, "t"); !errors.Is(err, kafka.UnknownTopicOrPartition) {
		t.Errorf("Read of a deleted topic = %v, want unknown topic", err)
	}
}
