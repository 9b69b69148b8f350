package sink

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// rig is a Kafka sink in front of a fake cluster, with dials for faults.
type rig struct {
	*Kafka
	cluster *kfake.Cluster
	ctx     context.Context // ends with the test
	network *network
	counts  *counts
	stop    func() error  // cancels Run and returns its error
	ended   chan struct{} // closed when Run has returned
	runErr  error         // what it returned

	mu    sync.Mutex
	acked map[uint64]int // per transaction
	total int
	sent  int
}

// fast retries, so that tests see many of them.
func fastTiming() timing {
	return timing{
		retryMin: time.Millisecond, retryMax: 10 * time.Millisecond,
		permanentMin: 5 * time.Millisecond, permanentMax: 10 * time.Millisecond,
		poison:   10 * time.Millisecond,
		metadata: 100 * time.Millisecond, metadataRetry: 5 * time.Millisecond, metadataFloor: time.Millisecond,
	}
}

func newCluster(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// neverAnswered lets produce requests arrive, and tells of each.
func neverAnswered(c *kfake.Cluster) <-chan struct{} {
	arrived := make(chan struct{}, 100)
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		arrived <- struct{}{}
		return nil, nil, true
	})
	return arrived
}

// newRig makes a sink that is not running yet.
func newRig(t testing.TB, c *kfake.Cluster, change func(*Options)) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	r := &rig{cluster: c, ctx: ctx, network: &network{}, counts: newCounts(), acked: make(map[uint64]int), ended: make(chan struct{})}
	opt := Options{
		Brokers: c.ListenAddrs(), ClientID: "test", RequestTimeout: 5 * time.Second,
		Observer: r.counts, Dial: r.network.dial,
		Acked: func(acks []Ack) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, a := range acks {
				r.acked[uint64(a.Tx)] += a.N
				r.total += a.N
			}
		},
	}
	if change != nil {
		change(&opt)
	}
	k, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	k.timing = fastTiming()
	r.Kafka = k
	return r
}

// start runs the sink until stop or the end of the test.
func (r *rig) start(t testing.TB) *rig {
	t.Helper()
	ctx, cancel := context.WithCancel(r.ctx)
	go func() {
		defer close(r.ended)
		r.runErr = r.Run(ctx)
	}()
	r.stop = func() error {
		cancel()
		<-r.ended
		return r.runErr
	}
	t.Cleanup(func() { _ = r.stop() })
	return r
}

// until waits for a condition.
func (r *rig) until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-r.ended:
			t.Fatalf("%s: Run() = %v", what, r.runErr)
		case <-r.ctx.Done():
			t.Fatalf("%s: not in time; %d acked; status %+v", what, r.ackedTotal(), r.Status())
		case <-tick.C:
		}
	}
}

func (r *rig) ackedTotal() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// drained waits until everything sent is acked, and checks the books.
func (r *rig) drained(t testing.TB) {
	t.Helper()
	r.until(t, "everything acked", func() bool { return r.ackedTotal() >= r.sent })
	s := r.Status()
	if s.InFlightRecords != 0 || s.InFlightBytes != 0 || s.InFlightPartitions != 0 || s.Records != uint64(r.sent) || s.HoldCount != 0 {
		t.Errorf("status when all is acked: %+v, want nothing left of %d records", s, r.sent)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for tx, n := range r.acked {
		if n != 1 {
			t.Fatalf("record %d acked %d times", tx, n)
		}
	}
}

// send submits a record with a number of its own as transaction, and that
// number as its value.
func (r *rig) send(t testing.TB, topic string, partition int32, key string) {
	t.Helper()
	if err := r.trySend(r.ctx, topic, partition, key, ""); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) trySend(ctx context.Context, topic string, partition int32, key, tail string) error {
	n := strconv.Itoa(r.sent)
	err := r.Submit(ctx, &Record{
		Topic: topic, Partition: partition, Key: []byte(key), Value: []byte(n + tail),
		Headers: []Header{{Name: "id", Value: []byte(n)}}, Time: time.UnixMilli(1_700_000_000_000), Tag: Tag{Tx: uint32(r.sent), Commit: uint64(r.sent)},
	})
	if err == nil {
		r.sent++
	}
	return err
}

// check reads the topics and demands all that was sent exactly once, ascending
// in every partition.
func (r *rig) check(t testing.TB, topics ...string) {
	t.Helper()
	seen := make(map[int]bool)
	for _, topic := range topics {
		for p, records := range readTopic(t, r.cluster, topic) {
			last := -1
			for _, rec := range records {
				n := number(t, rec)
				if n <= last {
					t.Fatalf("%s/%d: record %d behind %d", topic, p, n, last)
				}
				if seen[n] {
					t.Fatalf("%s/%d: record %d twice", topic, p, n)
				}
				seen[n], last = true, n
			}
		}
	}
	if len(seen) != r.sent {
		t.Fatalf("%d records arrived, want %d", len(seen), r.sent)
	}
}

func number(t testing.TB, r Record) int {
	t.Helper()
	if len(r.Headers) != 1 {
		t.Fatalf("record with headers %v", r.Headers)
	}
	n, err := strconv.Atoi(string(r.Headers[0].Value))
	if err != nil || !bytes.HasPrefix(r.Value, r.Headers[0].Value) {
		t.Fatalf("record with id %q and value %.20q", r.Headers[0].Value, r.Value)
	}
	return n
}

// readTopic returns a topic's records by partition, read by the library's
// consumer side.
func readTopic(t testing.TB, c *kfake.Cluster, topic string) [][]Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(c.ListenAddrs()...), Transport: transport}
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil || meta.Topics[0].Error != nil {
		t.Fatalf("metadata of %q: %v", topic, errors.Join(err, meta.Topics[0].Error))
	}
	out := make([][]Record, len(meta.Topics[0].Partitions))
	for p := range out {
		for next := int64(0); ; {
			f, err := client.Fetch(ctx, &kafka.FetchRequest{
				Topic: topic, Partition: p, Offset: next, MinBytes: 1, MaxBytes: 32 << 20, MaxWait: time.Millisecond,
			})
			if err == nil {
				err = f.Error
			}
			if err != nil {
				t.Fatalf("fetch %s/%d: %v", topic, p, err)
			}
			for {
				rec, err := f.Records.ReadRecord()
				if err != nil {
					if !errors.Is(err, io.EOF) {
						t.Fatalf("read %s/%d: %v", topic, p, err)
					}
					break
				}
				if rec.Offset < next {
					continue
				}
				next = rec.Offset + 1
				out[p] = append(out[p], fromFetch(topic, int32(p), rec))
			}
			if next >= f.HighWatermark {
				break
			}
		}
	}
	return out
}

func fromFetch(topic string, partition int32, rec *kafka.Record) Record {
	r := Record{Topic: topic, Partition: partition, Time: rec.Time}
	r.Key, _ = protocol.ReadAll(rec.Key)
	r.Value, _ = protocol.ReadAll(rec.Value)
	for _, h := range rec.Headers {
		r.Headers = append(r.Headers, Header{Name: h.Key, Value: h.Value})
	}
	return r
}

// admin calls the cluster with a client of its own.
func admin(t testing.TB, c *kfake.Cluster, call func(context.Context, *kafka.Client) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	if err := call(ctx, &kafka.Client{Addr: kafka.TCP(c.ListenAddrs()...), Transport: transport}); err != nil {
		t.Fatal(err)
	}
}

// holdOf waits for a hold of a partition (-1: the topic) and returns it.
func (r *rig) holdOf(t testing.TB, topic string, partition int32, reason string) Hold {
	t.Helper()
	var found Hold
	r.until(t, fmt.Sprintf("hold of %s/%d for %s", topic, partition, reason), func() bool {
		i := slices.IndexFunc(r.Status().Holds, func(h Hold) bool {
			return h.Topic == topic && h.Partition == partition && h.Reason == reason
		})
		if i < 0 {
			return false
		}
		found = r.Status().Holds[i]
		return found.Reason == reason
	})
	return found
}

// counts is an Observer.
type counts struct {
	mu       sync.Mutex
	acked    int
	failed   map[string]int
	retried  map[string]int
	lost     int
	requests int
}

func newCounts() *counts {
	return &counts{failed: make(map[string]int), retried: make(map[string]int)}
}

func (c *counts) do(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *counts) ProduceDone(time.Duration)            { c.do(func() { c.requests++ }) }
func (c *counts) BatchAcked(_ string, n, _ int)        { c.do(func() { c.acked += n }) }
func (c *counts) BatchFailed(_ Class, r string, _ int) { c.do(func() { c.failed[r]++ }) }
func (c *counts) BatchRetried(r string)                { c.do(func() { c.retried[r]++ }) }
func (c *counts) BrokerDuplicate()                     {}
func (c *counts) SequenceLost()                        { c.do(func() { c.lost++ }) }

func (c *counts) failures(reason string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed[reason]
}

// sentBatch is a batch as a broker saw it.
type sentBatch struct {
	topic     string
	partition int32
	raw       []byte
	kmsg.RecordBatch
}

func (b *sentBatch) values() []string {
	var out []string
	raw := b.Records
	for range b.NumRecords {
		length, w := binary.Varint(raw)
		var r kmsg.Record
		if err := r.ReadFrom(raw[:w+int(length)]); err != nil {
			return nil
		}
		raw = raw[w+int(length):]
		out = append(out, string(r.Value))
	}
	return out
}

// batches of a produce request.
func batches(req kmsg.Request) []sentBatch {
	var out []sentBatch
	for _, t := range req.(*kmsg.ProduceRequest).Topics {
		for _, p := range t.Partitions {
			b := sentBatch{topic: t.Topic, partition: p.Partition, raw: bytes.Clone(p.Records)}
			if err := b.ReadFrom(b.raw); err != nil {
				panic(err) // in a fake broker, on bytes that our encoder made
			}
			out = append(out, b)
		}
	}
	return out
}

// observe calls f for every batch of every produce request that arrives.
func observe(c *kfake.Cluster, f func(sentBatch)) {
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		for _, b := range batches(req) {
			f(b)
		}
		return nil, nil, false
	})
}

func (c *counts) AlreadyThere(int) {}
