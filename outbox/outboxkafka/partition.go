package outboxkafka

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Partition says how far a lane is.
type Partition struct {
	Topic     string
	Partition int
	Next      int64     // the first offset that has not been dealt with
	End       int64     // of the partition, as of the last fetch
	Err       error     // why it stands still or cannot be read; nil when it goes on
	Since     time.Time // of the error
}

// Partitions tells how far this member is with each partition that it has, for
// health checks and metrics. A member without partitions is healthy, too.
func (r *Runner) Partitions() []Partition {
	r.mu.Lock()
	lanes := r.lanes
	r.mu.Unlock()
	list := make([]Partition, 0, len(lanes))
	for _, l := range lanes {
		l.mu.Lock()
		p := l.state
		if p.Err == nil {
			p.Err, p.Since = l.fetchErr, l.fetchSince
		}
		l.mu.Unlock()
		p.Topic, p.Partition, p.End = l.topic, l.partition, max(p.End, p.Next)
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Partition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return list
}

// read notes the end that a fetch told.
func (l *lane) read(end int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.End = end
	l.fetchErr, l.fetchSince = nil, time.Time{}
}

// unread tells of an error of a fetch when it is a new one.
func (l *lane) unread(ctx context.Context, err error) {
	l.mu.Lock()
	again := l.fetchErr != nil && l.fetchErr.Error() == err.Error()
	if l.fetchErr == nil {
		l.fetchSince = time.Now()
	}
	l.fetchErr = err
	l.mu.Unlock()
	if !again {
		l.log.WarnContext(ctx, "partition not read", "err", err)
	}
}
