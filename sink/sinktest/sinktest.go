package sinktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/walpost/walpost/sink"
)

// Topic is where the suite sends. It must exist, empty, with several partitions
// where the sink has such.
const Topic = "sinktest"

// Capacity is a number of bytes in records of 8 KiB above which Submit must
// block while nothing is delivered. A sink under test is configured so.
const Capacity = 16 << 20

// Open makes a sink that has not been run, and a function that returns all
// records that have arrived, those of one partition in their order.
type Open func(t *testing.T, acked func([]sink.Ack)) (s sink.Sink, read func(t *testing.T) []sink.Record)

// Run runs the suite, with a new sink for each part.
func Run(t *testing.T, open Open) {
	parts := map[string]func(*testing.T, *harness){
		"order per key":             orderPerKey,
		"one ack per record":        oneAckPerRecord,
		"submit copies":             submitCopies,
		"nil and empty differ":      nilAndEmpty,
		"submit blocks":             submitBlocks,
		"submit ends with context":  submitEndsWithContext,
		"run ends without error":    runEnds,
		"status at any time":        statusAtAnyTime,
		"fixed and keyed partition": fixedPartition,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, newHarness(t, open)) })
	}
}

// harness runs one sink and collects its acks.
type harness struct {
	sink sink.Sink
	read func(*testing.T) []sink.Record
	ctx  context.Context // ends with the test

	mu    sync.Mutex
	cond  *sync.Cond
	byTx  map[uint64]int
	total int
	over  bool // Run has returned
	late  int  // acks after that
}

func newHarness(t *testing.T, open Open) *harness {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	h := &harness{ctx: ctx, byTx: make(map[uint64]int)}
	h.cond = sync.NewCond(&h.mu)
	h.sink, h.read = open(t, func(acks []sink.Ack) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, a := range acks {
			h.byTx[uint64(a.Tx)] += a.N
			h.total += a.N
			if h.over {
				h.late += a.N
			}
		}
		h.cond.Broadcast()
	})
	return h
}

// run starts Run and returns a function that stops it and checks how it ended.
func (h *harness) run(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(h.ctx)
	done := make(chan error, 1)
	go func() {
		err := h.sink.Run(ctx)
		h.mu.Lock()
		h.over = true
		h.mu.Unlock()
		done <- err
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v after cancel, want nil", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func (h *harness) submit(t *testing.T, r sink.Record) {
	t.Helper()
	if err := h.sink.Submit(h.ctx, &r); err != nil {
		t.Fatalf("Submit() = %v", err)
	}
}

// wait returns when n records are acked.
func (h *harness) wait(t *testing.T, n int) {
	t.Helper()
	stop := context.AfterFunc(h.ctx, func() {
		h.mu.Lock()
		h.cond.Broadcast()
		h.mu.Unlock()
	})
	defer stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.total < n && h.ctx.Err() == nil {
		h.cond.Wait()
	}
	if h.total < n {
		t.Fatalf("%d records acked, want %d; status: %+v", h.total, n, h.sink.Status())
	}
}

func keyed(key, value string, tx uint64) sink.Record {
	return sink.Record{
		Topic: Topic, Partition: sink.ByKey, Key: []byte(key), Value: []byte(value),
		Time: time.UnixMilli(1_700_000_000_123), Tag: sink.Tag{Tx: uint32(tx)},
	}
}

func orderPerKey(t *testing.T, h *harness) {
	const keys, each = 40, 50
	stop := h.run(t)
	for i := range each {
		for k := range keys {
			h.submit(t, keyed(fmt.Sprint("key-", k), fmt.Sprint(i), uint64(i)))
		}
	}
	h.wait(t, keys*each)
	stop()
	next := make(map[string]int)
	for _, r := range h.read(t) {
		key := string(r.Key)
		if got, want := string(r.Value), fmt.Sprint(next[key]); got != want {
			t.Fatalf("%s: value %s, want %s", key, got, want)
		}
		next[key]++
	}
	for k := range keys {
		if key := fmt.Sprint("key-", k); next[key] != each {
			t.Errorf("%s: %d records arrived, want %d", key, next[key], each)
		}
	}
}

func oneAckPerRecord(t *testing.T, h *harness) {
	stop := h.run(t)
	want := make(map[uint64]int)
	total := 0
	for tx := uint64(1); tx <= 60; tx++ {
		for i := range int(tx) {
			h.submit(t, keyed(fmt.Sprint(i), "v", tx))
			want[tx]++
			total++
		}
	}
	h.wait(t, total)
	stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	if diff := cmp.Diff(want, h.byTx); diff != "" {
		t.Errorf("acks per transaction (-want +got):\n%s", diff)
	}
}

func submitCopies(t *testing.T, h *harness) {
	const n = 300
	r := keyed("same", "", 1)
	r.Value = make([]byte, 4)
	r.Headers = []sink.Header{{Name: "id", Value: make([]byte, 4)}}
	for i := range n { // before Run: nothing has left when the slices change
		text := fmt.Appendf(nil, "%04d", i)
		copy(r.Key, "same")
		copy(r.Value, text)
		copy(r.Headers[0].Value, text)
		r.Headers[0].Name = "id"
		h.submit(t, r)
		copy(r.Key, "XXXX")
		copy(r.Value, "XXXX")
		copy(r.Headers[0].Value, "XXXX")
		r.Headers[0].Name = "XX"
	}
	stop := h.run(t)
	h.wait(t, n)
	stop()
	got := h.read(t)
	if len(got) != n {
		t.Fatalf("%d records arrived, want %d", len(got), n)
	}
	for i, r := range got {
		want := fmt.Sprintf("%04d", i)
		if string(r.Key) != "same" || string(r.Value) != want || len(r.Headers) != 1 ||
			r.Headers[0].Name != "id" || string(r.Headers[0].Value) != want {
			t.Fatalf("record %d is %q %q %q, want what was submitted", i, r.Key, r.Value, r.Headers)
		}
	}
}

func nilAndEmpty(t *testing.T, h *harness) {
	at := time.UnixMilli(1_700_000_000_123)
	record := func(key, value []byte, headers ...sink.Header) sink.Record {
		return sink.Record{Topic: Topic, Partition: 0, Key: key, Value: value, Headers: headers, Time: at}
	}
	want := []sink.Record{
		record(nil, nil),
		record([]byte{}, []byte{}),
		record(nil, []byte{}),
		record([]byte{}, nil),
		record([]byte("k"), []byte("v"), sink.Header{Name: "null"}, sink.Header{Name: "empty", Value: []byte{}}),
		record([]byte{0xff, 0x00}, []byte{0x80}, sink.Header{Name: "", Value: []byte{0xfe}}, sink.Header{Name: "a"}, sink.Header{Name: "a"}),
		record([]byte("ключ"), []byte("{\"a\":\"<&>\u2028\"}\n")),
	}
	stop := h.run(t)
	for _, r := range want {
		h.submit(t, r)
	}
	h.wait(t, len(want))
	stop()
	got := h.read(t)
	for i := range got {
		got[i].Time = got[i].Time.Local()
		got[i].Partition = 0
	}
	// cmp tells nil and empty slices apart, except for a record without headers.
	for _, list := range [][]sink.Record{got, want} {
		for i := range list {
			if len(list[i].Headers) == 0 {
				list[i].Headers = nil
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func fixedPartition(t *testing.T, h *harness) {
	stop := h.run(t)
	for i := range 20 {
		r := keyed("k", fmt.Sprintf("%02d", i), 1)
		if i%2 == 1 {
			r.Key, r.Partition = []byte("fixed"), 0
		}
		h.submit(t, r)
	}
	h.wait(t, 20)
	stop()
	var fixed, byKey []string
	for _, r := range h.read(t) {
		if string(r.Key) == "fixed" {
			fixed = append(fixed, string(r.Value))
			if r.Partition != 0 {
				t.Errorf("value %s in partition %d, want 0", r.Value, r.Partition)
			}
		} else {
			byKey = append(byKey, string(r.Value))
		}
	}
	if len(fixed) != 10 || len(byKey) != 10 || !slices.IsSorted(fixed) || !slices.IsSorted(byKey) {
		t.Errorf("fixed %v, by key %v: want ten of each in order", fixed, byKey)
	}
}

// fill submits records of 8 KiB until Submit fails or Capacity is passed.
func (h *harness) fill(ctx context.Context) (n int, err error) {
	value := string(make([]byte, 8<<10))
	for n*len(value) < Capacity {
		r := keyed("k", value, 1)
		if err := h.sink.Submit(ctx, &r); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func submitBlocks(t *testing.T, h *harness) {
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := h.fill(h.ctx)
		done <- result{n, err}
	}()
	// Nothing is delivered yet, so this ends only after Run has begun.
	select {
	case r := <-done:
		t.Fatalf("Submit took %d records without Run: %v", r.n, r.err)
	default:
	}
	stop := h.run(t)
	r := <-done
	if r.err != nil {
		t.Fatalf("Submit() = %v", r.err)
	}
	h.wait(t, r.n)
	stop()
	if s := h.sink.Status(); s.InFlightRecords != 0 || s.InFlightBytes != 0 {
		t.Errorf("%d records and %d bytes in flight after the last ack", s.InFlightRecords, s.InFlightBytes)
	}
}

func submitEndsWithContext(t *testing.T, h *harness) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(h.ctx)
	done := make(chan error, 1)
	go func() {
		_, err := h.fill(ctx)
		done <- err
	}()
	cancel(cause)
	if err := <-done; !errors.Is(err, cause) && !errors.Is(err, context.Canceled) {
		t.Errorf("Submit() = %v while nothing is delivered, want the context's error", err)
	}
}

func runEnds(t *testing.T, h *harness) {
	stop := h.run(t)
	for i := range 500 {
		h.submit(t, keyed(fmt.Sprint(i), "v", 1))
	}
	h.wait(t, 1)
	stop()
	h.mu.Lock()
	before := h.total
	h.mu.Unlock()
	ctx, cancel := context.WithCancel(h.ctx)
	cancel()
	_, _ = h.fill(ctx) // nobody delivers any more
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.late != 0 || h.total != before {
		t.Errorf("%d acks after Run had returned", h.total-before)
	}
}

func statusAtAnyTime(t *testing.T, h *harness) {
	stop := h.run(t)
	const n = 2000
	ctx, cancel := context.WithCancel(h.ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		var last uint64
		for ctx.Err() == nil {
			s := h.sink.Status()
			if s.Records < last || s.InFlightRecords < 0 || s.InFlightBytes < 0 {
				t.Errorf("status went backwards: %+v after %d records", s, last)
				return
			}
			last = s.Records
		}
	})
	for i := range n {
		h.submit(t, keyed(fmt.Sprint(i%7), "v", uint64(i)))
	}
	h.wait(t, n)
	cancel()
	watch.Wait()
	stop()
	s := h.sink.Status()
	if s.Records != n || s.InFlightRecords != 0 || s.InFlightPartitions != 0 || s.LastAck.IsZero() || s.HoldCount != 0 {
		t.Errorf("status at the end: %+v, want %d records and nothing in flight", s, n)
	}
}
