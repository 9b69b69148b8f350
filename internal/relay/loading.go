package relay

import (
	"context"

	"github.com/walpost/walpost/checkpoint"
	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

// loading is a checkpoint that is being read, while the stream is opened. That
// needs it before it asks the server where its WAL ends: a checkpoint that is read
// later can be beyond that, and would look like one of another history.
type loading struct {
	stop context.CancelFunc
	done chan struct{}
	c    *checkpoint.Checkpoint
	err  error
}

// loading begins to read. Whoever calls it calls end.
func (r *recovery) loading(ctx context.Context) *loading {
	ctx, stop := context.WithCancel(ctx)
	l := &loading{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		if l.c, l.err = r.load(ctx); l.c != nil && r.sink != nil {
			r.sink.Expect(topicsOf(l.c))
		}
	}()
	return l
}

// topicsOf are the topics that the predecessor has written. Ours will be the same.
func topicsOf(c *checkpoint.Checkpoint) []string {
	seen := make(map[string]bool)
	var names []string
	for p := range c.Offsets {
		if !seen[p.Topic] && len(names) < sink.MaxExpected {
			seen[p.Topic] = true
			names = append(names, p.Topic)
		}
	}
	return names
}

// end gives up what is not read yet.
func (l *loading) end() {
	l.stop()
	<-l.done
}

func (l *loading) checkpoint() (*checkpoint.Checkpoint, error) {
	<-l.done
	return l.c, l.err
}

func (l *loading) history() (slot.History, error) {
	c, err := l.checkpoint()
	if err != nil || c == nil {
		return slot.History{}, err
	}
	return slot.History{SystemID: c.SystemID, Timeline: c.Timeline, LSN: c.LSN}, nil
}
