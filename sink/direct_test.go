package sink

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
	"github.com/segmentio/kafka-go/protocol/rawproduce"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestLeaderRequestsAreTheLibrarys: byte for byte, in every version that the library
// may choose.
func TestLeaderRequestsAreTheLibrarys(t *testing.T) {
	t.Parallel()
	const to leader = 7
	records := func() protocol.RawRecordSet {
		return protocol.RawRecordSet{Reader: bytes.NewReader([]byte("a batch"))}
	}
	produce := func() []rawproduce.RequestTopic {
		return []rawproduce.RequestTopic{{Topic: "t", Partitions: []rawproduce.RequestPartition{{Partition: 3, RecordSet: records()}}}}
	}
	offsets := []listoffsets.RequestTopic{{Topic: "t", Partitions: []listoffsets.RequestPartition{{Partition: 3, CurrentLeaderEpoch: 4, Timestamp: 5}}}}
	fetches := []fetch.RequestTopic{{Topic: "t", Partitions: []fetch.RequestPartition{
		{Partition: 3, CurrentLeaderEpoch: 4, FetchOffset: 5, LogStartOffset: 6, PartitionMaxBytes: 7},
	}}}
	forgotten := []fetch.RequestForgottenTopic{{Topic: "f", Partitions: []int32{1, 2}}}
	for name, tt := range map[string]struct {
		first, last int16
		library     func() protocol.Message
		ours        func() protocol.Message
	}{
		"produce": {
			0, 8,
			func() protocol.Message {
				return &rawproduce.Request{TransactionalID: "x", Acks: -1, Timeout: 9, Topics: produce()}
			},
			func() protocol.Message {
				return &produceRequest{TransactionalID: "x", Acks: -1, Timeout: 9, Topics: produce(), leader: to}
			},
		},
		"list offsets": {
			1, 5,
			func() protocol.Message {
				return &listoffsets.Request{ReplicaID: -1, IsolationLevel: 1, Topics: offsets}
			},
			func() protocol.Message {
				return &offsetsRequest{ReplicaID: -1, IsolationLevel: 1, Topics: offsets, leader: to}
			},
		},
		"fetch": {
			0, 11,
			func() protocol.Message {
				return &fetch.Request{
					ReplicaID: -1, MaxWaitTime: 1, MinBytes: 2, MaxBytes: 3, IsolationLevel: 1, SessionID: 8, SessionEpoch: 9,
					Topics: fetches, ForgottenTopics: forgotten, RackID: "r",
				}
			},
			func() protocol.Message {
				return &fetchRequest{
					ReplicaID: -1, MaxWaitTime: 1, MinBytes: 2, MaxBytes: 3, IsolationLevel: 1, SessionID: 8, SessionEpoch: 9,
					Topics: fetches, ForgottenTopics: forgotten, RackID: "r", leader: to,
				}
			},
		},
	} {
		for version := tt.first; version <= tt.last; version++ {
			var library, ours bytes.Buffer
			if err := protocol.WriteRequest(&library, version, 1, "client", tt.library()); err != nil {
				t.Errorf("%s %d: the library's: %v", name, version, err)
			}
			if err := protocol.WriteRequest(&ours, version, 1, "client", tt.ours()); err != nil {
				t.Errorf("%s %d: ours: %v", name, version, err)
			}
			if !bytes.Equal(ours.Bytes(), library.Bytes()) {
				t.Errorf("%s %d: %x, want %x", name, version, ours.Bytes(), library.Bytes())
			}
		}
	}
}

// TestForeignTopicsAreNotAskedFor: a cluster may have a hundred thousand partitions
// that are none of ours.
func TestForeignTopicsAreNotAskedFor(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(3, "a", "b", "foreign"))
	var asked atomic.Int32
	c.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		r := req.(*kmsg.MetadataRequest)
		if r.Topics == nil {
			t.Error("all topics were asked for")
		}
		for _, topic := range r.Topics {
			asked.Add(1)
			if *topic.Topic == "foreign" {
				t.Error("the foreign topic was asked for")
			}
		}
		return nil, nil, false
	})
	r := newRig(t, c, nil).start(t)
	for range 9 {
		r.send(t, "a", int32(r.sent%3), "")
		r.send(t, "b", int32(r.sent%3), "")
	}
	r.drained(t)
	if asked.Load() == 0 {
		t.Error("no topic was asked for: the test tests nothing")
	}
}

// ledByNewBroker gives partition 0 of topic t to a broker that was not there before.
func ledByNewBroker(t *testing.T, c *kfake.Cluster) {
	t.Helper()
	id, _, err := c.AddNode(-1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.MoveTopicPartition("t", 0, id); err != nil {
		t.Fatal(err)
	}
}

// TestNewBrokerIsMetAtOnce: the library does not look by itself for an hour here.
func TestNewBrokerIsMetAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	r := newRig(t, c, nil)
	r.transport.MetadataTTL = time.Hour
	r.start(t)
	r.send(t, "t", 0, "")
	r.drained(t)
	ledByNewBroker(t, c)
	for range 3 {
		r.send(t, "t", 0, "")
	}
	r.drained(t)
}

// TestFetchFollowsTheLeader: who was asked in vain is not asked again.
func TestFetchFollowsTheLeader(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(1, "t"))
	r := newRig(t, c, nil).start(t)
	r.send(t, "t", 0, "")
	r.drained(t)
	for _, unknown := range []int32{0, 1, 2} {
		if err := c.MoveTopicPartition("t", 0, (unknown+1)%3); err != nil {
			t.Fatal(err)
		}
		p := &place{Partition{"t", 0}, unknown}
		read := 0
		count := func(*kafka.Record) error { read++; return nil }
		if _, err := r.fetch(r.ctx, p, 0, count); !errors.Is(err, kafka.NotLeaderForPartition) {
			t.Errorf("broker %d: error %v, want %v", unknown, err, kafka.NotLeaderForPartition)
		}
		if next, err := r.fetch(r.ctx, p, 0, count); err != nil || next != 1 || read != 1 {
			t.Errorf("again: %d records, next %d, %v; want 1, 1", read, next, err)
		}
	}
}

// TestFirstLookInVain: no broker was there when the library looked, and it does not
// look by itself for an hour here.
func TestFirstLookInVain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	r := newRig(t, c, nil)
	r.transport.MetadataTTL = time.Hour
	r.network.setDown(true)
	r.start(t)
	r.send(t, "t", 0, "")
	r.until(t, "a hold", func() bool { return r.Status().Holds != nil })
	r.network.setDown(false)
	r.drained(t)
}

// TestControllerGone: the controller that the library knows is dead, and a broker
// that it does not know leads.
func TestControllerGone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(1, "t"))
	r := newRig(t, c, nil)
	r.transport.MetadataTTL = time.Hour
	r.start(t)
	r.send(t, "t", 0, "")
	r.drained(t)
	cluster, err := r.metadata(r.ctx, []string{"t"})
	if err != nil {
		t.Fatal(err)
	}
	ledByNewBroker(t, c)
	if err := c.RemoveNode(cluster.ControllerID); err != nil {
		t.Fatal(err)
	}
	r.send(t, "t", 0, "")
	r.drained(t)
}

// TestTopicThatIsLeftOut: a broker that does not mention a topic does not have it.
func TestTopicThatIsLeftOut(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	c.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		r := req.(*kmsg.MetadataRequest)
		r.Topics = slices.DeleteFunc(r.Topics, func(t kmsg.MetadataRequestTopic) bool { return *t.Topic == "left-out" })
		return nil, nil, false
	})
	r := newRig(t, c, nil).start(t)
	r.send(t, "left-out", 0, "")
	r.send(t, "t", 0, "")
	r.holdOf(t, "left-out", -1, "UNKNOWN_TOPIC_OR_PARTITION")
}

// TestManyTopics: what is asked in several requests is all taken over, and what one
// of them could not tell comes with the next round.
func TestManyTopics(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 3*describeAtOnce + 1 {
		names = append(names, fmt.Sprint("t", i))
	}
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(1, names...))
	var cuts atomic.Int32
	c.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if n := len(req.(*kmsg.MetadataRequest).Topics); n > describeAtOnce {
			t.Errorf("%d topics in a request, want %d at most", n, describeAtOnce)
		} else if n == describeAtOnce && cuts.Add(1) == 2 {
			return nil, errors.New("cut"), true
		}
		return nil, nil, false
	})
	r := newRig(t, c, nil)
	for _, name := range names { // all before the first look
		r.send(t, name, 0, "")
	}
	r.start(t)
	r.drained(t)
	if cuts.Load() < 2 {
		t.Error("no request was cut: the test tests nothing")
	}
}
