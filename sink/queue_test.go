package sink

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// randomRecord makes records around the edges of a block, and some above it.
func randomRecord(random *rand.Rand, i int) Record {
	some := func(n int) []byte {
		switch random.IntN(8) {
		case 0:
			return nil
		case 1:
			return []byte{}
		}
		b := make([]byte, random.IntN(n+1))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	size := 60
	switch random.IntN(20) {
	case 0:
		size = 3 * blockSize
	case 1, 2, 3:
		size = blockSize
	}
	r := Record{
		Topic: "t", Partition: int32(random.IntN(5)) - 1, Key: some(20), Value: some(size),
		Time: time.UnixMilli(random.Int64N(1 << 41)),
		Tag:  Tag{Tx: random.Uint32(), Ordinal: uint32(i), Source: random.Uint32()},
	}
	for range random.IntN(4) {
		r.Headers = append(r.Headers, Header{Name: fmt.Sprint("h", random.IntN(1000)), Value: some(30)})
	}
	return r
}

// TestQueue compares a queue with a slice under random appends and releases.
func TestQueue(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 7))
		var p pool
		var q queue
		var model []Record
		bytesIn := 0
		for step := range 300 {
			if random.IntN(3) > 0 {
				r := randomRecord(random, step)
				body := bodySize(&r)
				cost, before := q.cost(body), p.used
				if random.IntN(2) == 0 {
					q.append(&p, &r, body)
				} else {
					q.appendRaw(&p, meta{uint32(body), r.Partition, r.Time.UnixMilli(), r.Tag}, appendBody(nil, &r))
				}
				if p.used-before != cost {
					t.Fatalf("seed %d: append took %d bytes, cost said %d", seed, p.used-before, cost)
				}
				model = append(model, r)
				bytesIn += body
			} else if len(model) > 0 {
				n := 1 + random.IntN(len(model))
				c, size := q.first(), 0
				for i := range n {
					m, body := c.next()
					size += len(body)
					if got := parse("t", m, body); !reflect.DeepEqual(&model[i], got) {
						t.Fatalf("seed %d: record (-want +got):\n%s", seed, cmp.Diff(&model[i], got))
					}
					if !bytes.Equal(bodyKey(body), model[i].Key) {
						t.Fatalf("seed %d: bodyKey = %x, want %x", seed, bodyKey(body), model[i].Key)
					}
				}
				q.release(&p, c, n, size)
				model = model[n:]
				bytesIn -= size
			}
			if q.count != len(model) || q.bytes != bytesIn {
				t.Fatalf("seed %d: count %d bytes %d, want %d and %d", seed, q.count, q.bytes, len(model), bytesIn)
			}
			if (p.used == 0) != (len(model) == 0) || p.used < 0 {
				t.Fatalf("seed %d: %d bytes out with %d records queued", seed, p.used, len(model))
			}
		}
	}
}

// Blocks that are given back look like new ones, whatever was in them.
func TestPoolReuse(t *testing.T) {
	t.Parallel()
	var p pool
	for round := range 5 {
		var q queue
		for i := range 100 {
			r := Record{Value: bytes.Repeat([]byte{byte(round)}, 300+i)}
			q.append(&p, &r, bodySize(&r))
		}
		c, size := q.first(), 0
		for i := range 100 {
			m, body := c.next()
			size += len(body)
			if got := parse("", m, body).Value; len(got) != 300+i || got[0] != byte(round) {
				t.Fatalf("round %d record %d: %d bytes of %d", round, i, len(got), got[0])
			}
		}
		q.release(&p, c, 100, size)
		if p.used != 0 {
			t.Fatalf("round %d: %d bytes not given back", round, p.used)
		}
	}
	if got := freeBytes(&p); got > 12*blockSize {
		t.Errorf("%d bytes of free blocks after the same work five times, want no growth", got)
	}
}

// freeBytes are those of the free blocks that are not large.
func freeBytes(p *pool) int {
	n := 0
	for _, b := range slices.Concat(p.free[:]...) {
		n += len(b.buf)
	}
	return n
}

// TestI7PoolDropsFreeBlocksForLargeRecords: free blocks and large records do not
// add up to twice the limit.
func TestI7PoolDropsFreeBlocksForLargeRecords(t *testing.T) {
	t.Parallel()
	var p pool
	var blocks []*block
	for range 100 {
		blocks = append(blocks, p.get(blockSize))
	}
	for range 8 {
		blocks = append(blocks, p.get(firstBlock))
	}
	for _, b := range blocks {
		p.put(b)
	}
	p.get(60 * blockSize)
	if got := freeBytes(&p); got != 41*blockSize {
		t.Errorf("%d bytes of free blocks beside a record of 60 blocks, want %d", got, 41*blockSize)
	}
	p.get(40*blockSize + 1)
	if got := freeBytes(&p); got != blockSize-firstBlock {
		t.Errorf("%d bytes of free blocks, want %d", got, blockSize-firstBlock)
	}
	p.get(60 * blockSize)
	if got := freeBytes(&p); got != 0 {
		t.Errorf("%d bytes of free blocks, want none", got)
	}
}

// TestHugeRecordsDoNotBlock: a huge record that stays leaves the others room, and
// the sum is twice the limit at most.
func TestHugeRecordsDoNotBlock(t *testing.T) {
	t.Parallel()
	const limit = 8 << 20
	var p pool
	p.get(blockSize)
	huge := p.get(10 << 20)
	if got, want := p.charged(0, limit), int64(blockSize+10<<20+2*blockOverhead-limit); got != want {
		t.Errorf("%d bytes charged beside a huge record, want %d", got, want)
	}
	if got := p.charged(10<<20+blockOverhead, limit); got <= limit {
		t.Errorf("%d bytes charged for a second one, want more than the limit", got)
	}
	p.put(huge)
	if got, want := p.charged(0, limit), int64(blockSize+blockOverhead); got != want {
		t.Errorf("%d bytes charged after it, want %d", got, want)
	}
}

func TestBlockLen(t *testing.T) {
	t.Parallel()
	behind := func(size int) *block { return &block{buf: make([]byte, size)} }
	for _, tt := range []struct {
		last       *block
		need, want int
	}{
		{nil, 1, firstBlock}, {nil, firstBlock, firstBlock}, {nil, firstBlock + 1, 2 * firstBlock}, {nil, blockSize, blockSize},
		{nil, blockSize + 1, 4608}, {nil, 4608, 4608}, {nil, 8192, 8192}, {nil, 8193, 9216}, {nil, 100_000, 106_496}, {nil, 1 << 20, 1 << 20},
		{behind(firstBlock), 1, 2 * firstBlock}, {behind(firstBlock), 2000, 2048}, {behind(2048), 1, blockSize},
		{behind(blockSize), 1, blockSize}, {behind(9216), 1, blockSize}, {behind(firstBlock), 8193, 9216},
	} {
		if got := blockLen(tt.last, tt.need); got != tt.want {
			t.Errorf("blockLen(%v, %d) = %d, want %d", tt.last != nil, tt.need, got, tt.want)
		}
	}
	for need := 1; need < 3<<20; need += 997 {
		if got := blockLen(nil, need); got < need || need > blockSize && got > need+need/8+1 || blockLen(nil, got) != got {
			t.Fatalf("blockLen(nil, %d) = %d", need, got)
		}
	}
}

// TestManyShortQueues: a record for each of many partitions takes a small block of
// each, and they are used again.
func TestManyShortQueues(t *testing.T) {
	t.Parallel()
	const lanes = 1000
	var p pool
	queues := make([]queue, lanes)
	r := Record{Value: make([]byte, 400)}
	body := bodySize(&r)
	for range 3 {
		for i := range queues {
			queues[i].append(&p, &r, body)
		}
		if want := int64(lanes * (firstBlock + blockOverhead)); p.used != want {
			t.Fatalf("%d bytes for a record in each of %d queues, want %d", p.used, lanes, want)
		}
		for i := range queues {
			c := queues[i].first()
			c.next()
			queues[i].release(&p, c, 1, body)
		}
		if got := freeBytes(&p); p.used != 0 || got != lanes*firstBlock {
			t.Fatalf("%d bytes used and %d free after the last, want 0 and %d", p.used, got, lanes*firstBlock)
		}
	}
}

// TestI7LargeRecordsUseMemoryAgain: records above the block size, in flight and
// free together, stay at what was in flight at most, and are not made anew.
func TestI7LargeRecordsUseMemoryAgain(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var p pool
	var out []*block
	const limit = 4 << 20
	for range 20_000 {
		need := 1 + random.IntN(60_000)
		for len(out) > 0 && p.used+int64(blockLen(nil, need))+blockOverhead > limit {
			p.put(out[0])
			out = out[1:]
		}
		out = append(out, p.get(blockLen(nil, need)))
		held := p.used
		for _, b := range slices.Concat(append(p.free[:], p.large)...) {
			held += b.cost()
		}
		if held > limit+128<<10 {
			t.Fatalf("%d bytes out and free, limit %d", held, limit)
		}
	}
	var same pool
	first := same.get(blockLen(nil, 10_000))
	same.put(first)
	if again := same.get(blockLen(nil, 10_100)); again != first {
		t.Error("a block of the same size was made anew")
	}
	huge := same.get(maxKept + 1)
	same.put(huge)
	if len(same.large) != 0 {
		t.Errorf("%d free blocks after a huge one, want none", len(same.large))
	}
}
