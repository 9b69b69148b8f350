package sink

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/segmentio/kafka-go/compress"

	"github.com/walpost/walpost/internal/poison"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Layout of a version 2 record batch (Kafka documentation, "Message Format",
// "Record Batch"), as offsets behind the int32 length of the record set.
const (
	batchLength   = 8  // int32, counts what follows it
	batchMagic    = 16 // int8
	batchCRC      = 17 // uint32 over everything behind it
	batchAttrs    = 21 // int16: compression codec in the low three bits
	batchLastOff  = 23 // int32
	batchBaseTime = 27 // int64
	batchMaxTime  = 35 // int64
	batchProducer = 43 // int64
	batchEpoch    = 51 // int16
	batchBaseSeq  = 53 // int32
	batchCount    = 57 // int32
	batchHeader   = 61
)

// producer identifies who wrote a batch; the broker refuses repeats and gaps by
// it (KIP-98).
type producer struct {
	known bool
	id    int64
	epoch int16
}

// encoder turns the records at the head of a queue into a batch. It belongs to
// one sender and reuses its buffers.
type encoder struct {
	buf     []byte // record sets of the request under way, one after another
	scratch bytes.Buffer
	codec   compress.Codec // nil: none
	attrs   uint16
}

func newEncoder(compression string) (*encoder, error) {
	e := &encoder{}
	switch compression {
	case "", "none":
	case "gzip":
		e.codec, e.attrs = compress.Gzip.Codec(), 1
	case "snappy":
		e.codec, e.attrs = compress.Snappy.Codec(), 2
	case "lz4":
		e.codec, e.attrs = compress.Lz4.Codec(), 3
	case "zstd":
		e.codec, e.attrs = compress.Zstd.Codec(), 4
	default:
		return nil, fmt.Errorf("compression %q: want none, gzip, snappy, lz4 or zstd", compression)
	}
	return e, nil
}

// batch is what one lane sends in one request, and what is known of it once it
// is settled.
type batch struct {
	from, to int // in encoder.buf, with the length in front
	n        int
	body     int    // bytes of the bodies
	last     uint64 // Tag.Commit of the last record
	end      cursor
	runs     []Ack
}

// reset forgets the last request's bytes and makes room for about size: growing
// piece by piece would leave as much behind again.
func (e *encoder) reset(size int) {
	if cap(e.buf) > 8<<20 {
		e.buf = nil // one huge record should not hold memory for ever
	}
	if cap(e.buf) < size {
		const step = 64 << 10
		e.buf = make([]byte, 0, (size+step-1)/step*step)
	}
	poison.Bytes(e.buf[:cap(e.buf)])
	e.buf = e.buf[:0]
	if e.scratch.Cap() > 8<<20 {
		e.scratch = bytes.Buffer{}
	}
}

// encode appends a batch of the first records behind c: at most count of them,
// and no more than limit bytes before compression, but at least one. The same
// records, producer and sequence give the same bytes.
func (e *encoder) encode(c cursor, count, limit int, topic string, p producer, seq int32, runs []Ack) (batch, error) {
	b := batch{from: len(e.buf), runs: runs[:0]}
	e.buf = append(e.buf, make([]byte, 4+batchHeader)...)
	out := e.buf
	records := len(out)

	var base, newest int64
	size := batchHeader
	for b.n < count {
		next := c
		m, body := next.next()
		if b.n == 0 {
			base, newest = m.millis, m.millis
		}
		delta := m.millis - base
		length := 1 + varintSize(delta) + varintSize(int64(b.n)) + len(body)
		need := varintSize(int64(length)) + length
		if b.n > 0 && size+need > limit {
			break
		}
		size += need
		out = binary.AppendVarint(out, int64(length))
		out = append(out, 0) // attributes: none defined
		out = binary.AppendVarint(out, delta)
		out = binary.AppendVarint(out, int64(b.n))
		out = append(out, body...)
		newest = max(newest, m.millis)
		b.last = m.tag.Commit
		if last := len(b.runs) - 1; last >= 0 && b.runs[last].Tx == m.tag.Tx {
			b.runs[last].N++
		} else {
			b.runs = append(b.runs, Ack{Tx: m.tag.Tx, N: 1, Topic: topic})
		}
		b.n++
		b.body += len(body)
		c = next
	}
	b.end = c

	if e.codec != nil {
		e.scratch.Reset()
		if err := compressInto(&e.scratch, e.codec, out[records:]); err != nil {
			return b, err
		}
		out = append(out[:records], e.scratch.Bytes()...)
	}
	e.buf, b.to = out, len(out)

	set := out[b.from:]
	binary.BigEndian.PutUint32(set, uint32(len(set)-4))
	h := set[4:]
	binary.BigEndian.PutUint32(h[batchLength:], uint32(len(h)-batchLength-4))
	binary.BigEndian.PutUint32(h[batchLength+4:], 0xffffffff) // partition leader epoch: -1
	h[batchMagic] = 2
	binary.BigEndian.PutUint16(h[batchAttrs:], e.attrs)
	binary.BigEndian.PutUint32(h[batchLastOff:], uint32(b.n-1))
	binary.BigEndian.PutUint64(h[batchBaseTime:], uint64(base))
	binary.BigEndian.PutUint64(h[batchMaxTime:], uint64(newest))
	binary.BigEndian.PutUint64(h[batchProducer:], uint64(p.id))
	binary.BigEndian.PutUint16(h[batchEpoch:], uint16(p.epoch))
	binary.BigEndian.PutUint32(h[batchBaseSeq:], uint32(seq))
	binary.BigEndian.PutUint32(h[batchCount:], uint32(b.n))
	binary.BigEndian.PutUint32(h[batchCRC:], crc32.Checksum(h[batchAttrs:], castagnoli))
	return b, nil
}

func compressInto(w *bytes.Buffer, codec compress.Codec, records []byte) error {
	z := codec.NewWriter(w)
	_, err := z.Write(records)
	if closeErr := z.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("compress batch: %w", err)
	}
	return nil
}
