package sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var produceKey = []kmsg.Key{kmsg.Produce}

// TestPassingAnswers: whatever passing thing a broker says, stored or not, the
// records arrive once and in order.
func TestPassingAnswers(t *testing.T) {
	t.Parallel()
	for _, e := range []*kerr.Error{
		kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut, kerr.LeaderNotAvailable,
		kerr.NotLeaderForPartition, kerr.UnknownTopicOrPartition, kerr.KafkaStorageError, kerr.NetworkException,
		kerr.ThrottlingQuotaExceeded, kerr.UnknownServerError, kerr.TopicAuthorizationFailed, kerr.CorruptMessage,
	} {
		t.Run(e.Message, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
			c.Fault(kfake.Fault{Keys: produceKey, Topic: "t", Partitions: []int32{0}, Err: e, Count: 4})
			r := newRig(t, c, nil).start(t)
			for i := range 50 {
				r.send(t, "t", int32(i%2), "k")
			}
			r.drained(t)
			r.check(t, "t")
			got := 0
			r.counts.do(func() {
				for _, n := range r.counts.failed {
					got += n
				}
			})
			if got != 4 {
				t.Errorf("%d failed attempts counted, want 4", got)
			}
		})
	}
}

// TestI8SameBytesAfterUnknownOutcome: a batch that may be stored goes again
// byte for byte, although more records wait by then.
func TestI8SameBytesAfterUnknownOutcome(t *testing.T) {
	t.Parallel()
	for _, e := range []*kerr.Error{kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut, kerr.NotLeaderForPartition, kerr.KafkaStorageError} {
		t.Run(e.Message, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
			var r *rig
			var seen []sentBatch
			var mu sync.Mutex
			observe(c, func(b sentBatch) {
				mu.Lock()
				seen = append(seen, b)
				mu.Unlock()
			})
			fault := c.Fault(kfake.Fault{Keys: produceKey, Topic: "t", Err: e, Count: 3})
			r = newRig(t, c, nil).start(t)
			r.send(t, "t", 0, "k")
			for n := 1; n <= 3; n++ {
				if err := fault.Wait(r.ctx, n); err != nil {
					t.Fatal(err)
				}
				r.send(t, "t", 0, "k") // waits behind the first
			}
			r.drained(t)
			r.check(t, "t")
			mu.Lock()
			defer mu.Unlock()
			for i := 1; i < 4; i++ {
				if !bytes.Equal(seen[0].raw, seen[i].raw) {
					t.Errorf("attempt %d is not the same bytes", i+1)
				}
			}
		})
	}
}

// TestI2CutConnections breaks every third request in each way.
func TestI2CutConnections(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]cut{"before": cutBefore, "half": cutHalf, "answer": cutAnswer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(3, "t"))
			r := newRig(t, c, nil)
			n := 0
			r.network.setDecide(func([]byte) cut {
				if n++; n%3 != 0 {
					return pass
				}
				return how
			})
			r.start(t)
			for i := range 300 {
				r.send(t, "t", ByKey, fmt.Sprint(i%17))
				if i%10 == 9 { // so that there are many requests
					r.until(t, "ten more", func() bool { return r.ackedTotal() == r.sent })
				}
			}
			r.drained(t)
			r.check(t, "t")
			if r.counts.failures("connection") == 0 {
				t.Error("no attempt failed: the test tests nothing")
			}
		})
	}
}

// TestI2OneUnsettledBatchPerPartition watches the broker's side: sequences go
// up without a gap, and only the newest batch is ever repeated.
func TestI2OneUnsettledBatchPerPartition(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(4, "t"))
	var mu sync.Mutex
	type state struct {
		next int32
		last []byte
	}
	lanes := make(map[int32]*state)
	var wrong error
	observe(c, func(b sentBatch) {
		mu.Lock()
		defer mu.Unlock()
		s := lanes[b.partition]
		if s == nil {
			s = &state{}
			lanes[b.partition] = s
		}
		switch {
		case b.ProducerID < 0:
			wrong = errors.New("a batch without producer id")
		case bytes.Equal(b.raw, s.last):
		case b.FirstSequence == s.next:
			s.next, s.last = s.next+b.NumRecords, b.raw
		default:
			wrong = fmt.Errorf("partition %d: sequence %d, want %d or a repeat", b.partition, b.FirstSequence, s.next)
		}
	})
	for p := range int32(4) {
		c.Fault(kfake.Fault{Keys: produceKey, Topic: "t", Partitions: []int32{p}, Err: kerr.NotEnoughReplicasAfterAppend, Count: 5})
	}
	r := newRig(t, c, nil).start(t)
	for i := range 3000 {
		r.send(t, "t", ByKey, fmt.Sprint(i))
	}
	r.drained(t)
	r.check(t, "t")
	mu.Lock()
	defer mu.Unlock()
	if wrong != nil {
		t.Error(wrong)
	}
}

func TestLeaderMoves(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(6, "t"))
	r := newRig(t, c, nil).start(t)
	for i := range 3000 {
		r.send(t, "t", ByKey, fmt.Sprint(i%100))
		if i%100 == 0 {
			p := int32(i / 100 % 6)
			if err := c.MoveTopicPartition("t", p, (c.LeaderFor("t", p)+1)%3); err != nil {
				t.Fatal(err)
			}
			r.until(t, "half of it acked", func() bool { return r.ackedTotal() > i/2 })
		}
	}
	r.drained(t)
	r.check(t, "t")
}

func TestBrokerDownAtStart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	r := newRig(t, c, nil)
	r.network.setDown(true)
	r.start(t)
	r.send(t, "t", ByKey, "k")
	h := r.holdOf(t, "", -1, "connection_refused")
	var hinted interface{ Hint() string }
	if h.Class != Passing || !errors.As(h.Err, &hinted) || hinted.Hint() == "" {
		t.Errorf("hold %+v, want a passing one with a hint", h)
	}
	if s := r.Status(); !s.LastContact.IsZero() {
		t.Errorf("last contact %v, though no broker ever answered", s.LastContact)
	}
	r.network.setDown(false)
	r.drained(t)
	r.check(t, "t")
}

// TestLastContact: metadata from the library's memory is not a sign of life.
func TestLastContact(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	r := newRig(t, c, func(o *Options) { o.RequestTimeout = 100_000_000 }).start(t)
	r.send(t, "t", ByKey, "k")
	r.drained(t)
	c.Close()
	r.send(t, "t", ByKey, "k")
	r.holdOf(t, "t", 0, "connection_refused")
	before := r.Status().LastContact
	failures := r.counts.failures("connection_refused")
	r.until(t, "more attempts", func() bool { return r.counts.failures("connection_refused") > failures+5 })
	if after := r.Status().LastContact; !after.Equal(before) {
		t.Errorf("last contact moved from %v to %v after the broker was gone", before, after)
	}
}

func TestProducerIDComesLate(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.CoordinatorLoadInProgress, Count: 3})
	observe(c, func(b sentBatch) {
		if b.ProducerID < 0 || fault.Hits() < 3 {
			t.Errorf("batch with producer id %d after %d refusals", b.ProducerID, fault.Hits())
		}
	})
	r := newRig(t, c, nil).start(t)
	r.send(t, "t", ByKey, "k")
	r.drained(t)
	r.check(t, "t")
}

// TestProducerIDRefused: the hold stays visible although metadata is fine.
func TestProducerIDRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.ClusterAuthorizationFailed, Count: -1})
	r := newRig(t, c, nil).start(t)
	r.send(t, "t", ByKey, "k")
	if err := fault.Wait(r.ctx, 2); err != nil {
		t.Fatal(err)
	}
	r.until(t, "contact", func() bool { return !r.Status().LastContact.IsZero() })
	h := r.holdOf(t, "", -1, "CLUSTER_AUTHORIZATION_FAILED")
	contact := r.Status().LastContact
	r.until(t, "more contact", func() bool { return r.Status().LastContact.After(contact) })
	if s := r.Status(); s.HoldCount == 0 || h.Class != Permanent {
		t.Errorf("status %+v, want the permanent hold", s)
	}
	fault.Remove()
	r.drained(t)
}

func TestSequenceLost(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	r := newRig(t, c, nil).start(t)
	r.send(t, "t", ByKey, "k")
	r.until(t, "the first", func() bool { return r.ackedTotal() == 1 })
	c.Fault(kfake.Fault{Keys: produceKey, Topic: "t", Err: kerr.OutOfOrderSequenceNumber})
	var mu sync.Mutex
	var last sentBatch
	observe(c, func(b sentBatch) {
		mu.Lock()
		last = b
		mu.Unlock()
	})
	for range 5 {
		r.send(t, "t", ByKey, "k")
	}
	r.drained(t)
	r.check(t, "t")
	r.counts.do(func() {
		if r.counts.lost != 1 {
			t.Errorf("%d sequence losses counted, want 1", r.counts.lost)
		}
	})
	mu.Lock()
	defer mu.Unlock()
	if last.ProducerEpoch != 1 {
		t.Errorf("epoch %d after the loss, want 1", last.ProducerEpoch)
	}
}

func TestFenced(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(4, "t"))
	c.Fault(kfake.Fault{Keys: produceKey, Topic: "t", Partitions: []int32{2}, Err: kerr.InvalidProducerEpoch, Count: -1})
	r := newRig(t, c, nil)
	for p := range int32(4) {
		r.send(t, "t", p, "k")
	}
	err := r.Run(r.ctx)
	var e *DeliveryError
	if !errors.As(err, &e) || e.Class != Fenced || e.Topic != "t" || e.Partition != 2 || e.Hint() == "" {
		t.Errorf("Run() = %v, want a fenced DeliveryError for t/2", err)
	}
}

func TestRunStopsWhileBrokerIsStuck(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	arrived := neverAnswered(c)
	r := newRig(t, c, nil).start(t)
	r.send(t, "t", ByKey, "k")
	select {
	case <-arrived:
	case <-r.ctx.Done():
		t.Fatal("no request came")
	}
	if err := r.stop(); err != nil {
		t.Errorf("Run() = %v, want nil", err)
	}
	if r.ackedTotal() != 0 {
		t.Error("an ack without an answer")
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	ok := Options{Brokers: []string{"a:1"}, Acked: func([]Ack) {}}
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"fine":        {func(*Options) {}, ""},
		"no brokers":  {func(o *Options) { o.Brokers = nil }, "broker"},
		"no acked":    {func(o *Options) { o.Acked = nil }, "Acked"},
		"compression": {func(o *Options) { o.Compression = "brotli" }, `"brotli"`},
		"mechanism":   {func(o *Options) { o.Security.Mechanism = "GSSAPI" }, `"GSSAPI"`},
	} {
		opt := ok
		c.change(&opt)
		k, err := New(opt)
		if c.want == "" && (err != nil || k.String() != "kafka a:1") {
			t.Errorf("%s: New() = %v, %v", name, k, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: New() = %v, want an error about %s", name, err, c.want)
		}
	}
}

// raise changes max.message.bytes of a topic.
func raise(t *testing.T, c *kfake.Cluster, topic, value string) {
	t.Helper()
	admin(t, c, func(ctx context.Context, client *kafka.Client) error {
		resp, err := client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
			Resources: []kafka.IncrementalAlterConfigsRequestResource{{
				ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
				Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: "max.message.bytes", Value: value, ConfigOperation: kafka.ConfigOperationSet}},
			}},
		})
		if err != nil {
			return err
		}
		return resp.Resources[0].Error
	})
}
