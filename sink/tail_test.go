package sink

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestTailWaitsForEveryLeader: a leader that does not answer, while the others do,
// has not refused. To go on without it would send again what lies in its
// partitions.
func TestTailWaitsForEveryLeader(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(2, "t"))
	for p := range int32(2) {
		if err := c.MoveTopicPartition("t", p, p); err != nil {
			t.Fatal(err)
		}
	}
	predecessor(t, c, 4)
	var refused atomic.Int32
	c.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if asked := req.(*kmsg.ListOffsetsRequest).Topics[0].Partitions[0].Partition; asked == 1 && refused.Add(1) <= 4 {
			return nil, errors.New("cut"), true
		}
		return nil, nil, false
	})
	after := recovered(t, c, 0)
	if refused.Load() < 4 {
		t.Fatalf("%d requests were cut: the test tests nothing", refused.Load())
	}
	after.sendAll(t, 4) // what the predecessor had sent
	after.nothingSent(t)
}

// sendAll sends n records to "t", alternately to two partitions.
func (r *rig) sendAll(t *testing.T, n int) {
	t.Helper()
	for range n {
		r.send(t, "t", int32(r.sent%2), "")
	}
}

// predecessor sends n records and ends.
func predecessor(t *testing.T, c *kfake.Cluster, n int) {
	t.Helper()
	before := newRig(t, c, nil).start(t)
	before.sendAll(t, n)
	before.drained(t)
	if err := before.stop(); err != nil {
		t.Fatal(err)
	}
}

// recovered is a sink that has read the tail of "t" from the offsets.
func recovered(t *testing.T, c *kfake.Cluster, offset int64) *rig {
	t.Helper()
	r := newRig(t, c, func(o *Options) { o.AwaitRecovery = true }).start(t)
	offsets := map[Partition]int64{{Topic: "t", Number: 0}: offset, {Topic: "t", Number: 1}: offset}
	if err := r.Recover(r.ctx, Recovery{TransactionalID: "walpost-test", Offsets: offsets}); err != nil {
		t.Fatal(err)
	}
	if tail := r.Status().Protection.Tail; tail != "" {
		t.Errorf("protection is off: %s", tail)
	}
	return r
}

// nothingSent demands that what was submitted was found, and not sent again.
func (r *rig) nothingSent(t *testing.T) {
	t.Helper()
	r.until(t, "everything acked", func() bool { return r.ackedTotal() >= r.sent })
	r.counts.do(func() {
		if r.counts.acked != 0 {
			t.Errorf("%d records were sent again", r.counts.acked)
		}
	})
}

// TestTailOfNewLeader: a leader that was just elected may not know yet how far its
// followers are, and gives less than there is. To take that for a hole would send
// again what lies there.
func TestTailOfNewLeader(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
	predecessor(t, c, 8)
	var behind atomic.Int32
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if behind.Add(1) > 6 {
			return nil, nil, false
		}
		ask := req.(*kmsg.FetchRequest)
		resp := ask.ResponseKind().(*kmsg.FetchResponse)
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic, topic.TopicID = ask.Topics[0].Topic, ask.Topics[0].TopicID
		p := kmsg.NewFetchResponseTopicPartition()
		p.Partition, p.HighWatermark = ask.Topics[0].Partitions[0].Partition, 0
		topic.Partitions = append(topic.Partitions, p)
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	after := recovered(t, c, 0)
	if behind.Load() < 6 {
		t.Fatalf("%d answers were empty: the test tests nothing", behind.Load())
	}
	after.sendAll(t, 8)
	after.nothingSent(t)
}

// TestTailOfTopicMadeAnew: the checkpoint's offsets are beyond the end of a topic
// that was made anew since. What is there is read all the same.
func TestTailOfTopicMadeAnew(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
	predecessor(t, c, 8)
	after := recovered(t, c, 1_000_000)
	after.sendAll(t, 8)
	after.nothingSent(t)
}

// TestTailKnowsRecordOfNoPartition: a record that is in Kafka already comes again
// for a partition that does not exist.
func TestTailKnowsRecordOfNoPartition(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
	predecessor(t, c, 2)
	after := recovered(t, c, 0)
	for range 2 {
		after.send(t, "t", 9, "")
	}
	after.nothingSent(t)
	after.send(t, "t", 9, "")
	after.until(t, "a hold", func() bool { return after.Status().HoldCount > 0 })
	if h := after.Status().Holds[0]; h.Partition != 9 || h.Reason != "no_such_partition" {
		t.Errorf("hold %+v, want partition 9, no_such_partition", h)
	}
}
