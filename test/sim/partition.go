package sim

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Kafka's error codes that the cluster answers on its own account.
const (
	codeOutOfRange     = 1
	codeUnknownTopic   = 3
	codeNotLeader      = 6
	codeTimedOut       = 7
	codeTooLarge       = 10
	codeLoading        = 14
	codeNotEnough      = 19
	codeTopicDenied    = 29
	codeExists         = 36
	codeSequence       = 45
	codeEpoch          = 47
	codeTxnState       = 48
	codeConcurrent     = 51
	codeTxnDenied      = 53
	codeNotAttempted   = 55
	codeInvalidRecord  = 87
	codeProducerFenced = 90
)

// batch is what was appended by one request, or a transaction's marker.
type batch struct {
	base    int64
	n       int32
	pid     int64
	epoch   int16
	seq     int32
	control bool
	raw     []byte
	copies  []*copyOf // of events, in order
	at      int64     // milliseconds
}

// copyOf is an event as it lies in a partition.
type copyOf struct {
	id, key, value string
	topic          string
	partition      int32
	offset         int64
	order          int // of appending, over the whole cluster
	by             string
}

// writer is what a partition knows of a producer.
type writer struct {
	epoch  int16
	recent []*batch // the last five of that epoch
}

// partition is a replicated log. What is above hw is on its leader alone: no
// consumer sees it, and a leader that moves may lose it.
type partition struct {
	topic   string
	number  int32
	leader  int32
	log     []*batch
	end, hw int64
	writers map[int64]*writer
	stalled int // faults that keep followers from fetching
	short   int // faults that keep the in-sync replicas below the minimum
	changed chan struct{}
}

func newPartition(topic string, number, leader int32) *partition {
	return &partition{topic: topic, number: number, leader: leader, writers: map[int64]*writer{}, changed: make(chan struct{})}
}

func (p *partition) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// admit applies the rules of idempotence that were measured at a real broker: a
// repeat of one of the last five batches is recognised, a gap is refused, and a
// producer without state may begin anywhere.
func (p *partition) admit(b *batch) (repeat *batch, code int16) {
	w := p.writers[b.pid]
	switch {
	case b.pid < 0 || w == nil:
		return nil, 0
	case b.epoch < w.epoch:
		return nil, codeEpoch
	case b.epoch > w.epoch || len(w.recent) == 0:
		if b.seq != 0 {
			return nil, codeSequence
		}
		return nil, 0
	}
	for _, old := range w.recent {
		if old.seq == b.seq && old.n == b.n {
			return old, 0
		}
	}
	if last := w.recent[len(w.recent)-1]; b.seq != (last.seq+last.n)&math.MaxInt32 {
		return nil, codeSequence
	}
	return nil, 0
}

func (p *partition) append(b *batch) {
	b.base = p.end
	p.end += int64(b.n)
	p.log = append(p.log, b)
	p.note(b)
	p.replicate()
}

func (p *partition) note(b *batch) {
	if b.pid < 0 {
		return
	}
	w := p.writers[b.pid]
	if w == nil || b.epoch > w.epoch {
		w = &writer{epoch: b.epoch}
		p.writers[b.pid] = w
	}
	if b.control {
		return
	}
	if w.recent = append(w.recent, b); len(w.recent) > 5 {
		w.recent = w.recent[1:]
	}
}

// replicate moves the high watermark to the end, unless followers are stalled.
func (p *partition) replicate() {
	if p.stalled == 0 && p.hw < p.end {
		p.hw = p.end
	}
	p.notify()
}

// truncate drops what was never replicated, as a new leader without it does.
func (p *partition) truncate() {
	for len(p.log) > 0 && p.log[len(p.log)-1].base >= p.hw {
		p.log = p.log[:len(p.log)-1]
	}
	p.end = p.hw
	p.writers = map[int64]*writer{}
	for _, b := range p.log {
		p.note(b)
	}
	p.notify()
}

// from returns the batches at or above offset, below the high watermark.
func (p *partition) from(offset int64) []byte {
	var out []byte
	for _, b := range p.log {
		if b.base+int64(b.n) > offset && b.base < p.hw && len(out) < 1<<20 {
			out = append(out, b.raw...)
		}
	}
	return out
}

var errMalformed = errors.New("malformed batch")

// parseBatch reads what a produce request carries for a partition.
func parseBatch(topic string, partition int32, raw []byte) (*batch, error) {
	var rb kmsg.RecordBatch
	if err := rb.ReadFrom(raw); err != nil {
		return nil, err
	}
	b := &batch{n: rb.NumRecords, pid: rb.ProducerID, epoch: rb.ProducerEpoch, seq: rb.FirstSequence, raw: append([]byte(nil), raw...)}
	rest := rb.Records
	for range rb.NumRecords {
		length, w := binary.Varint(rest)
		if w <= 0 || length < 0 || w+int(length) > len(rest) {
			return nil, errMalformed
		}
		var r kmsg.Record
		if err := r.ReadFrom(rest[:w+int(length)]); err != nil {
			return nil, err
		}
		rest = rest[w+int(length):]
		c := &copyOf{key: string(r.Key), value: string(r.Value), topic: topic, partition: partition}
		for _, h := range r.Headers {
			if h.Key == "id" {
				c.id = string(h.Value)
			}
		}
		b.copies = append(b.copies, c)
	}
	if len(rest) != 0 || rb.NumRecords < 1 {
		return nil, errMalformed
	}
	return b, nil
}

// seal writes the offset into the batch's bytes; they are outside its checksum.
func (b *batch) seal() {
	binary.BigEndian.PutUint64(b.raw, uint64(b.base))
	for i, c := range b.copies {
		c.offset = b.base + int64(i)
	}
}
