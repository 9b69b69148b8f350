package sink

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestI2RandomFaults answers five hundred requests of each seed with random cuts, partial
// failures and leader changes, stored and not. A wrong class in the table, a
// batch changed after an unknown outcome or one sent before its predecessor is
// settled shows as a loss, a repeat or a wrong order at the end: the fake broker
// keeps the rules of idempotence.
func TestI2RandomFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			const partitions = 8
			c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(partitions, "a", "b"))
			var calm atomic.Bool
			var requests atomic.Int32
			// The fake's goroutine and the network's mutex guard one each.
			broker, wire := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
			for _, topic := range []string{"a", "b"} {
				for p := range int32(partitions) {
					for _, e := range []*kerr.Error{
						kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut, kerr.NotLeaderForPartition,
						kerr.UnknownTopicOrPartition, kerr.KafkaStorageError, kerr.UnknownServerError, kerr.CorruptMessage,
						kerr.TopicAuthorizationFailed, kerr.LeaderNotAvailable, kerr.InvalidRequest,
					} {
						c.Fault(kfake.Fault{
							Keys: produceKey, Topic: topic, Partitions: []int32{p}, Err: e, Count: -1,
							When: func(kmsg.Request) bool { return !calm.Load() && broker.IntN(60) == 0 },
						})
					}
				}
			}
			r := newRig(t, c, func(o *Options) { o.LimitBytes = 1 << 20 })
			r.network.setDecide(func([]byte) cut {
				requests.Add(1)
				if calm.Load() || wire.IntN(6) > 0 {
					return pass
				}
				return cut(1 + wire.IntN(numberCuts-1))
			})
			r.start(t)
			mover := rand.New(rand.NewPCG(seed, 3))
			for i := 0; requests.Load() < 500; i++ {
				topic := []string{"a", "b"}[i%2]
				tail := strings.Repeat("x", mover.IntN(500))
				if err := r.trySend(r.ctx, topic, ByKey, fmt.Sprint("key-", mover.IntN(200)), tail); err != nil {
					t.Fatal(err)
				}
				if i%100 == 0 {
					p := mover.Int32N(partitions)
					if err := c.MoveTopicPartition(topic, p, mover.Int32N(3)); err != nil {
						t.Fatal(err)
					}
					n := r.ackedTotal()
					r.until(t, "progress", func() bool { return r.ackedTotal() > n || r.ackedTotal() == r.sent })
				}
			}
			calm.Store(true)
			r.drained(t)
			r.check(t, "a", "b")
			r.counts.do(func() {
				if r.counts.lost != 0 {
					t.Errorf("%d sequence losses, want none", r.counts.lost)
				}
				if len(r.counts.failed) < 11 {
					t.Errorf("only these faults happened: %v", r.counts.failed)
				}
			})
		})
	}
}

// TestI2RandomRefusals mixes refusals of single records with passing faults in
// one partition. Every record is accepted in the end.
func TestI2RandomRefusals(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
			broker := rand.New(rand.NewPCG(seed, 1))
			var calm atomic.Bool
			for _, e := range []*kerr.Error{
				kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTimestamp,
				kerr.NotEnoughReplicas, kerr.LeaderNotAvailable, kerr.TopicAuthorizationFailed,
			} {
				c.Fault(kfake.Fault{
					Keys: produceKey, Topic: "t", Err: e, Count: -1,
					When: func(kmsg.Request) bool { return !calm.Load() && broker.IntN(20) == 0 },
				})
			}
			r := newRig(t, c, nil).start(t)
			for i := range 1500 {
				r.send(t, "t", ByKey, fmt.Sprint(i))
				if i%5 == 4 {
					r.until(t, "progress", func() bool { return r.ackedTotal() > i-20 })
				}
			}
			calm.Store(true)
			r.drained(t)
			r.check(t, "t")
		})
	}
}
