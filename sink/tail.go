package sink

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/walpost/walpost/internal/failpoint"
	"github.com/walpost/walpost/internal/retry"
)

// eventID stands for an event in a topic: the id and the topic, hashed to 16
// bytes. Two events are as likely to collide as two random UUIDs. The partition
// is left out: a topic that was given partitions since has moved the key, and the
// event is there all the same.
type eventID [16]byte

func hashID(topic string, id []byte) eventID {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00", topic)
	h.Write(id)
	var e eventID
	copy(e[:], h.Sum(nil))
	return e
}

// idHeader is the header that carries the event id.
const idHeader = "id"

// tail is what lies in the partitions behind the checkpoint's offsets: events
// that are in Kafka, and come again from PostgreSQL.
type tail struct {
	k     *Kafka
	limit int
	ends  map[Partition]int64 // up to which the partitions were read

	mu     sync.Mutex
	ids    map[eventID]struct{}
	broken map[Partition]string // partitions that could not be read, and why
	full   bool
}

const tailParallel = 4

// read reads all partitions, some at a time. A partition that cannot be read is
// left out: its events may come twice.
func (t *tail) read(ctx context.Context, offsets map[Partition]int64) error {
	if len(offsets) == 0 {
		return nil
	}
	t.broken = make(map[Partition]string)
	ends, err := t.bounds(ctx, offsets)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(tailParallel)
	t.ends = make(map[Partition]int64, len(ends))
	for p, from := range offsets {
		end, ok := ends[p]
		if !ok {
			continue
		}
		t.ends[p] = end.Last
		if end.Last < from {
			// Made anew, or cut off by an unclean election: what is there now is not
			// what the offset counts.
			t.k.log.Warn("partition ends before the checkpoint's offset, so it is read from its start",
				zap.String("topic", p.Topic), zap.Int32("partition", p.Number), zap.Int64("offset", from), zap.Int64("start", end.First), zap.Int64("end", end.Last))
			from = end.First
		}
		if end.Last == from {
			continue
		}
		group.Go(func() error { return t.partition(ctx, p, from, end) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for p, why := range t.broken {
		t.k.log.Warn("end of a partition not read: its newest events may come twice",
			zap.String("topic", p.Topic), zap.Int32("partition", p.Number), zap.String("reason", why))
	}
	return nil
}

func (t *tail) off() string {
	if t.full {
		return fmt.Sprintf("more than %d events behind the checkpoint", t.limit)
	}
	for p, why := range t.broken {
		return fmt.Sprintf("%d partitions, such as %s/%d: %s", len(t.broken), p.Topic, p.Number, why)
	}
	return ""
}

func (t *tail) skip(p Partition, why string) {
	t.mu.Lock()
	t.broken[p] = why
	t.mu.Unlock()
}

type bounds struct {
	First, Last int64
	leader      int32 // who said so
}

// doubt is what is left when a broker says that it does not know a partition, or
// has less of it than there was: it is not believed at once. A topic that was made
// a moment ago is not known to all brokers, nor is any to one that has just
// started; and a new leader waits for its followers.
type doubt struct{ since time.Time }

// How long it is doubted that a partition is unknown; that it is shorter, for as
// long as a follower may stay behind by default (replica.lag.time.max.ms), twice.
const (
	unknownDoubted = 5 * time.Second
	shorterDoubted = time.Minute
)

// doubted says whether to ask again; always, for other errors.
func (d *doubt) doubted(err error) bool {
	limit := unknownDoubted
	switch {
	case errors.Is(err, kafka.UnknownTopicOrPartition):
	case errors.Is(err, kafka.OffsetNotAvailable):
		limit = shorterDoubted
	default:
		return true
	}
	if d.since.IsZero() {
		d.since = time.Now()
	}
	return time.Since(d.since) < limit
}

// bounds asks for the present ends of the partitions.
func (t *tail) bounds(ctx context.Context, offsets map[Partition]int64) (map[Partition]bounds, error) {
	partitions := slices.Collect(maps.Keys(offsets))
	found := make(map[Partition]bounds)
	var missing doubt
	err := t.again(ctx, func(call context.Context) error {
		clear(found)
		clear(t.broken)
		first, last, err := t.k.listBounds(call, partitions)
		if err != nil {
			return err
		}
		for p, o := range last {
			switch {
			case o.err == nil:
				found[p] = bounds{first[p].at, o.at, o.leader}
			case !o.answered():
				// The others' answers are no reason to go on without it.
				return fmt.Errorf("offsets of %s/%d: its leader does not answer: %w", p.Topic, p.Number, o.err)
			case classify(o.err).class == Passing && missing.doubted(o.err):
				return o.err
			default:
				t.skip(p, o.err.Error())
			}
		}
		return nil
	})
	return found, err
}

// again repeats a call while its failure passes.
func (t *tail) again(ctx context.Context, call func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		timed, cancel := context.WithTimeout(ctx, t.k.opt.RequestTimeout)
		err := call(timed)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		v := classify(err)
		t.k.unreached(&t.k.outage, v, err)
		t.k.askMetadata()
		if retry.Wait(ctx, t.k.timing.backoff(v.class, attempt)) != nil {
			return context.Cause(ctx)
		}
	}
}

// partition reads from an offset to the end that was seen at the start; nobody
// but a fenced predecessor and strangers could have written since.
func (t *tail) partition(ctx context.Context, p Partition, from int64, b bounds) error {
	if from < b.First {
		// Retention or an operator removed records behind the checkpoint: what
		// was among them cannot be known.
		t.skip(p, fmt.Sprintf("records from offset %d on were removed; the partition begins at %d", from, b.First))
		from = b.First
	}
	var missing doubt
	at := &place{p, b.leader}
	for attempt := 1; from < b.Last; {
		timed, cancel := context.WithTimeout(ctx, t.k.opt.RequestTimeout)
		next, err := t.fetch(timed, at, from)
		cancel()
		switch {
		case err == nil:
			from, attempt, missing = next, 1, doubt{}
			if t.isFull() {
				return nil
			}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case classify(err).class != Passing, !missing.doubted(err):
			t.skip(p, err.Error())
			return nil
		default:
			t.k.unreached(&t.k.outage, classify(err), fmt.Errorf("read the end of %s/%d: %w", p.Topic, p.Number, err))
			t.k.askMetadata()
			if retry.Wait(ctx, t.k.timing.backoff(Passing, attempt)) != nil {
				return context.Cause(ctx)
			}
			attempt++
		}
	}
	return nil
}

func (t *tail) isFull() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.full
}

// fetch reads one answer's records and returns the offset behind them.
func (t *tail) fetch(ctx context.Context, p *place, from int64) (next int64, err error) {
	return t.k.fetch(ctx, p, from, func(r *kafka.Record) error {
		if err := failpoint.Fail("sink.in-tail"); err != nil {
			return err
		}
		for _, h := range r.Headers {
			if h.Key == idHeader {
				t.add(hashID(p.Topic, h.Value))
				break
			}
		}
		return nil
	})
}

func (t *tail) add(id eventID) {
	t.mu.Lock()
	if len(t.ids) < t.limit {
		t.ids[id] = struct{}{}
	} else {
		t.full = true
	}
	t.mu.Unlock()
}

// alreadyThere says whether a record is in its topic since before we
// started. Each is taken for that once: a row that comes a second time with the
// same id is another event.
func (k *Kafka) alreadyThere(l *lane, r *Record) bool {
	for i := range r.Headers {
		if r.Headers[i].Name == idHeader {
			id := hashID(l.topic.name, r.Headers[i].Value)
			if _, ok := k.known[id]; !ok {
				return false
			}
			delete(k.known, id)
			return true
		}
	}
	return false
}

// ReplayOver says that from here on nothing comes that a predecessor can have
// delivered: only transactions with a Tag.Commit from commit on.
func (k *Kafka) ReplayOver(commit uint64) {
	k.mu.Lock()
	k.replayed = commit
	k.forgetKnown()
	k.mu.Unlock()
}

// forgetKnown drops what was found in the tails when nothing can ask for it any
// more. Records that wait for their topic's partitions still can.
func (k *Kafka) forgetKnown() {
	if k.replayed == 0 || k.known == nil {
		return
	}
	for _, t := range k.topics {
		if t.waiting.count > 0 {
			return
		}
	}
	k.known = nil
}

// settleKnown acks what was found to be there when a topic's partitions became
// known.
func (k *Kafka) settleKnown() {
	k.mu.Lock()
	found := k.found
	k.found = nil
	k.forgetKnown()
	k.freed()
	k.mu.Unlock()
	if len(found) > 0 {
		k.observer.AlreadyThere(len(found))
		k.opt.Acked(found)
	}
}
