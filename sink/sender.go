package sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/produce"
	"github.com/segmentio/kafka-go/protocol/rawproduce"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/walpost/walpost/internal/failpoint"
)

// Whose the memory is: a request refers to the encoder's buffer, through readers
// that the library consumes. All of it belongs to the library from RoundTrip until
// that returns without an error; then the next request overwrites it. After an
// error a connection may still be reading what was given up, so the library keeps
// it and the sender takes new memory. The runs of a batch belong to its lane, and
// Acked may look at acks until it returns.

// maxRecordBytes is below every broker's socket.request.max.bytes (100 MiB by
// default): a larger request is not answered, the connection is closed.
const maxRecordBytes = 95 << 20

// addBroker starts the senders of a broker that is new to us: two for healthy
// lanes, of which the second works only while requests are cut for their size,
// and one for troubled lanes.
func (k *Kafka) addBroker(ctx context.Context, id int32) *broker {
	b := &broker{id: id, mayTake: sync.NewCond(&k.mu), mayTakeTroubled: sync.NewCond(&k.mu)}
	k.brokers[id] = b
	for _, troubled := range []bool{false, false, true} {
		k.group.Go(func() error { return k.send(ctx, b, troubled) })
	}
	return b
}

// send is the loop of one sender: take lanes, encode, one request, settle.
func (k *Kafka) send(ctx context.Context, b *broker, troubled bool) error {
	enc, err := newEncoder(k.opt.Compression)
	if err != nil {
		return err
	}
	s := sender{kafka: k, broker: leader(b.id), enc: enc, answers: make(map[*lane]*produce.ResponsePartition), index: make(map[string]int)}
	for {
		if !s.take(b, troubled) {
			return nil
		}
		if err := s.produce(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		if !troubled {
			k.mu.Lock()
			b.underWay--
			k.mu.Unlock()
		}
	}
}

type sender struct {
	kafka   *Kafka
	broker  leader
	enc     *encoder
	lanes   []*lane
	counts  []int // records that each had when it was taken
	size    int   // of the request, about
	batches []batch
	acks    []Ack
	answers map[*lane]*produce.ResponsePartition

	// The request and what it refers to: enc.buf through readers. After a request
	// that was given up they are left to the library, see produce.
	req     *produceRequest
	readers []bytes.Reader
	index   map[string]int // of topics in the request
}

// take waits for lanes and takes as many as fit a request. It reports false
// when the sink is closed.
func (s *sender) take(b *broker, troubled bool) bool {
	k := s.kafka
	k.mu.Lock()
	defer k.mu.Unlock()
	list, cond := &b.healthy, b.mayTake
	if troubled {
		list, cond = &b.troubled, b.mayTakeTroubled
	}
	s.lanes, s.counts = s.lanes[:0], s.counts[:0]
	for {
		for !k.closed && (len(*list) == 0 || !k.producer.known || k.bump || !troubled && !b.open()) {
			cond.Wait()
		}
		if k.closed {
			return false
		}
		if !troubled {
			now := time.Now()
			if rest := b.rest(now, k.opt.MaxRequestBytes/4); rest > 0 {
				k.mu.Unlock()
				time.Sleep(rest)
				k.mu.Lock()
				continue
			}
			b.started = now
		}
		s.size = 0
		taken := 0
		for _, l := range *list {
			estimate := l.estimate(k.opt.MaxBatchBytes)
			if s.size > 0 && s.size+estimate > k.opt.MaxRequestBytes {
				break
			}
			taken++
			if s.accept(b, l, troubled) {
				s.size += estimate
			}
		}
		rest := copy(*list, (*list)[taken:])
		clear((*list)[rest:])
		*list = (*list)[:rest]
		if len(s.lanes) == 0 {
			continue
		}
		if !troubled {
			b.underWay++
			b.cut = rest > 0 || s.size >= k.opt.MaxBatchBytes
			if rest > 0 && b.open() {
				cond.Signal()
			}
		}
		return true
	}
}

// accept takes a lane into the request, unless its place is elsewhere by now.
func (s *sender) accept(b *broker, l *lane, troubled bool) bool {
	k := s.kafka
	if l.state != ready {
		return false // a reshape emptied it, or it is in the list twice
	}
	l.state = idle
	if l.leader != b.id || l.troubled != troubled || l.topic.hold != nil || l.topic.reshaping && l.frozen == 0 {
		k.offer(l)
		return false
	}
	c := l.queue.first()
	if m, body := c.next(); m.size > maxRecordBytes {
		one := batch{n: 1, body: len(body)}
		k.failed(l, &one, codes[10], fmt.Sprintf("%d bytes are more than any broker takes", m.size), -1)
		return false
	}
	l.state = sending
	if !l.producer.known {
		l.producer = k.producer
	}
	s.lanes = append(s.lanes, l)
	s.counts = append(s.counts, l.queue.count)
	return true
}

// estimate of the bytes that a lane adds to a request.
func (l *lane) estimate(maxBatch int) int {
	n := min(l.queue.bytes+24*l.queue.count, maxBatch)
	if l.queue.count > 0 {
		c := l.queue.first()
		m, _ := c.next()
		n = max(n, int(m.size)) // a record that is larger than a batch goes all the same
	}
	return n + batchHeader
}

// produce sends one request with a batch of each lane and settles them. Only a
// fatal error is returned.
func (s *sender) produce(ctx context.Context) error {
	k := s.kafka
	if err := s.encode(); err != nil {
		return err
	}
	for _, l := range s.lanes {
		if l.attempts > 0 && l.hold != nil {
			k.observer.BatchRetried(l.hold.Reason)
		}
	}
	s.fill()
	call, cancel := context.WithTimeout(ctx, k.opt.RequestTimeout)
	start := time.Now()
	var resp kafka.Response
	err := failpoint.Fail("sink.before-send")
	if err == nil {
		resp, err = k.transport.RoundTrip(call, k.client.Addr, s.req)
	}
	if err == nil {
		err = failpoint.Fail("sink.after-send")
	}
	cancel()
	if err != nil {
		// A connection of the library may still be reading the request that it
		// has given up: it keeps these bytes, we take new ones.
		s.enc.buf, s.req, s.readers = nil, nil, nil
		if ctx.Err() != nil {
			return nil // stopping: the outcome is not wanted any more
		}
	}
	took := time.Since(start)
	if err == nil {
		if _, ok := resp.(*produce.Response); !ok {
			return fmt.Errorf("produce: unexpected answer %T", resp)
		}
		k.observer.ProduceDone(took)
		failpoint.Hit("sink.before-settle")
	}
	s.acks = s.acks[:0]
	var fatal error
	k.mu.Lock()
	if err != nil {
		v := classify(err)
		for i, l := range s.lanes {
			k.failed(l, &s.batches[i], v, err.Error(), -1)
		}
		if v.class == Fenced {
			fatal = failure("", -1, v, err.Error())
		}
	} else {
		k.reached()
		fatal = s.settle(resp.(*produce.Response))
	}
	k.mu.Unlock()
	if len(s.acks) > 0 {
		failpoint.Hit("sink.after-settle")
		k.opt.Acked(s.acks)
	}
	return fatal
}

// encode builds the batches. It reads only records that were queued before the
// lane was taken, and those do not change.
func (s *sender) encode() error {
	k := s.kafka
	s.enc.reset(s.size)
	s.batches = s.batches[:0]
	for i, l := range s.lanes {
		k.mu.Lock()
		first, count, limit := l.queue.first(), s.counts[i], k.opt.MaxBatchBytes
		if m := l.topic.maxBatch; m > 0 {
			limit = min(limit, m)
		}
		k.mu.Unlock()
		switch {
		case l.frozen > 0:
			count, limit = l.frozen, math.MaxInt
		case l.alone:
			count = 1
		case l.limit > 0:
			count = min(count, l.limit)
		}
		b, err := s.enc.encode(first, count, limit, l.topic.name, l.producer, l.seq, l.runs)
		if err != nil {
			return err
		}
		l.runs = b.runs
		s.batches = append(s.batches, b)
	}
	return nil
}

// fill builds the request; the record sets' readers are consumed by sending it.
func (s *sender) fill() {
	if s.req == nil {
		s.req = &produceRequest{}
	}
	s.req.leader = s.broker
	s.req.Acks = -1 // all in-sync replicas
	s.req.Timeout = int32(s.kafka.opt.RequestTimeout * 4 / 5 / time.Millisecond)
	if cap(s.readers) < len(s.lanes) {
		s.readers = make([]bytes.Reader, len(s.lanes))
	}
	s.readers = s.readers[:len(s.lanes)]
	clear(s.index)
	topics := s.req.Topics[:0]
	for i, l := range s.lanes {
		b := &s.batches[i]
		at, ok := s.index[l.topic.name]
		if !ok {
			at = len(topics)
			s.index[l.topic.name] = at
			if at < cap(topics) { // the room for its partitions is used again
				topics = topics[:at+1]
				topics[at].Topic, topics[at].Partitions = l.topic.name, topics[at].Partitions[:0]
			} else {
				topics = append(topics, rawproduce.RequestTopic{Topic: l.topic.name})
			}
		}
		s.readers[i].Reset(s.enc.buf[b.from:b.to])
		topics[at].Partitions = append(topics[at].Partitions, rawproduce.RequestPartition{
			Partition: l.partition,
			RecordSet: protocol.RawRecordSet{Reader: &s.readers[i]},
		})
	}
	s.req.Topics = topics
}

var errNoAnswer = errors.New("the broker's answer does not mention the partition")

// settle reads the broker's answer, partition by partition, in any order.
func (s *sender) settle(resp *produce.Response) (fatal error) {
	k := s.kafka
	clear(s.answers)
	for i := range resp.Topics {
		t := k.topics[resp.Topics[i].Topic]
		for j := range resp.Topics[i].Partitions {
			p := &resp.Topics[i].Partitions[j]
			if t != nil && p.Partition >= 0 && int(p.Partition) < len(t.lanes) {
				s.answers[t.lanes[p.Partition]] = p
			}
		}
	}
	for i, l := range s.lanes {
		b := &s.batches[i]
		p := s.answers[l]
		switch {
		case p == nil:
			k.failed(l, b, verdict{class: Passing, reason: "no_answer", unknown: true, refresh: true}, errNoAnswer.Error(), -1)
		case p.ErrorCode == 0:
			if p.LogAppendTime > 0 && l.attempts > 0 {
				// Only a repeat is answered with the time of the batch that is
				// there already, on a topic with CreateTime.
				k.observer.BrokerDuplicate()
			}
			k.observer.BatchAcked(l.topic.name, b.n, b.body)
			s.acks = append(s.acks, b.runs...)
			k.settled(l, b, p.BaseOffset)
		default:
			code := kafka.Error(p.ErrorCode)
			v := classify(code)
			detail := p.ErrorMessage
			bad := -1
			for _, r := range p.RecordErrors {
				if bad < 0 || int(r.BatchIndex) < bad {
					bad = int(r.BatchIndex)
					if r.BatchIndexErrorMessage != "" {
						detail = r.BatchIndexErrorMessage
					}
				}
			}
			if detail == "" {
				detail = code.Description()
			}
			k.failed(l, b, v, detail, bad)
			if v.class == Fenced {
				k.log.Log(k.seldom("fenced", zapcore.ErrorLevel), "fenced by another producer", zap.String("topic", l.topic.name), zap.Int32("partition", l.partition))
				fatal = failure(l.topic.name, l.partition, v, detail)
			}
		}
	}
	return fatal
}
