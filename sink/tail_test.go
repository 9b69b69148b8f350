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
	before := newRig(t, c, nil).start(t)
	for range 4 {
		before.send(t, "t", int32(before.sent%2), "")
	}
	before.drained(t)
	if err := before.stop(); err != nil {
		t.Fatal(err)
	}

	var refused atomic.Int32
	c.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if asked := req.(*kmsg.ListOffsetsRequest).Topics[0].Partitions[0].Partition; asked == 1 && refused.Add(1) <= 4 {
			return nil, errors.New("cut"), true
		}
		return nil, nil, false
	})
	after := newRig(t, c, func(o *Options) { o.AwaitRecovery = true }).start(t)
	offsets := map[Partition]int64{{Topic: "t", Number: 0}: 0, {Topic: "t", Number: 1}: 0}
	if err := after.Recover(after.ctx, Recovery{TransactionalID: "walpost-test", Offsets: offsets}); err != nil {
		t.Fatal(err)
	}
	if refused.Load() < 4 {
		t.Fatalf("%d requests were cut: the test tests nothing", refused.Load())
	}
	if tail := after.Status().Protection.Tail; tail != "" {
		t.Errorf("protection is off: %s", tail)
	}
	for range 4 {
		after.send(t, "t", int32(after.sent%2), "") // what the predecessor had sent
	}
	after.until(t, "everything acked", func() bool { return after.ackedTotal() >= 4 })
	after.counts.do(func() {
		if after.counts.acked != 0 {
			t.Errorf("%d records were sent again", after.counts.acked)
		}
	})
}
