package sink

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestListOffsetsAsksEachLeaderOnce: thousands of partitions are no reason for
// thousands of requests.
func TestListOffsetsAsksEachLeaderOnce(t *testing.T) {
	t.Parallel()
	const topics, each = 20, 50
	var names []string
	for i := range topics {
		names = append(names, fmt.Sprint("t", i))
	}
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(each, names...))
	var requests, asked atomic.Int64
	c.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		requests.Add(1)
		for _, t := range req.(*kmsg.ListOffsetsRequest).Topics {
			asked.Add(int64(len(t.Partitions)))
		}
		return nil, nil, false
	})
	r := newRig(t, c, nil)
	t.Cleanup(r.transport.CloseIdleConnections)
	var partitions []Partition
	for _, name := range names {
		for n := range int32(each) {
			partitions = append(partitions, Partition{name, n})
		}
	}
	answers, err := r.listOffsets(r.ctx, partitions, latest)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range partitions {
		if o, ok := answers[p]; !ok || o.at != 0 || o.err != nil {
			t.Fatalf("%s/%d: %+v, %t; want offset 0", p.Topic, p.Number, o, ok)
		}
	}
	if requests.Load() != 3 || asked.Load() != topics*each {
		t.Errorf("%d requests for %d partitions, want 3 for %d", requests.Load(), asked.Load(), topics*each)
	}
}

// TestListOffsetsAnswers: each partition has its own answer, whatever becomes of
// the others.
func TestListOffsetsAnswers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(4, "t"))
	for p := range int32(4) {
		if err := c.MoveTopicPartition("t", p, p%2); err != nil {
			t.Fatal(err)
		}
	}
	before := newRig(t, c, nil).start(t)
	for range 6 {
		before.send(t, "t", int32(before.sent%2), "")
	}
	before.drained(t)
	c.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		ask := req.(*kmsg.ListOffsetsRequest)
		if ask.ReplicaID != -1 {
			t.Errorf("replica id %d, want a client's", ask.ReplicaID)
		}
		if ask.Topics[0].Partitions[0].Partition%2 == 1 {
			return nil, errors.New("cut"), true // broker 1
		}
		resp := ask.ResponseKind().(*kmsg.ListOffsetsResponse)
		answer := kmsg.NewListOffsetsResponseTopic()
		answer.Topic = "t"
		for _, n := range []int32{0, 0, 2} { // 0 twice: the first counts
			p := kmsg.NewListOffsetsResponseTopicPartition()
			p.Partition, p.Offset = n, int64(3+len(answer.Partitions))
			if n == 2 {
				p.ErrorCode, p.Offset = 29, -1
			}
			answer.Partitions = append(answer.Partitions, p)
		}
		resp.Topics = append(resp.Topics, answer)
		return resp, nil, true
	})
	answers, err := before.listOffsets(before.ctx, []Partition{{"t", 0}, {"t", 1}, {"t", 2}, {"t", 3}, {"t", 4}, {"no", 0}}, earliest)
	if err != nil {
		t.Fatal(err)
	}
	type seen struct {
		At       int64
		Code     kafka.Error
		Answered bool
	}
	got := make(map[Partition]seen)
	for p, o := range answers {
		s := seen{At: o.at, Answered: o.answered()}
		errors.As(o.err, &s.Code)
		got[p] = s
	}
	want := map[Partition]seen{
		{"t", 0}:  {3, 0, true},
		{"t", 1}:  {-1, 0, false},
		{"t", 2}:  {-1, kafka.TopicAuthorizationFailed, true},
		{"t", 3}:  {-1, 0, false},
		{"t", 4}:  {-1, kafka.UnknownTopicOrPartition, true},
		{"no", 0}: {-1, kafka.UnknownTopicOrPartition, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
