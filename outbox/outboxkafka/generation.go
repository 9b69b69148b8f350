package outboxkafka

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// errRevoked is the cause when an event in hand is given up.
var errRevoked = errors.New("the partition was taken away, or the runner stops, and the event took longer than the drain time")

// generation is what a Runner needs of a kafka.Generation.
type generation interface {
	CommitOffsets(map[string]map[int]int64) error
}

// work is a generation: it returns when the assigned partitions are taken away
// and their lanes have come to an end. kafka-go joins again only then.
func (r *Runner) work(run, assigned context.Context, gen *kafka.Generation) {
	lanesDo, stop := context.WithCancel(assigned)
	defer stop()
	// Handlers keep the values of the caller's context, but not its end.
	handlersDo, giveUp := context.WithCancelCause(context.WithoutCancel(run))
	defer giveUp(nil)

	marks := newMarks()
	lanes := r.assign(gen.Assignments, marks)
	r.log.InfoContext(run, "partitions assigned", "partitions", names(lanes), "generation", gen.ID)
	var running sync.WaitGroup
	for _, l := range lanes {
		running.Go(func() { l.run(lanesDo, handlersDo) })
	}
	r.attend(lanesDo, gen, marks)

	stop()
	giveUpLater := time.AfterFunc(r.opt.Drain, func() { giveUp(errRevoked) })
	running.Wait()
	giveUpLater.Stop()
	r.commit(run, gen, marks)
	r.mu.Lock()
	r.lanes = nil
	r.mu.Unlock()
	r.log.InfoContext(run, "partitions given back", "partitions", names(lanes), "generation", gen.ID)
	r.relook(run)
}

func (r *Runner) assign(assignments map[string][]kafka.PartitionAssignment, marks *marks) []*lane {
	var lanes []*lane
	for topic, partitions := range assignments {
		for _, p := range partitions {
			lanes = append(lanes, &lane{
				runner: r, log: r.log.With("topic", topic, "partition", p.ID), topic: topic, partition: p.ID, start: p.Offset, marks: marks,
			})
		}
	}
	for _, l := range lanes {
		l.fetchBytes = r.opt.fetchBytes(len(lanes))
	}
	r.mu.Lock()
	r.lanes = lanes
	r.mu.Unlock()
	return lanes
}

// attend commits, and watches for new partitions, until ctx ends or there are
// some.
func (r *Runner) attend(ctx context.Context, gen generation, marks *marks) {
	commit, watch := time.NewTicker(r.opt.CommitEvery), time.NewTicker(r.opt.WatchEvery)
	defer commit.Stop()
	defer watch.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-commit.C:
			r.commit(ctx, gen, marks)
		case <-watch.C:
			counts, err := r.count(ctx)
			if err == nil && !maps.Equal(counts, r.known) {
				r.log.InfoContext(ctx, "partitions of the topics changed", "before", r.known, "now", counts)
				r.known = counts
				return
			}
		}
	}
}

// relook counts again between two generations, so that a change which led to the
// next one does not lead to another one.
func (r *Runner) relook(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if counts, err := r.count(ctx); err == nil {
		r.known = counts
	}
}

// commit commits what has been marked since the last time. What could not be
// committed is, the next time; or its events come again, and are known again.
func (r *Runner) commit(ctx context.Context, gen generation, marks *marks) {
	offsets := marks.take()
	if len(offsets) == 0 {
		return
	}
	if err := gen.CommitOffsets(offsets); err != nil {
		marks.giveBack(offsets)
		r.log.WarnContext(ctx, "offsets not committed", "err", err)
	}
}

func names(lanes []*lane) []string {
	list := make([]string, 0, len(lanes))
	for _, l := range lanes {
		list = append(list, l.String())
	}
	return list
}
