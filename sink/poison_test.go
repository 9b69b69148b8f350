package sink

import (
	"bytes"
	"encoding/binary"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestTooLargeBatchIsCut: a topic with a small limit, and far more queued.
func TestTooLargeBatchIsCut(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1))
	if err := c.CreateTopic("t", 2, map[string]string{"max.message.bytes": "10000"}); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, c, nil)
	for i := range 400 {
		if err := r.trySend(r.ctx, "t", int32(i%2), "k", strings.Repeat("x", 900)); err != nil {
			t.Fatal(err)
		}
	}
	r.start(t)
	r.drained(t)
	r.check(t, "t")
	if n := r.counts.failures("MESSAGE_TOO_LARGE"); n == 0 || n > 40 {
		t.Errorf("%d attempts too large, want a few until the size is learned", n)
	}
}

// poisoned sends 10 records to partition 0 of which the sixth is bad, and 10 to
// partition 1, and waits until all but the bad one and what is behind it are
// acked.
func poisoned(t *testing.T, r *rig, bad, reason string) {
	t.Helper()
	for i := range 20 {
		tail := ""
		if i == 10 {
			tail = bad
		}
		if err := r.trySend(r.ctx, "t", int32(i%2), "k", tail); err != nil {
			t.Fatal(err)
		}
	}
	r.start(t)
	h := r.holdOf(t, "t", 0, reason)
	r.until(t, "the others", func() bool { return r.ackedTotal() == 15 })
	h = r.holdOf(t, "t", 0, reason)
	if h.Class != Poison || h.Poison == nil || h.Err == nil {
		t.Fatalf("hold %+v, want a poison record", h)
	}
	if n := heldNumber(t, &h); n != 10 || h.Poison.Tag.Tx != 10 || h.Poison.Topic != "t" || string(h.Poison.Key) != "k" {
		t.Errorf("poison is record %d %+v, want 10", n, h.Poison.Tag)
	}
	tries := r.counts.failures(reason)
	r.until(t, "it is tried again", func() bool { return r.counts.failures(reason) > tries+3 })
	r.send(t, "t", 1, "k")
	r.until(t, "the other partition flows on", func() bool { return r.ackedTotal() == 16 })
}

func TestTooLargeRecordHolds(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1))
	if err := c.CreateTopic("t", 2, map[string]string{"max.message.bytes": "10000"}); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, c, nil)
	poisoned(t, r, strings.Repeat("x", 20_000), "MESSAGE_TOO_LARGE")
	raise(t, c, "t", "1000000") // what the hint says
	r.drained(t)
	r.check(t, "t")
	r.Kafka.mu.Lock()
	defer r.Kafka.mu.Unlock()
	if m := r.topics["t"].maxBatch; m != 0 {
		t.Errorf("batches still limited to %d bytes after the topic takes more", m)
	}
}

// A broker that refuses a batch for one record and does not say which.
func TestRefusedRecordIsFound(t *testing.T) {
	t.Parallel()
	for _, e := range []*kerr.Error{kerr.InvalidRecord, kerr.InvalidTimestamp} {
		t.Run(e.Message, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
			fault := c.Fault(kfake.Fault{
				Keys: produceKey, Topic: "t", Partitions: []int32{0}, Err: e, Count: -1,
				When: func(req kmsg.Request) bool { return badIndex(req, 0) >= 0 },
			})
			r := newRig(t, c, nil)
			poisoned(t, r, "bad", e.Message)
			fault.Remove()
			r.drained(t)
			r.check(t, "t")
		})
	}
}

// A broker that names the record (KIP-467).
func TestNamedRecordIsHeld(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	var refuse atomic.Bool
	refuse.Store(true)
	sizes := make(chan int32, 1000) // of the batches that come
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		select {
		case sizes <- batches(req)[0].NumRecords:
		default:
		}
		i := badIndex(req, 0)
		if !refuse.Load() || i < 0 {
			return nil, nil, false
		}
		p := kmsg.NewProduceResponseTopicPartition()
		p.ErrorCode = kerr.InvalidRecord.Code
		why := "too late"
		p.ErrorRecords = []kmsg.ProduceResponseTopicPartitionErrorRecord{{RelativeOffset: int32(i), ErrorMessage: &why}}
		st := kmsg.NewProduceResponseTopic()
		st.Topic, st.Partitions = "t", []kmsg.ProduceResponseTopicPartition{p}
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		resp.Topics = []kmsg.ProduceResponseTopic{st}
		return resp, nil, true
	})
	r := newRig(t, c, nil)
	for i := range 20 {
		tail := ""
		if i == 10 {
			tail = "bad"
		}
		if err := r.trySend(r.ctx, "t", 0, "k", tail); err != nil {
			t.Fatal(err)
		}
	}
	r.start(t)
	h := r.holdOf(t, "t", 0, "INVALID_RECORD")
	for i, want := range []int32{20, 10, 10, 1} {
		if got := <-sizes; got != want {
			t.Errorf("batch %d has %d records, want %d", i, got, want)
		}
	}
	if n := r.ackedTotal(); n != 10 {
		t.Errorf("%d records acked, want the ten before the bad one", n)
	}
	if h.Poison == nil || heldNumber(t, &h) != 10 || !strings.Contains(h.Err.Error(), "too late") {
		t.Errorf("hold %+v, want record 10 with the broker's words", h)
	}
	refuse.Store(false)
	r.drained(t)
	r.check(t, "t")
}

// badIndex is the index of the record whose value ends in "bad", -1 if none.
func badIndex(req kmsg.Request, partition int32) int {
	for _, b := range batches(req) {
		if b.partition != partition {
			continue
		}
		for i, v := range b.values() {
			if strings.HasSuffix(v, "bad") {
				return i
			}
		}
	}
	return -1
}

// TestI2RefusedAfterUnknownOutcome: an earlier attempt may be stored, so the
// batch may be cut only under a new epoch.
func TestI2RefusedAfterUnknownOutcome(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	r := newRig(t, c, nil)
	for range 10 {
		r.send(t, "t", 0, "k")
	}
	n := 0
	type place struct {
		epoch int16
		seq   int32
	}
	seen := make(map[place][]byte)
	var cutAgain bool
	r.network.setDecide(func(request []byte) cut { // the network's mutex guards these
		b := parseProduce(t, request)
		at := place{b.ProducerEpoch, b.FirstSequence}
		if old, ok := seen[at]; ok && !bytes.Equal(old, b.raw) {
			cutAgain = true
		}
		seen[at] = b.raw
		if n++; n == 1 {
			return cutBefore
		}
		return pass
	})
	c.Fault(kfake.Fault{Keys: produceKey, Topic: "t", Err: kerr.MessageTooLarge})
	r.start(t)
	r.drained(t)
	r.check(t, "t")
	r.network.setDecide(nil)
	if n < 4 || cutAgain {
		t.Errorf("%d requests; other bytes under a used sequence: %v", n, cutAgain)
	}
}

// parseProduce finds the only batch in the bytes of a produce request.
func parseProduce(t *testing.T, request []byte) sentBatch {
	t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.Version = int16(binary.BigEndian.Uint16(request[6:]))
	client := int(binary.BigEndian.Uint16(request[12:]))
	if err := req.ReadFrom(request[14+client:]); err != nil {
		t.Errorf("produce request: %v", err)
		return sentBatch{}
	}
	return batches(req)[0]
}

func TestPartitionThatDoesNotExist(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
	r := newRig(t, c, nil)
	r.send(t, "t", 7, "early") // before the topic is known
	r.start(t)
	h := r.holdOf(t, "t", 7, "no_such_partition")
	if h.Class != Poison || h.Poison == nil || string(h.Poison.Key) != "early" {
		t.Errorf("hold %+v, want the record with key early", h)
	}
	r.send(t, "t", 9, "late") // when it is known
	r.send(t, "t", 9, "later")
	h = r.holdOf(t, "t", 9, "no_such_partition")
	if h.Poison == nil || string(h.Poison.Key) != "late" {
		t.Errorf("hold %+v, want the record with key late", h)
	}
	r.send(t, "t", 1, "fine")
	r.until(t, "the existing partition flows", func() bool { return r.ackedTotal() == 1 })
	addPartitions(t, c, "t", 10)
	r.drained(t)
	r.check(t, "t")
}

// heldNumber is the number of the record that is in the way; its value is left
// out of the status.
func heldNumber(t *testing.T, h *Hold) int {
	t.Helper()
	r := *h.Poison
	if r.Value != nil {
		t.Errorf("the held record carries a value of %d bytes", len(r.Value))
	}
	r.Value = r.Headers[0].Value
	return number(t, r)
}
