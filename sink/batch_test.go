package sink

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// queued puts records in a queue of their own.
func queued(records []Record) *queue {
	var p pool
	q := new(queue)
	for i := range records {
		q.append(&p, &records[i], bodySize(&records[i]))
	}
	return q
}

func TestBatchGolden(t *testing.T) {
	t.Parallel()
	records := []Record{
		{Key: []byte("k"), Value: []byte("v1"), Time: time.UnixMilli(1000), Tag: Tag{Tx: 7},
			Headers: []Header{{Name: "id", Value: []byte("e1")}, {Name: "n"}}},
		{Key: nil, Value: []byte{}, Time: time.UnixMilli(990), Tag: Tag{Tx: 7}},
		{Key: []byte{}, Value: nil, Time: time.UnixMilli(1064), Tag: Tag{Tx: 8}},
	}
	e, err := newEncoder("none")
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.encode(queued(records).first(), 3, 1<<20, "t", producer{true, 0x0102030405060708, 9}, 0x0a0b0c0d, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "" +
		"0000005f" + // length of the record set
		"0000000000000000" + "00000053" + "ffffffff" + "02" + // base offset, length, leader epoch, magic
		"CCCCCCCC" + // crc
		"0000" + "00000002" + "00000000000003e8" + "0000000000000428" + // attributes, last offset, first and max time
		"0102030405060708" + "0009" + "0a0b0c0d" + "00000003" + // producer, epoch, sequence, count
		"24" + "00" + "00" + "00" + "026b" + "047631" + "04" + "046964" + "046531" + "026e" + "01" +
		"0c" + "00" + "13" + "02" + "01" + "00" + "00" +
		"0e" + "00" + "8001" + "04" + "00" + "01" + "00"
	got := hex.EncodeToString(e.buf[b.from:b.to])
	sum := fmt.Sprintf("%08x", crc32.Checksum(e.buf[4+21:], crc32.MakeTable(crc32.Castagnoli)))
	want = want[:42] + sum + want[50:]
	if got != want {
		t.Errorf("batch\n got %s\nwant %s", got, want)
	}
	if diff := cmp.Diff([]Ack{{Tx: 7, N: 2, Topic: "t"}, {Tx: 8, N: 1, Topic: "t"}}, b.runs); diff != "" {
		t.Errorf("acks (-want +got):\n%s", diff)
	}
}

var compressions = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// TestI8BatchReadBack decodes random batches of every compression with two
// other implementations, and encodes them again to the same bytes.
func TestI8BatchReadBack(t *testing.T) {
	t.Parallel()
	for _, compression := range compressions {
		t.Run(compression, func(t *testing.T) {
			t.Parallel()
			e, err := newEncoder(compression)
			if err != nil {
				t.Fatal(err)
			}
			again, _ := newEncoder(compression)
			for seed := range uint64(10) {
				random := rand.New(rand.NewPCG(seed, 3))
				records := make([]Record, 1+random.IntN(60))
				for i := range records {
					records[i] = randomRecord(random, i)
				}
				q := queued(records)
				e.reset(0)
				p, seq := producer{true, random.Int64(), int16(random.IntN(100))}, int32(random.Uint32()>>1)
				b, err := e.encode(q.first(), len(records), 1<<30, "t", p, seq, nil)
				if err != nil || b.n != len(records) || b.body != q.bytes {
					t.Fatalf("encode: %d of %d records, %d of %d bytes, %v", b.n, len(records), b.body, q.bytes, err)
				}
				set := bytes.Clone(e.buf[b.from:b.to])
				checkWithKmsg(t, set[4:], records, p, seq)
				checkWithKafkaGo(t, set, records)

				again.reset(0)
				_, _ = again.encode(q.first(), 1, 10, "other", p, 3, nil) // not at the same place
				b2, err := again.encode(q.first(), len(records), 1<<30, "t", p, seq, nil)
				if err != nil || !bytes.Equal(set, again.buf[b2.from:b2.to]) {
					t.Fatalf("the same records gave other bytes: %v", err)
				}
			}
		})
	}
}

func checkWithKmsg(t *testing.T, batch []byte, records []Record, p producer, seq int32) {
	t.Helper()
	var rb kmsg.RecordBatch
	if err := rb.ReadFrom(batch); err != nil {
		t.Fatal(err)
	}
	if want := crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)); uint32(rb.CRC) != want {
		t.Errorf("crc %x, want %x", uint32(rb.CRC), want)
	}
	if rb.ProducerID != p.id || rb.ProducerEpoch != p.epoch || rb.FirstSequence != seq || int(rb.NumRecords) != len(records) ||
		int(rb.Length) != len(batch)-12 || int(rb.LastOffsetDelta) != len(records)-1 || rb.Magic != 2 {
		t.Errorf("header %+v", rb)
	}
	raw := rb.Records
	if codec := rb.Attributes & 7; codec != 0 {
		r := compress.Compression(codec).Codec().NewReader(bytes.NewReader(raw))
		var err error
		if raw, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]Record, 0, len(records))
	var maxTime int64
	for i := range records {
		length, w := binary.Varint(raw)
		var r kmsg.Record
		if err := r.ReadFrom(raw[:w+int(length)]); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		raw = raw[w+int(length):]
		if int(r.OffsetDelta) != i {
			t.Errorf("record %d has offset %d", i, r.OffsetDelta)
		}
		millis := rb.FirstTimestamp + r.TimestampDelta64
		maxTime = max(maxTime, millis)
		one := records[i]
		one.Key, one.Value, one.Time, one.Headers = r.Key, r.Value, time.UnixMilli(millis), nil
		for _, h := range r.Headers {
			one.Headers = append(one.Headers, Header{Name: h.Key, Value: h.Value})
		}
		got = append(got, one)
	}
	if len(raw) != 0 || maxTime != rb.MaxTimestamp {
		t.Errorf("%d bytes left; newest %d, header says %d", len(raw), maxTime, rb.MaxTimestamp)
	}
	if diff := cmp.Diff(records, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func checkWithKafkaGo(t *testing.T, set []byte, records []Record) {
	t.Helper()
	var rs protocol.RecordSet
	if _, err := rs.ReadFrom(bytes.NewReader(set)); err != nil {
		t.Fatal(err)
	}
	for i := range records {
		r, err := rs.Records.ReadRecord()
		if err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		key, _ := protocol.ReadAll(r.Key)
		value, _ := protocol.ReadAll(r.Value)
		if !bytes.Equal(key, records[i].Key) || !bytes.Equal(value, records[i].Value) || !r.Time.Equal(records[i].Time) {
			t.Fatalf("record %d: %q %q %v", i, key, value, r.Time)
		}
	}
}

func TestBatchLimits(t *testing.T) {
	t.Parallel()
	records := make([]Record, 10)
	for i := range records {
		records[i] = Record{Value: make([]byte, 100), Time: time.UnixMilli(1)}
	}
	q := queued(records)
	e, _ := newEncoder("")
	one := 2 + 1 + 1 + 1 + 1 + 2 + 100 + 1 // length, attributes, time, offset, key, value, headers
	for _, c := range []struct{ count, limit, want int }{
		{10, 1 << 20, 10},
		{3, 1 << 20, 3},
		{10, 1, 1},
		{10, batchHeader + one, 1},
		{10, batchHeader + 3*one, 3},
		{10, batchHeader + 4*one - 1, 3},
	} {
		e.reset(0)
		b, err := e.encode(q.first(), c.count, c.limit, "t", producer{}, 0, nil)
		if err != nil || b.n != c.want {
			t.Errorf("encode(count %d, limit %d) took %d records, want %d (%v)", c.count, c.limit, b.n, c.want, err)
		}
		if size := b.to - b.from - 4; b.n > 1 && size > c.limit {
			t.Errorf("batch of %d bytes above the limit %d", size, c.limit)
		}
	}
}

func TestVarintSize(t *testing.T) {
	t.Parallel()
	for _, v := range []int64{0, -1, 1, 63, 64, -64, -65, 8191, 8192, 1 << 31, -1 << 31, 1<<63 - 1, -1 << 63} {
		if got, want := varintSize(v), len(binary.AppendVarint(nil, v)); got != want {
			t.Errorf("varintSize(%d) = %d, want %d", v, got, want)
		}
	}
}
