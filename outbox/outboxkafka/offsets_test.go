package outboxkafka

import (
	"context"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/outbox"
)

// TestStartAtTheEnd: what was there before the group is not read, and what comes
// while nobody is there is.
func TestStartAtTheEnd(t *testing.T) {
	t.Parallel()
	r := setup(t, 1)
	r.publish(r.some(1, 3)...)
	m := r.start(Options{Start: kafka.LastOffset})
	testkit.Await(t, "the end to be the group's offset", func() bool { return r.committed()[0] == 3 })
	m.stop()
	r.publish(r.some(4, 6)...)
	m = r.start(Options{Start: kafka.LastOffset})
	r.awaitEffects(3)
	m.stop()
	if least := r.scalar("select min(version) from effects"); least != 4 {
		t.Errorf("the first one is version %d, want 4", least)
	}
}

// TestOffsetPastTheEnd: the topic was made anew. It is read from its start, since
// repeats are harmless and losses are not.
func TestOffsetPastTheEnd(t *testing.T) {
	t.Parallel()
	r := setup(t, 1)
	r.publish(r.some(1, 3)...)
	r.setOffsets(1000)
	m := r.start(Options{})
	m.awaitLog("read from its start")
	r.awaitEffects(3)
	m.stop()
	r.check(3)
	// The old offset must not win over what was read.
	if got := r.committed()[0]; got != 3 {
		t.Errorf("committed %d, want 3", got)
	}
}

// TestRemovedRecords: a loss is told in numbers, and what is left is read.
func TestRemovedRecords(t *testing.T) {
	t.Parallel()
	r := setup(t, 1)
	r.publish(r.some(1, 5)...)
	r.setOffsets(1)
	r.removeBelow(4)
	m := r.start(Options{Consumer: r.consumer(outbox.ConsumerOptions{})})
	m.awaitLog("records=3")
	r.awaitEffects(1)
	m.stop()
	if got := r.committed()[0]; got != 5 {
		t.Errorf("committed %d, want 5", got)
	}
}

// removeBelow does what retention does.
func (r *rig) removeBelow(offset int64) {
	r.Helper()
	client := r.franz()
	request := kmsg.NewDeleteRecordsRequest()
	t := kmsg.NewDeleteRecordsRequestTopic()
	p := kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Offset = offset
	t.Topic, t.Partitions = r.topic, append(t.Partitions, p)
	request.Topics, request.TimeoutMillis = append(request.Topics, t), 10_000
	response, err := request.RequestWith(r.Context(), client)
	if err != nil {
		r.Fatal(err)
	}
	if code := response.Topics[0].Partitions[0].ErrorCode; code != 0 {
		r.Fatalf("delete records: %v", kafka.Error(code))
	}
}

func (r *rig) franz(o ...kgo.Opt) *kgo.Client {
	r.Helper()
	client, err := kgo.NewClient(append(o, kgo.SeedBrokers(r.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(client.Close)
	return client
}

// TestTransactions: the marks of transactions are passed, also at the end of the
// partition, and what an aborted one published are events all the same.
func TestTransactions(t *testing.T) {
	t.Parallel()
	r := setup(t, 1)
	client := r.franz(kgo.TransactionalID(testkit.Unique("tx")))
	send := func(end kgo.TransactionEndTry, versions ...int64) {
		t.Helper()
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for _, v := range versions {
			m := event(0, "a0", v)
			record := &kgo.Record{Topic: r.topic, Key: m.Key, Value: m.Value}
			for _, h := range m.Headers {
				record.Headers = append(record.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
			}
			if err := client.ProduceSync(context.Background(), record).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.EndTransaction(context.Background(), end); err != nil {
			t.Fatal(err)
		}
	}
	send(kgo.TryCommit, 1, 2)
	send(kgo.TryAbort, 3)
	send(kgo.TryCommit, 4)
	m := r.start(Options{Batch: 10})
	testkit.Await(t, "the last mark to be passed", func() bool { return r.committed()[0] == 7 })
	m.stop()
	r.check(4)
}
