package sink

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// lane is one partition: a queue, and at most one batch whose fate is not known.
//
// The order of a partition rests on two rules. Nothing of a lane is sent before
// its predecessor is settled: the broker would accept a later batch after an
// earlier one was refused. And a batch that may have been stored goes again as
// the same bytes until the broker has answered for it: only then does it
// recognise the repeat.
type lane struct {
	topic     *topic
	partition int32
	leader    int32 // broker id, -1 when unknown
	queue     queue
	state     laneState
	due       time.Time // when delayed

	producer producer
	seq      int32  // of the next batch
	frozen   int    // records of a batch that may have been stored; 0: none
	limit    int    // at most so many records in the next batch; 0: no limit
	alone    bool   // the record at the head is refused: send it by itself, rarely
	troubled bool   // the partition's replicas are the problem
	orphan   bool   // no such partition
	attempts int    // failed ones in a row
	runs     []Ack  // reused between batches
	marks    []mark // acked batches that Progress has not passed, oldest first
	hold     *Hold
}

type laneState uint8

const (
	idle    laneState = iota // not with a sender; may have nothing to send
	ready                    // in its broker's list
	sending                  // in a request
	delayed                  // waits until due
)

// broker has the lanes that it leads and that have something to send. Lanes
// whose replicas are in trouble keep to themselves: an answer comes when the
// slowest partition of its request is replicated.
type broker struct {
	id              int32
	healthy         []*lane
	troubled        []*lane
	mayTake         *sync.Cond // for senders of healthy lanes
	mayTakeTroubled *sync.Cond
	underWay        int       // requests with healthy lanes
	started         time.Time // when the newest of them began
	cut             bool      // the newest of them left something behind for its size
}

// open says whether another request with healthy lanes may start: one at a
// time, and a second one when the first was cut for its size. Waiting for the
// answer is what lets batches grow.
func (b *broker) open() bool { return b.underWay == 0 || b.cut && b.underWay < 2 }

// offer hands a lane to its broker's senders if it has something to send.
func (k *Kafka) offer(l *lane) {
	if l.state != idle || l.queue.count == 0 || l.orphan {
		return
	}
	if l.topic.reshaping && l.frozen == 0 || !k.mayWrite(l) {
		return
	}
	if l.topic.hold != nil {
		return // one unknown topic would fail the whole request; updateTopic offers it again
	}
	b := k.brokers[l.leader]
	if b == nil {
		if l.attempts++; l.attempts > 1 { // a topic just made has no leaders for a moment
			k.holdLane(l, noLeader, "the partition has no leader")
		}
		k.delay(l, k.timing.backoff(Passing, l.attempts))
		k.askMetadata()
		return
	}
	l.state = ready
	if l.troubled {
		b.troubled = append(b.troubled, l)
		b.mayTakeTroubled.Signal()
		return
	}
	b.healthy = append(b.healthy, l)
	if b.open() {
		b.mayTake.Signal()
	}
}

// delay takes a lane out of service for d.
func (k *Kafka) delay(l *lane, d time.Duration) {
	l.state = delayed
	l.due = time.Now().Add(d)
	k.delayed = append(k.delayed, l)
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// retryLoop offers delayed lanes again when they are due.
func (k *Kafka) retryLoop(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
		case <-timer.C:
		}
		now := time.Now()
		next := now.Add(time.Hour)
		k.mu.Lock()
		keep := k.delayed[:0]
		var again []*lane
		for _, l := range k.delayed {
			switch {
			case l.state != delayed: // taken out meanwhile
			case l.due.After(now):
				keep = append(keep, l)
				if l.due.Before(next) {
					next = l.due
				}
			default:
				l.state = idle
				again = append(again, l)
			}
		}
		clear(k.delayed[len(keep):])
		k.delayed = keep
		for _, l := range again {
			k.offer(l) // may delay it again
		}
		k.mu.Unlock()
		timer.Reset(time.Until(next))
	}
}

// settled takes an acked batch off the lane.
func (k *Kafka) settled(l *lane, b *batch, offset int64) {
	k.noteAcked(l, offset+int64(b.n), b.last)
	l.queue.release(&k.pool, b.end, b.n, b.body)
	l.seq = (l.seq + int32(b.n)) & math.MaxInt32 // wraps to 0 as the broker does
	if l.alone {
		l.topic.maxBatch = 0 // what was refused passes now: the limits have changed
	}
	l.frozen, l.limit, l.attempts = 0, 0, 0
	l.alone, l.troubled = false, false
	k.release(l)
	k.records -= b.n
	if l.queue.count == 0 {
		k.lanes--
	}
	k.acked += uint64(b.n)
	k.lastAck = time.Now()
	l.state = idle
	k.offer(l)
	if l.topic.reshaping {
		k.askMetadata() // this may have been the batch that it waits for
	}
	k.freed()
}

// failed decides what becomes of a batch that was not acked.
func (k *Kafka) failed(l *lane, b *batch, v verdict, detail string, badRecord int) {
	k.observer.BatchFailed(v.class, v.reason, b.n)
	if v.refresh {
		k.askMetadata()
	}
	l.attempts++
	l.troubled = l.troubled || v.trouble
	switch {
	case v.unknown:
		l.frozen = b.n
	case v.lost:
		// The broker's idea of our sequence is not ours, for no reason we know.
		// A new epoch starts at sequence 0 and shuts out what may still be on
		// its way from the old one.
		k.observer.SequenceLost()
		k.log.Error("unexplained sequence error, epoch bumped", zap.String("topic", l.topic.name),
			zap.Int32("partition", l.partition), zap.String("reason", v.reason))
		k.bumpEpoch(l)
		v.class = Passing
	case v.class == Poison && b.n > 1:
		// Somewhere in the batch is a record that is refused, or all of them
		// together are too large.
		if l.frozen > 0 {
			// An earlier attempt may have been stored: its sequence must not be
			// used for other bytes.
			k.bumpEpoch(l)
		}
		switch {
		case v.cut:
			l.topic.shrink(max(b.body/2, 1))
			l.limit = b.n / 2
		case badRecord >= 0 && badRecord < b.n:
			l.limit = max(badRecord, 1)
		default:
			l.limit = b.n / 2
		}
		l.attempts = 0
		l.state = idle
		k.offer(l)
		return
	case v.class == Poison:
		l.alone = true
	}
	k.holdLane(l, v, detail)
	k.delay(l, k.timing.backoff(v.class, l.attempts))
}

// bumpEpoch starts a new epoch for a lane, at sequence 0. Without a
// transactional id the epoch is the producer's own affair, and the broker keeps
// it per partition. With one, only the coordinator gives epochs out; the other
// lanes go on with the old one, which stays valid where the new one has not
// written.
func (k *Kafka) bumpEpoch(l *lane) {
	l.seq, l.frozen = 0, 0
	if k.transactional == "" {
		l.producer.epoch++
		return
	}
	if l.producer.epoch == k.producer.epoch {
		k.bump = true
		select {
		case k.session <- struct{}{}:
		default:
		}
	}
	l.producer.known = false // takes the newest when it is sent again
}

// noLeader holds a lane that no broker leads.
var noLeader = verdict{class: Passing, reason: "LEADER_NOT_AVAILABLE"}

func (k *Kafka) holdLane(l *lane, v verdict, detail string) {
	if l.hold == nil {
		l.hold = &Hold{Topic: l.topic.name, Partition: l.partition, Since: time.Now()}
		k.held[l] = struct{}{}
	}
	h := l.hold
	if h.Reason != v.reason {
		level := zapcore.WarnLevel
		if v.class == Passing {
			// A broker that stops takes thousands of partitions along.
			level = k.seldom(v.reason, level)
		}
		k.log.Log(level, "partition held", zap.String("topic", h.Topic), zap.Int32("partition", h.Partition),
			zap.Stringer("class", v.class), zap.String("reason", v.reason), zap.String("detail", detail))
	}
	h.Class, h.Reason, h.Attempts = v.class, v.reason, l.attempts
	h.Err = failure(h.Topic, h.Partition, v, detail)
	h.Poison = nil
	if v.class == Poison {
		c := l.queue.first()
		m, body := c.next()
		h.Poison = parse(l.topic.name, m, body)
		h.Poison.Value = nil // it may be huge, and is in the queue
	}
}

// seldom is level once in ten seconds for a kind of message, and debug in between.
func (k *Kafka) seldom(kind string, level zapcore.Level) zapcore.Level {
	if now := time.Now(); now.Sub(k.said[kind]) > 10*time.Second {
		k.said[kind] = now
		return level
	}
	return zapcore.DebugLevel
}

// release ends a hold.
func (k *Kafka) release(l *lane) {
	if l.hold == nil {
		return
	}
	k.log.Log(k.seldom("flows", zapcore.InfoLevel), "partition flows again", zap.String("topic", l.hold.Topic), zap.Int32("partition", l.hold.Partition),
		zap.Duration("after", time.Since(l.hold.Since)))
	delete(k.held, l)
	l.hold = nil
}

// timing says when things are tried again. Only tests use another than
// usualTiming.
type timing struct {
	retryMin, retryMax         time.Duration
	permanentMin, permanentMax time.Duration
	poison                     time.Duration
	metadata                   time.Duration // routine refresh
	metadataRetry              time.Duration // while a topic or a leader is missing
	metadataFloor              time.Duration // between forced refreshes
}

func usualTiming() timing {
	return timing{
		retryMin: 50 * time.Millisecond, retryMax: 5 * time.Second,
		permanentMin: 5 * time.Second, permanentMax: 60 * time.Second,
		poison:   30 * time.Second,
		metadata: 5 * time.Second, metadataRetry: time.Second, metadataFloor: 100 * time.Millisecond,
	}
}

// backoff is how long to wait after a number of failed attempts in a row,
// between half and all of an exponentially growing time.
func (t *timing) backoff(c Class, attempts int) time.Duration {
	from, to := t.permanentMin, t.permanentMax
	switch c {
	case Passing:
		from, to = t.retryMin, t.retryMax
	case Poison:
		return t.poison
	}
	d := min(from<<min(max(attempts-1, 0), 10), to)
	return d/2 + rand.N(d/2)
}
