package sink

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// write puts key=value records into a partition; "-" stands for null.
func write(t *testing.T, c *kfake.Cluster, partition int, records ...string) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(c.ListenAddrs()...), Transport: &kafka.Transport{}}
	t.Cleanup(client.Transport.(*kafka.Transport).CloseIdleConnections)
	for _, r := range records {
		key, value, _ := strings.Cut(r, "=")
		rec := kafka.Record{Key: kafka.NewBytes([]byte(key)), Value: kafka.NewBytes([]byte(value))}
		if value == "-" {
			rec.Value = nil
		}
		response, err := client.Produce(t.Context(), &kafka.ProduceRequest{
			Topic: "offsets", Partition: partition, RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(rec),
		})
		if err == nil {
			err = response.Error
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestLastValues(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(3, "offsets"))
	write(t, c, 0, "a=1", "b=1", "a=2", "other=9")
	write(t, c, 2, "c=1", "d=1", "c=-", "d=", "e=-", "e=2")
	// A broker that just moved its partitions is asked again.
	refused := 2
	c.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		if refused == 0 {
			return nil, nil, false
		}
		refused--
		c.KeepControl()
		request := kreq.(*kmsg.FetchRequest)
		response := request.ResponseKind().(*kmsg.FetchResponse)
		response.ErrorCode = 6 // NOT_LEADER_OR_FOLLOWER
		return response, nil, true
	})
	opt := Options{Brokers: c.ListenAddrs(), RequestTimeout: 5 * time.Second}
	got, err := LastValues(t.Context(), opt, "offsets", func(key []byte) bool { return string(key) != "other" })
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{"a": []byte("2"), "b": []byte("1"), "c": nil, "d": {}, "e": []byte("2")}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

func TestLastValuesOfNoTopic(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1))
	opt := Options{Brokers: c.ListenAddrs(), RequestTimeout: 5 * time.Second}
	if _, err := LastValues(t.Context(), opt, "offsets", func([]byte) bool { return true }); !errors.Is(err, ErrNoTopic) {
		t.Errorf("got %v", err)
	}
	if got := c.TopicInfo("offsets"); got != nil {
		t.Error("looking made the topic")
	}
}

func TestLastValuesWithoutABroker(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := LastValues(ctx, Options{Brokers: []string{"127.0.0.1:1"}}, "offsets", func([]byte) bool { return true })
	if err == nil || !strings.Contains(err.Error(), `read topic "offsets"`) {
		t.Errorf("got %v", err)
	}
}
