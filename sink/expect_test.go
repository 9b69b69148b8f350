package sink

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (r *rig) knows(topic string) (lanes int, held bool) {
	r.Kafka.mu.Lock()
	defer r.Kafka.mu.Unlock()
	t := r.topics[topic]
	if t == nil {
		return 0, false
	}
	return len(t.lanes), t.hold != nil
}

// TestExpect: what is expected is known before there is a record; what is not
// there is neither made nor missed, until there is one.
func TestExpect(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(3, "there"))
	r := newRig(t, c, func(o *Options) { o.Topics.Create = true })
	r.Expect([]string{"there", "missing"})
	r.start(t)
	r.until(t, "the topic", func() bool { lanes, _ := r.knows("there"); return lanes == 3 })
	if lanes, held := r.knows("missing"); lanes > 0 || held {
		t.Errorf("a topic without a record: %d partitions, held: %v", lanes, held)
	}
	if s := r.Status(); s.HoldCount > 0 {
		t.Errorf("held: %+v", s.Holds)
	}
	if n := c.TopicInfo("missing"); n != nil {
		t.Error("a topic was made that nobody writes")
	}
	r.send(t, "there", ByKey, "k")
	r.send(t, "missing", ByKey, "k")
	r.drained(t)
	r.check(t, "there", "missing")
}

// TestRegisterWhileFencing: a partition that is new to us is registered while
// predecessors are fenced off, and nothing is sent before that is done.
func TestRegisterWhileFencing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
	var registered, early atomic.Int32
	var fenced atomic.Bool
	c.ControlKey(int16(kmsg.InitProducerID), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if registered.Load() == 0 {
			return nil, errors.New("cut"), true
		}
		fenced.Store(true)
		return nil, nil, false
	})
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if !fenced.Load() {
			early.Add(1)
		}
		return nil, nil, false
	})
	r := newRig(t, c, func(o *Options) { o.AwaitRecovery = true }).start(t)
	r.Expect([]string{"t"})
	ctx, cancel := context.WithTimeout(r.ctx, 20*time.Second)
	defer cancel()
	r.until(t, "the topic", func() bool { lanes, _ := r.knows("t"); return lanes == 2 })
	r.send(t, "t", 0, "") // earlier than anybody does: it must wait
	err := r.Recover(ctx, Recovery{
		TransactionalID: "walpost-test",
		Register: func(_ context.Context, offsets map[Partition]int64) error {
			registered.Add(int32(len(offsets)))
			return nil
		},
	})
	if err != nil {
		t.Fatalf("the fence waited for what comes behind it: %v", err)
	}
	r.drained(t)
	if n := early.Load(); n > 0 {
		t.Errorf("%d requests with records before the fence", n)
	}
	if n := registered.Load(); n != 2 {
		t.Errorf("%d partitions registered, want each once", n)
	}
	r.check(t, "t")
}
