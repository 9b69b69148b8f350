package sink

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// TestI7LimitBytes: with the broker away Submit stops at the limit, and all of
// the memory comes back.
func TestI7LimitBytes(t *testing.T) {
	t.Parallel()
	const limit = 256 << 10
	for _, known := range []bool{false, true} {
		t.Run(fmt.Sprint("topic known ", known), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(8, "t"))
			r := newRig(t, c, func(o *Options) { o.LimitBytes = limit; o.RequestTimeout = 300_000_000 })
			r.network.setDown(!known)
			r.start(t)
			if known {
				r.send(t, "t", ByKey, "k")
				r.drained(t)
				r.network.setDown(true)
				r.network.setDecide(func([]byte) cut { return cutBefore })
			}
			tail := strings.Repeat("x", 700)
			var sending sync.WaitGroup
			sending.Go(func() {
				for i := range 5000 {
					if err := r.trySend(r.ctx, "t", ByKey, fmt.Sprint(i%50), tail); err != nil {
						t.Error(err)
						return
					}
				}
			})
			full := func() bool {
				r.Kafka.mu.Lock()
				defer r.Kafka.mu.Unlock()
				return r.full
			}
			r.until(t, "Submit waits", full)
			if used := r.Status().InFlightBytes; used > limit+blockSize+blockOverhead || used < limit/2 {
				t.Errorf("%d bytes in flight, limit %d", used, limit)
			}
			r.network.setDown(false)
			r.network.setDecide(nil)
			over := int64(0)
			finished := make(chan struct{})
			go func() { sending.Wait(); close(finished) }()
			r.until(t, "all submitted", func() bool {
				over = max(over, r.Status().InFlightBytes)
				select {
				case <-finished:
					return true
				default:
					return false
				}
			})
			r.drained(t)
			r.check(t, "t")
			// Spreading over the partitions may cost a block for each.
			if bound := int64(limit + 9*(blockSize+blockOverhead)); over > bound {
				t.Errorf("%d bytes at most in flight, want at most %d", over, bound)
			}
			r.Kafka.mu.Lock()
			defer r.Kafka.mu.Unlock()
			if kept := freeBytes(&r.pool); kept > limit+9*(blockSize+blockOverhead) {
				t.Errorf("%d bytes of free blocks kept, limit %d", kept, limit)
			}
		})
	}
}

func TestManyPartitions(t *testing.T) {
	t.Parallel()
	const lanes = 5000
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(lanes, "t"))
	r := newRig(t, c, nil).start(t)
	for round := range 2 {
		for p := range int32(lanes) {
			r.send(t, "t", p, fmt.Sprint(round))
		}
	}
	r.drained(t)
	var requests int
	r.counts.do(func() { requests = r.counts.requests })
	if requests > 2*lanes/10 {
		t.Errorf("%d requests for %d records, want many lanes in one", requests, 2*lanes)
	}
}

func TestLargeRecord(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1))
	limit := "20000000"
	if err := c.CreateTopic("t", 2, map[string]string{"max.message.bytes": limit}); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, c, func(o *Options) { o.LimitBytes = 1 << 20 }).start(t)
	for i := range 6 {
		tail := ""
		if i%3 == 1 {
			tail = strings.Repeat("x", 10_000_000)
		}
		if err := r.trySend(r.ctx, "t", 0, "k", tail); err != nil {
			t.Fatal(err)
		}
	}
	r.drained(t)
	r.check(t, "t")
}
