package sink

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var noon = time.Date(2024, 2, 3, 12, 0, 0, 0, time.UTC)

// withHours has partition 0 of "a" with a record for each hour from noon on,
// partition 1 with the first of them, and partition 2 with none; and "b".
func withHours(t *testing.T) (*kfake.Cluster, *rig) {
	t.Helper()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(3, "a"), kfake.SeedTopics(1, "b"))
	r := newRig(t, c, nil).start(t)
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(c.ListenAddrs()...), Transport: transport}
	for partition, hours := range []int{5, 1} {
		for hour := range hours {
			response, err := client.Produce(r.ctx, &kafka.ProduceRequest{
				Topic: "a", Partition: partition, RequiredAcks: kafka.RequireAll,
				Records: kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes([]byte("x")), Time: noon.Add(time.Duration(hour) * time.Hour)}),
			})
			if err == nil {
				err = response.Error
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return c, r
}

func onlyA(name string) bool { return name == "a" }

// TestOffsetsSince: the first record that is as new, the end where there is none,
// or so many from the end.
func TestOffsetsSince(t *testing.T) {
	t.Parallel()
	_, r := withHours(t)
	for name, test := range map[string]struct {
		since Since
		want  map[Partition]int64
	}{
		"before all":    {Since{Topics: onlyA, Time: noon.Add(-time.Hour)}, map[Partition]int64{{"a", 0}: 0, {"a", 1}: 0, {"a", 2}: 0}},
		"exactly one":   {Since{Topics: onlyA, Time: noon.Add(2 * time.Hour)}, map[Partition]int64{{"a", 0}: 2, {"a", 1}: 1, {"a", 2}: 0}},
		"between two":   {Since{Topics: onlyA, Time: noon.Add(150 * time.Minute)}, map[Partition]int64{{"a", 0}: 3, {"a", 1}: 1, {"a", 2}: 0}},
		"behind all":    {Since{Topics: onlyA, Time: noon.Add(24 * time.Hour)}, map[Partition]int64{{"a", 0}: 5, {"a", 1}: 1, {"a", 2}: 0}},
		"the newest 2":  {Since{Topics: onlyA, Records: 2}, map[Partition]int64{{"a", 0}: 3, {"a", 1}: 0, {"a", 2}: 0}},
		"another topic": {Since{Topics: func(name string) bool { return name == "b" }, Time: noon}, map[Partition]int64{{"b", 0}: 0}},
		"no topic":      {Since{Topics: func(string) bool { return false }, Time: noon}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.OffsetsSince(r.ctx, test.since)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOffsetsSinceWaits: a topic that is not known to be well at this moment, and
// a broker that does not answer, are asked again, and not left out.
func TestOffsetsSinceWaits(t *testing.T) {
	t.Parallel()
	for _, key := range []kmsg.Key{kmsg.Metadata, kmsg.ListOffsets} {
		t.Run(strings.ToLower(key.Name()), func(t *testing.T) {
			t.Parallel()
			c, _ := withHours(t)
			r := newRig(t, c, nil).start(t) // one that knows nothing yet
			var faults atomic.Int32
			c.ControlKey(key.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				switch req := req.(type) {
				case *kmsg.MetadataRequest:
					if req.Topics == nil && faults.Add(1) <= 3 {
						response := req.ResponseKind().(*kmsg.MetadataResponse)
						topic := kmsg.NewMetadataResponseTopic()
						topic.Topic, topic.ErrorCode = kmsg.StringPtr("a"), 5 // LEADER_NOT_AVAILABLE
						response.Topics = append(response.Topics, topic)
						return response, nil, true
					}
				case *kmsg.ListOffsetsRequest:
					if faults.Add(1) <= 3 {
						return nil, errors.New("cut"), true
					}
				}
				return nil, nil, false
			})
			got, err := r.OffsetsSince(r.ctx, Since{Topics: onlyA, Time: noon.Add(2 * time.Hour)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[Partition]int64{{"a", 0}: 2, {"a", 1}: 1, {"a", 2}: 0}, got); diff != "" {
				t.Error(diff)
			}
			if faults.Load() < 3 {
				t.Errorf("%d faults: the test tests nothing", faults.Load())
			}
		})
	}
}
