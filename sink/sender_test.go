package sink

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// TestGivenUpRequestKeepsItsMemory: whatever ends the wait for an answer, a
// connection of the library may still be reading the request.
func TestGivenUpRequestKeepsItsMemory(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	arrived := neverAnswered(c)
	for _, stopping := range []bool{true, false} {
		t.Run(fmt.Sprintf("stopping=%t", stopping), func(t *testing.T) {
			r := newRig(t, c, nil)
			t.Cleanup(r.transport.CloseIdleConnections)
			enc, err := newEncoder("none")
			if err != nil {
				t.Fatal(err)
			}
			s := sender{kafka: r.Kafka, enc: enc, size: 1}
			ctx, cancel := context.WithCancel(r.ctx)
			defer cancel()
			if stopping {
				go func() {
					<-arrived
					cancel()
				}()
			} else {
				s.kafka.opt.RequestTimeout = 100 * time.Millisecond
			}
			if err := s.produce(ctx); err != nil {
				t.Fatal(err)
			}
			if s.enc.buf != nil || s.req != nil || s.readers != nil {
				t.Errorf("the next request would be written over this one: %d bytes of buffer, request %v", cap(s.enc.buf), s.req)
			}
		})
	}
}
