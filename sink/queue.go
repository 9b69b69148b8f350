package sink

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/walpost/walpost/internal/poison"
)

// Whose the memory is: Submit copies a record into a block of its lane's queue,
// and keeps nothing of what it was given. From then on the bytes do not change
// until the record's batch is settled; the sender that has the lane reads them
// without the mutex. release gives them back, and a block with them when it was
// the last of it. The pool may hand that to any lane at once.

// Records wait in blocks of few sizes, so that memory is charged for what it
// takes, is reused without garbage, and is bounded exactly. A queue begins with a
// small block, because there may be as many queues as partitions, and each further
// one is twice as large, up to blockSize. A record that does not fit that gets a
// block of its own size.
const (
	blockSize  = 4 << 10
	firstBlock = 512
	classes    = 4 // firstBlock, and twice as much each, to blockSize
)

// classOf says which of the sizes it is; a larger one is in none.
func classOf(size int) (class int, ok bool) {
	return bits.Len(uint(size/firstBlock)) - 1, size <= blockSize
}

// blockOverhead is the Go allocation around a block's bytes, charged with it.
const blockOverhead = 64

type block struct {
	next *block
	buf  []byte // all of it; never resliced, so that readers need no mutex
	used int    // guarded by the sink's mutex
}

func (b *block) cost() int64 { return int64(len(b.buf)) + blockOverhead }

func (b *block) left() int { return len(b.buf) - b.used }

// maxKept is the largest block that is kept for reuse: one huge record should not
// hold memory for ever.
const maxKept = 1 << 20

// pool hands out blocks and counts the bytes that are out. The sink's mutex
// guards it.
//
// What is free never comes on top of the limit of what is out: before a block is
// made anew, as much is dropped.
type pool struct {
	free  [classes][]*block
	large []*block // of other sizes
	used  int64
	huge  int64 // part of used: blocks above maxKept
}

// charged is what counts against a limit when so many bytes more are taken. Huge
// blocks have the limit once more to themselves: a huge record may be refused and
// then wait for long, and the others must not wait with it.
func (p *pool) charged(more, limit int64) int64 {
	huge := p.huge
	if more > maxKept+blockOverhead {
		huge += more
	}
	return p.used + more - min(huge, limit)
}

// blockLen is the size of the block behind another, or nil, for a record of so
// many bytes. Large ones come in eighths of a power of two, so that they can be
// used again.
func blockLen(last *block, need int) int {
	if need <= blockSize {
		size := firstBlock
		if last != nil {
			size = min(2*len(last.buf), blockSize)
		}
		for size < need {
			size *= 2
		}
		return size
	}
	step := max(1<<bits.Len(uint(need-1))>>4, 1)
	return (need + step - 1) / step * step
}

func (p *pool) get(size int) *block {
	b := p.reuse(size)
	if b == nil {
		p.drop(size)
		b = &block{buf: make([]byte, size)}
	}
	p.used += b.cost()
	if len(b.buf) > maxKept {
		p.huge += b.cost()
	}
	return b
}

// reuse takes a free block of a size, nil if there is none.
func (p *pool) reuse(size int) *block {
	if class, ok := classOf(size); ok {
		free := p.free[class]
		n := len(free)
		if n == 0 {
			return nil
		}
		b := free[n-1]
		free[n-1], p.free[class] = nil, free[:n-1]
		return b
	}
	for i := len(p.large) - 1; i >= 0; i-- {
		if b := p.large[i]; len(b.buf) == size {
			p.large = slices.Delete(p.large, i, i+1)
			return b
		}
	}
	return nil
}

// drop gives free blocks of at least size bytes to the garbage collector, or all.
func (p *pool) drop(size int) {
	n := 0
	for n < len(p.large) && size > 0 { // the oldest first: their sizes have not come again
		size -= len(p.large[n].buf)
		n++
	}
	p.large = slices.Delete(p.large, 0, n)
	for class := classes - 1; class >= 0 && size > 0; class-- {
		free, each := p.free[class], firstBlock<<class
		keep := max(len(free)-(size+each-1)/each, 0)
		size -= (len(free) - keep) * each
		clear(free[keep:])
		p.free[class] = free[:keep]
	}
}

func (p *pool) put(b *block) {
	poison.Bytes(b.buf)
	p.used -= b.cost()
	b.next, b.used = nil, 0
	if class, ok := classOf(len(b.buf)); ok {
		p.free[class] = append(p.free[class], b)
	} else if len(b.buf) <= maxKept {
		p.large = append(p.large, b)
	} else {
		p.huge -= b.cost()
	}
}

// queue is a FIFO of records, each stored as its meta followed by its body: the
// part of a Kafka record that does not depend on its place in a batch.
//
// Only append and release need the sink's mutex. Records that are in the queue
// do not change, so a sender reads them through a cursor without it.
type queue struct {
	head, tail *block
	off        int // of the first record, in head
	count      int
	bytes      int // bodies, for an estimate of a batch's size
}

// meta of a queued record.
type meta struct {
	size      uint32 // of the body
	partition int32  // as submitted: ByKey or a number
	millis    int64
	tag       Tag
}

const metaSize = 36

// endOfBlock in the place of a size says that the next record is in the next
// block. Where not even a meta fits, that goes without saying.
const endOfBlock = math.MaxUint32

// cost says how many bytes append will take from the pool.
func (q *queue) cost(body int) int64 {
	need := metaSize + body
	if q.tail != nil && q.tail.left() >= need {
		return 0
	}
	return int64(blockLen(q.tail, need)) + blockOverhead
}

// room makes place for one more record and returns it, empty.
func (q *queue) room(p *pool, body int) []byte {
	need := metaSize + body
	if q.tail == nil || q.tail.left() < need {
		b := p.get(blockLen(q.tail, need))
		if q.tail == nil {
			q.head, q.off = b, 0
		} else {
			if q.tail.left() >= metaSize {
				binary.LittleEndian.PutUint32(q.tail.buf[q.tail.used:], endOfBlock)
			}
			q.tail.next = b
		}
		q.tail = b
	}
	q.count++
	q.bytes += body
	start := q.tail.used
	q.tail.used += need
	return q.tail.buf[start:start:q.tail.used]
}

// append copies r, whose body takes body bytes.
func (q *queue) append(p *pool, r *Record, body int) {
	b := q.room(p, body)
	b = appendMeta(b, meta{uint32(body), r.Partition, r.Time.UnixMilli(), r.Tag})
	appendBody(b, r)
}

// appendRaw copies a record of another queue.
func (q *queue) appendRaw(p *pool, m meta, body []byte) {
	b := q.room(p, len(body))
	_ = append(appendMeta(b, m), body...)
}

// cursor walks over queued records.
type cursor struct {
	b   *block
	off int
}

func (q *queue) first() cursor { return cursor{q.head, q.off} }

// next returns the record under the cursor and moves behind it. The caller
// knows how many records there are.
func (c *cursor) next() (meta, []byte) {
	if len(c.b.buf)-c.off < metaSize || binary.LittleEndian.Uint32(c.b.buf[c.off:]) == endOfBlock {
		c.b, c.off = c.b.next, 0
	}
	m := readMeta(c.b.buf[c.off:])
	start := c.off + metaSize
	c.off = start + int(m.size)
	return m, c.b.buf[start:c.off:c.off]
}

// release forgets the first n records, which end at c and have bytes of bodies.
func (q *queue) release(p *pool, c cursor, n, bytes int) {
	q.count -= n
	q.bytes -= bytes
	for q.head != c.b {
		b := q.head
		q.head, q.off = b.next, 0
		p.put(b)
	}
	poison.Bytes(q.head.buf[q.off:c.off])
	q.off = c.off
	if q.count == 0 {
		p.put(q.head)
		*q = queue{}
	}
}

func appendMeta(b []byte, m meta) []byte {
	b = binary.LittleEndian.AppendUint32(b, m.size)
	b = binary.LittleEndian.AppendUint32(b, uint32(m.partition))
	b = binary.LittleEndian.AppendUint64(b, uint64(m.millis))
	b = binary.LittleEndian.AppendUint32(b, m.tag.Tx)
	b = binary.LittleEndian.AppendUint32(b, m.tag.Source)
	b = binary.LittleEndian.AppendUint32(b, m.tag.Ordinal)
	return binary.LittleEndian.AppendUint64(b, m.tag.Commit)
}

func readMeta(b []byte) meta {
	_ = b[metaSize-1]
	return meta{
		size:      binary.LittleEndian.Uint32(b),
		partition: int32(binary.LittleEndian.Uint32(b[4:])),
		millis:    int64(binary.LittleEndian.Uint64(b[8:])),
		tag: Tag{
			Tx:      binary.LittleEndian.Uint32(b[16:]),
			Source:  binary.LittleEndian.Uint32(b[20:]),
			Ordinal: binary.LittleEndian.Uint32(b[24:]),
			Commit:  binary.LittleEndian.Uint64(b[28:]),
		},
	}
}

// bodySize is the length of what appendBody appends.
func bodySize(r *Record) int {
	n := bytesSize(r.Key) + bytesSize(r.Value) + varintSize(int64(len(r.Headers)))
	for i := range r.Headers {
		h := &r.Headers[i]
		n += varintSize(int64(len(h.Name))) + len(h.Name) + bytesSize(h.Value)
	}
	return n
}

// appendBody encodes key, value and headers as a record of a version 2 batch
// has them (Kafka documentation, "Message Format", "Record").
func appendBody(b []byte, r *Record) []byte {
	b = appendBytes(b, r.Key)
	b = appendBytes(b, r.Value)
	b = binary.AppendVarint(b, int64(len(r.Headers)))
	for i := range r.Headers {
		h := &r.Headers[i]
		b = binary.AppendVarint(b, int64(len(h.Name)))
		b = append(b, h.Name...)
		b = appendBytes(b, h.Value)
	}
	return b
}

// parse turns a queued record back into a Record that owns its bytes.
func parse(topic string, m meta, body []byte) *Record {
	body = append([]byte(nil), body...)
	bytes := func() []byte {
		n, w := binary.Varint(body)
		body = body[w:]
		if n < 0 {
			return nil
		}
		v := body[:n:n]
		body = body[n:]
		return v
	}
	r := &Record{Topic: topic, Partition: m.partition, Time: time.UnixMilli(m.millis), Tag: m.tag}
	r.Key, r.Value = bytes(), bytes()
	n, w := binary.Varint(body)
	body = body[w:]
	for range n {
		name := string(bytes())
		r.Headers = append(r.Headers, Header{Name: name, Value: bytes()})
	}
	return r
}

// bodyKey is the key of an encoded body.
func bodyKey(body []byte) []byte {
	n, w := binary.Varint(body)
	if n < 0 {
		return nil
	}
	return body[w : w+int(n)]
}

func appendBytes(b, v []byte) []byte {
	if v == nil {
		return append(b, 1) // zigzag varint of -1
	}
	return append(binary.AppendVarint(b, int64(len(v))), v...)
}

func bytesSize(v []byte) int {
	if v == nil {
		return 1
	}
	return varintSize(int64(len(v))) + len(v)
}

// varintSize is the length of binary.AppendVarint's result.
func varintSize(v int64) int {
	u := uint64(v)<<1 ^ uint64(v>>63)
	n := 1
	for u >= 0x80 {
		u >>= 7
		n++
	}
	return n
}
