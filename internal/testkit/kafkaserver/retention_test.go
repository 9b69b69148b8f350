package kafkaserver_test

import (
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/topic"
)

// A record of 1970 stays, while the broker removes one of the same age from a
// topic with a retention of its own: so it was looked for.
func TestOldRecordsStay(t *testing.T) {
	t.Parallel()
	ctx, cluster := start(t, kafkaserver.Options{Settings: map[string]string{
		"log.initial.task.delay.ms":       "0",
		"log.retention.check.interval.ms": "100",
	}})
	brokers := cluster.Addr()
	const kept, removed = "kept", "removed"
	must(t, topic.Create(ctx, brokers, topic.Spec{Name: kept, Partitions: 1}))
	must(t, topic.Create(ctx, brokers, topic.Spec{Name: removed, Partitions: 1, Config: map[string]string{"retention.ms": "1000"}}))
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Transport: transport}
	for _, name := range []string{kept, removed} {
		response, err := client.Produce(ctx, &kafka.ProduceRequest{
			Topic: name, RequiredAcks: kafka.RequireAll,
			Records: kafka.NewRecordReader(kafka.Record{Time: time.UnixMilli(2), Value: kafka.NewBytes([]byte("old"))}),
		})
		must(t, err)
		must(t, response.Error)
	}
	for {
		n, err := topic.Count(ctx, brokers, removed)
		must(t, err)
		if n == 0 {
			break
		}
	}
	records, err := topic.Read(ctx, brokers, kept)
	must(t, err)
	if len(records) != 1 {
		t.Errorf("%d records, want the one of 1970", len(records))
	}
}
