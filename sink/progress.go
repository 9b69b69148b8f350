package sink

import (
	"context"
	"fmt"
	"slices"

	"github.com/walpost/walpost/internal/failpoint"
)

// mark is the offset behind an acked batch, with the Tag.Commit of its last
// record.
type mark struct {
	offset int64
	commit uint64
}

// maxMarks bounds what a lane remembers between two calls of Progress. Beyond
// it, the newest two become one: less exact, never wrong.
const maxMarks = 16

func (k *Kafka) noteAcked(l *lane, offset int64, commit uint64) {
	if k.register == nil {
		return
	}
	if n := len(l.marks); n == maxMarks || n > 0 && l.marks[n-1].commit == commit {
		l.marks[n-1] = mark{offset, commit}
	} else {
		l.marks = append(l.marks, mark{offset, commit})
	}
	k.moved[l] = struct{}{}
}

// Progress returns, for the partitions where it has grown since the last call,
// the offset below which every record belongs to a transaction that is settled:
// one with a Tag.Commit below settled.
func (k *Kafka) Progress(settled uint64) map[Partition]int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	grown := make(map[Partition]int64)
	if k.replayed > 0 && settled >= k.replayed {
		// What was there when we began belongs to transactions before that point.
		for p, end := range k.read {
			grown[p] = end
		}
		k.read = nil
	}
	for l := range k.moved {
		if _, replaying := k.read[Partition{l.topic.name, l.partition}]; replaying {
			// A replayed event can stand behind one of a later transaction that the
			// predecessor had written, if the topic has grown since. Should we die
			// now, our successor must still find both.
			continue
		}
		passed := 0
		for passed < len(l.marks) && l.marks[passed].commit < settled {
			p := Partition{l.topic.name, l.partition}
			grown[p] = max(grown[p], l.marks[passed].offset)
			passed++
		}
		l.marks = append(l.marks[:0], l.marks[passed:]...)
		if len(l.marks) == 0 {
			delete(k.moved, l)
		}
	}
	return grown
}

// mayWrite says whether the successor would know that we wrote this partition.
func (k *Kafka) mayWrite(l *lane) bool {
	return k.register == nil || k.registered[Partition{l.topic.name, l.partition}]
}

// registerLanes makes the partitions durable that are new to us, many at once,
// with their present ends, and lets their lanes go. It reports whether there is
// something left to do.
func (k *Kafka) registerLanes(ctx context.Context) (left bool) {
	select {
	case k.ahead.registering <- struct{}{}:
		defer func() { <-k.ahead.registering }()
	case <-ctx.Done():
		return true
	}
	k.mu.Lock()
	register := k.register
	var fresh []Partition
	if register != nil {
		for _, t := range k.topics {
			for _, l := range t.lanes {
				if p := (Partition{t.name, l.partition}); !k.registered[p] {
					fresh = append(fresh, p)
				}
			}
		}
	}
	k.mu.Unlock()
	if len(fresh) == 0 {
		return false
	}
	// In pieces, because the client library makes an answer many times as large as
	// it came.
	done := 0
	for piece := range slices.Chunk(fresh, maxPartitionsPerRequest) {
		n, ok := k.registerPiece(ctx, register, piece)
		if !ok {
			return true
		}
		done += n
	}
	return done < len(fresh)
}

// registerPiece returns how many partitions were registered, and whether the
// others are worth a try at once.
func (k *Kafka) registerPiece(ctx context.Context, register func(context.Context, map[Partition]int64) error, fresh []Partition) (done int, ok bool) {
	offsets, err := k.endOffsets(ctx, fresh)
	var v verdict
	if err == nil {
		err = failpoint.Fail("sink.before-register")
	}
	if err != nil {
		v = classify(err)
	} else if err = register(ctx, offsets); err != nil {
		v = verdict{class: Passing, reason: "checkpoint"}
	} else if err = failpoint.Fail("sink.after-register"); err != nil {
		v = classify(err)
	}
	if err != nil {
		if ctx.Err() == nil {
			k.unreached(&k.unregistered, v, fmt.Errorf("register partitions: %w", err))
		}
		return 0, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unregistered = nil
	for p := range offsets {
		k.registered[p] = true
		if t := k.topics[p.Topic]; t != nil && int(p.Number) < len(t.lanes) {
			k.offer(t.lanes[p.Number])
		}
	}
	return len(offsets), true
}

// endOffsets are those of the partitions whose leaders tell; an error says why
// none does.
func (k *Kafka) endOffsets(ctx context.Context, partitions []Partition) (map[Partition]int64, error) {
	call, cancel := context.WithTimeout(ctx, k.opt.RequestTimeout)
	defer cancel()
	answers, err := k.listOffsets(call, partitions, latest)
	if err != nil {
		return nil, err
	}
	ends := make(map[Partition]int64, len(answers))
	for p, o := range answers {
		switch {
		case o.err == nil:
			ends[p] = o.at
		case !o.answered():
			err = o.err
		}
	}
	if len(ends) > 0 {
		return ends, nil
	}
	return nil, err
}
