package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/metadata"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

func addPartitions(t *testing.T, c *kfake.Cluster, topic string, n int32) {
	t.Helper()
	admin(t, c, func(ctx context.Context, client *kafka.Client) error {
		resp, err := client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
			Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: n}},
		})
		if err != nil {
			return err
		}
		return resp.Errors[topic]
	})
}

// perKey reads a topic and demands, per key, ascending numbers within each
// partition, and nothing twice. It returns how many there are.
func perKey(t *testing.T, c *kfake.Cluster, topic string) map[string][][]int {
	t.Helper()
	out := make(map[string][][]int)
	seen := make(map[int]bool)
	parts := readTopic(t, c, topic)
	for p, records := range parts {
		for _, rec := range records {
			n := number(t, rec)
			if seen[n] {
				t.Fatalf("record %d twice", n)
			}
			seen[n] = true
			key := string(rec.Key)
			if out[key] == nil {
				out[key] = make([][]int, len(parts))
			}
			list := out[key][p]
			if len(list) > 0 && list[len(list)-1] > n {
				t.Fatalf("key %s partition %d: %d behind %d", key, p, n, list[len(list)-1])
			}
			out[key][p] = append(list, n)
		}
	}
	return out
}

// TestI2PartitionsAdded: keys move, and still no record of a key is in its old
// partition after one in its new partition.
func TestI2PartitionsAdded(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(3, "t"))
	// Some batches are unsettled when the topic grows.
	c.Fault(kfake.Fault{Keys: produceKey, Topic: "t", Err: kerr.NotEnoughReplicasAfterAppend, Count: 40})
	r := newRig(t, c, nil).start(t)
	const keys, total = 40, 8000
	for i := range total {
		switch i {
		case total / 4:
			r.until(t, "the old partitions have some", func() bool { return r.ackedTotal() > total/8 })
			addPartitions(t, c, "t", 7)
		case total / 2:
			r.until(t, "the topic has grown", func() bool {
				r.Kafka.mu.Lock()
				defer r.Kafka.mu.Unlock()
				return len(r.topics["t"].lanes) == 7
			})
		}
		if i%10 == 0 {
			r.send(t, "t", 1, "fixed")
			continue
		}
		r.send(t, "t", ByKey, fmt.Sprint("key-", i%keys))
	}
	r.drained(t)
	count, moved := 0, 0
	for key, parts := range perKey(t, c, "t") {
		was, is := 1, 1
		if key != "fixed" {
			was, is = int(partitionOf([]byte(key), 3)), int(partitionOf([]byte(key), 7))
		}
		for p, list := range parts {
			count += len(list)
			if len(list) > 0 && p != was && p != is {
				t.Errorf("key %s: %d records in partition %d, want %d or %d", key, len(list), p, was, is)
			}
		}
		if was != is && len(parts[was]) > 0 && len(parts[is]) > 0 {
			moved++
			if last, first := parts[was][len(parts[was])-1], parts[is][0]; last > first {
				t.Errorf("key %s: record %d went to the old partition, %d to the new one before", key, last, first)
			}
		}
	}
	if count != total {
		t.Errorf("%d records arrived, want %d", count, total)
	}
	if moved == 0 {
		t.Error("no key has moved: the test tests nothing")
	}
}

func TestMissingTopicHolds(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "other"))
	r := newRig(t, c, nil).start(t)
	r.send(t, "t", ByKey, "k")
	r.send(t, "other", ByKey, "k")
	h := r.holdOf(t, "t", -1, "UNKNOWN_TOPIC_OR_PARTITION")
	var e *DeliveryError
	if h.Class != Permanent || !errors.As(h.Err, &e) || !strings.Contains(e.Hint(), "--topic t") {
		t.Errorf("hold %+v, want a permanent one that says how to create it", h)
	}
	r.until(t, "the other topic flows", func() bool { return r.ackedTotal() == 1 })
	if err := c.CreateTopic("t", 3, nil); err != nil {
		t.Fatal(err)
	}
	r.drained(t)
	r.check(t, "t", "other")
}

func TestTopicIsCreated(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1))
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Topic: "t", Err: kerr.PolicyViolation, Count: 2})
	r := newRig(t, c, func(o *Options) {
		o.Topics = TopicPolicy{Create: true, Partitions: 5, ReplicationFactor: 1, Configs: map[string]string{"max.message.bytes": "12345"}}
	}).start(t)
	r.send(t, "t", ByKey, "k")
	r.drained(t)
	if n := len(readTopic(t, c, "t")); n != 5 {
		t.Errorf("%d partitions, want 5", n)
	}
	admin(t, c, func(ctx context.Context, client *kafka.Client) error {
		resp, err := client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{
			{ResourceType: kafka.ResourceTypeTopic, ResourceName: "t", ConfigNames: []string{"max.message.bytes"}},
		}})
		if err != nil {
			return err
		}
		if got := resp.Resources[0].ConfigEntries[0].ConfigValue; got != "12345" {
			t.Errorf("max.message.bytes = %s, want 12345", got)
		}
		return nil
	})
}

func TestTopicIsNotCreatedUnasked(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.AllowAutoTopicCreation())
	r := newRig(t, c, nil).start(t)
	r.send(t, "t", ByKey, "k")
	r.holdOf(t, "t", -1, "UNKNOWN_TOPIC_OR_PARTITION")
	admin(t, c, func(ctx context.Context, client *kafka.Client) error {
		meta, err := client.Metadata(ctx, &kafka.MetadataRequest{})
		if err == nil && len(meta.Topics) != 0 {
			t.Errorf("topics %v, want none", meta.Topics)
		}
		return err
	})
}

// TestTopicMadeAnew: nothing that was not acked is lost with the old topic.
func TestTopicMadeAnew(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int32{2, 4, 9} {
		t.Run(strconv.Itoa(int(partitions)), func(t *testing.T) {
			t.Parallel()
			// From Kafka 4.5 on an empty log takes only sequence 0 (KAFKA-15591), see
			// TestTopicMadeAnewSequence. The fake then fences the producer's other
			// partitions, which Kafka does not: its epochs are per partition.
			c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(4, "t"), kfake.SeedTopics(2, "other"),
				kfake.MaxVersions(kversion.V4_2_0()))
			r := newRig(t, c, nil).start(t)
			for i := range 100 {
				r.send(t, "t", ByKey, fmt.Sprint(i))
			}
			r.until(t, "the old topic has them", func() bool { return r.ackedTotal() == 100 })
			if err := c.DeleteTopic("t"); err != nil {
				t.Fatal(err)
			}
			for i := range 100 {
				r.send(t, "t", ByKey, fmt.Sprint(i))
				r.send(t, "other", ByKey, fmt.Sprint(i))
			}
			r.until(t, "the other topic flows", func() bool { return r.ackedTotal() == 200 })
			r.holdOf(t, "t", -1, "UNKNOWN_TOPIC_OR_PARTITION")
			// One request with the deleted topic fails as a whole; from then on
			// that topic stays out.
			failures := func() (n int) {
				r.counts.do(func() {
					for _, f := range r.counts.failed {
						n += f
					}
				})
				return n
			}
			before := failures()
			for i := range 200 {
				r.send(t, "other", ByKey, fmt.Sprint(i))
				r.until(t, "the other topic", func() bool { return r.ackedTotal() == 201+i })
			}
			if n := failures() - before; n > 8 {
				t.Errorf("%d failed batches while one topic is missing, want the others undisturbed", n)
			}
			if err := c.CreateTopic("t", partitions, nil); err != nil {
				t.Fatal(err)
			}
			r.drained(t)
			n := 0
			for _, parts := range perKey(t, c, "t") {
				for _, list := range parts {
					n += len(list)
				}
			}
			if n != 100 {
				t.Errorf("%d records in the new topic, want 100", n)
			}
		})
	}
}

// TestTopicMadeAnewSequence: the new log refuses the old sequence, and a new
// epoch is the way out.
func TestTopicMadeAnewSequence(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	r := newRig(t, c, nil).start(t)
	r.send(t, "t", ByKey, "k")
	r.drained(t)
	if err := c.DeleteTopic("t"); err != nil {
		t.Fatal(err)
	}
	r.send(t, "t", ByKey, "k")
	r.holdOf(t, "t", -1, "UNKNOWN_TOPIC_OR_PARTITION")
	r.send(t, "t", ByKey, "k")
	if err := c.CreateTopic("t", 1, nil); err != nil {
		t.Fatal(err)
	}
	r.drained(t)
	if got := readTopic(t, c, "t")[0]; len(got) != 2 || number(t, got[0]) != 1 || number(t, got[1]) != 2 {
		t.Errorf("%d records in the new topic, want those that came after the old one: %v", len(got), got)
	}
	r.counts.do(func() {
		if r.counts.lost != 1 {
			t.Errorf("%d sequence losses counted, want 1", r.counts.lost)
		}
	})
}

// TestLaggingMetadata: a broker that knows fewer partitions than we do is not
// believed at once.
func TestLaggingMetadata(t *testing.T) {
	t.Parallel()
	r := newRig(t, newCluster(t, kfake.NumBrokers(1)), nil)
	k := r.Kafka
	k.timing = usualTiming()
	k.mu.Lock()
	defer k.mu.Unlock()
	brokers := []metadata.ResponseBroker{{NodeID: 1, Host: "h"}}
	partitions := make([]metadata.ResponsePartition, 6)
	for i := range partitions {
		partitions[i] = metadata.ResponsePartition{PartitionIndex: int32(i), LeaderID: 1}
	}
	tp := &topic{name: "t"}
	if k.updateTopic(tp, partitions, brokers) || len(tp.lanes) != 6 {
		t.Fatalf("%d lanes, want 6", len(tp.lanes))
	}
	if !k.updateTopic(tp, partitions[:4], brokers) || len(tp.lanes) != 6 || tp.reshaping {
		t.Errorf("%d lanes after one answer with four, want six still", len(tp.lanes))
	}
	if got := tp.lanes[5].leader; got != -1 {
		t.Errorf("leader of the missing partition %d, want none", got)
	}
	if k.updateTopic(tp, partitions, brokers) || !tp.fewer.IsZero() || tp.lanes[5].leader != 1 {
		t.Error("the full answer does not mend it")
	}
	k.updateTopic(tp, partitions[:4], brokers)
	tp.fewer = tp.fewer.Add(-k.timing.metadata)
	if k.updateTopic(tp, partitions[:4], brokers) || len(tp.lanes) != 4 {
		t.Errorf("%d lanes after a lasting four, want 4", len(tp.lanes))
	}
}

// TestLeaderThatIsGone: a leader that the cluster does not name among its brokers
// is none, as a partition's error is, except where only a replica is missing.
func TestLeaderThatIsGone(t *testing.T) {
	t.Parallel()
	k := newRig(t, newCluster(t, kfake.NumBrokers(1)), nil).Kafka
	k.mu.Lock()
	defer k.mu.Unlock()
	tp := &topic{name: "t"}
	incomplete := k.updateTopic(tp, []metadata.ResponsePartition{
		{PartitionIndex: 4, LeaderID: 1},
		{PartitionIndex: 0, LeaderID: 1},
		{PartitionIndex: 1, LeaderID: 2},
		{PartitionIndex: 2, LeaderID: -1, ErrorCode: int16(kafka.LeaderNotAvailable)},
		{PartitionIndex: 3, LeaderID: 1, ErrorCode: int16(kafka.ReplicaNotAvailable)},
	}, []metadata.ResponseBroker{{NodeID: 1, Host: "h"}})
	var got []int32
	for _, l := range tp.lanes {
		got = append(got, l.leader)
	}
	if want := []int32{1, -1, -1, 1, 1}; !incomplete || !slices.Equal(got, want) {
		t.Errorf("leaders %v, incomplete %v, want %v and true", got, incomplete, want)
	}
}

func TestLeaderlessPartitionHolds(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(2, "t"))
	var leaderless atomic.Bool
	leaderless.Store(true)
	leader := c.LeaderFor("t", 0)
	addrs := c.ListenAddrs()
	c.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if !leaderless.Load() {
			return nil, nil, false
		}
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		for i, addr := range addrs {
			host, port, _ := strings.Cut(addr, ":")
			n, _ := strconv.Atoi(port)
			b := kmsg.NewMetadataResponseBroker()
			b.NodeID, b.Host, b.Port = int32(i), host, int32(n)
			resp.Brokers = append(resp.Brokers, b)
		}
		name := "t"
		tp := kmsg.NewMetadataResponseTopic()
		tp.Topic = &name
		for p := range int32(2) {
			part := kmsg.NewMetadataResponseTopicPartition()
			part.Partition, part.Leader = p, leader
			if p == 1 {
				part.Leader, part.ErrorCode = -1, kerr.LeaderNotAvailable.Code
			}
			tp.Partitions = append(tp.Partitions, part)
		}
		resp.Topics = append(resp.Topics, tp)
		return resp, nil, true
	})
	r := newRig(t, c, nil).start(t)
	r.send(t, "t", 0, "k")
	r.send(t, "t", 1, "k")
	h := r.holdOf(t, "t", 1, "LEADER_NOT_AVAILABLE")
	if h.Class != Passing {
		t.Errorf("class %v, want passing", h.Class)
	}
	r.until(t, "the led partition flows", func() bool { return r.ackedTotal() == 1 })
	leaderless.Store(false)
	r.drained(t)
	r.check(t, "t")
}
