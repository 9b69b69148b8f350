package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/walpost/walpost/internal/testkit/topic"
)

// copyOf is a further copy of an event.
type copyOf struct {
	event     int
	topic     string
	partition int32
	offset    int64
}

// place is a key in a partition.
type place struct {
	key       int
	partition int32
}

// judge compares PostgreSQL with Kafka. It reads on from where it stopped.
type judge struct {
	bench *bench
	truth *truth
	from  map[string]map[int]int64

	firsts  map[place]int // newest version among first copies
	repeats map[place]int // newest version among the others
	home    map[int]int32 // partition of a key
	arrived int
	checked int // samples that are done with
	early   int // events before that of which the samples were checked

	copies     []copyOf // more than one copy
	misordered []copyOf
	moved      []copyOf // in a second partition
	wrong      []copyOf // with another key or value
	strangers  []string // records that no committed event stands for
	unbacked   []string // confirmed before Kafka had them
	lost       []int
	backwards  int // repeats out of order among themselves

	mu    sync.Mutex
	grows map[string]bool // topics that were given partitions
}

func newJudge(b *bench) *judge {
	return &judge{
		bench: b, truth: newTruth(), from: map[string]map[int]int64{},
		firsts: map[place]int{}, repeats: map[place]int{}, home: map[int]int32{}, grows: map[string]bool{},
	}
}

// grown notes that a topic is given partitions: its keys move.
func (j *judge) grown(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.grows[name] = true
}

func (j *judge) mayMove(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.grows[name]
}

// look reads what is new and finds what is wrong. The writers must rest.
func (j *judge) look(ctx context.Context, thorough bool) error {
	if err := j.truth.read(ctx, j.bench.servers); err != nil {
		return err
	}
	if err := j.truth.compare(ctx, j.bench.servers, thorough); err != nil {
		return err
	}
	for _, t := range aggregateTypes {
		name := topicOf + t
		records, err := topic.ReadFrom(ctx, j.bench.servers.kafka.DirectAddr(), name, j.from[name])
		if err != nil {
			return err
		}
		if j.from[name] == nil {
			j.from[name] = map[int]int64{}
		}
		for i := range records {
			r := &records[i]
			j.from[name][r.Partition] = r.Offset + 1
			j.record(t, r)
		}
	}
	j.missing()
	j.confirmations()
	return nil
}

func (j *judge) missing() {
	j.lost = nil
	for i := range j.truth.events {
		if j.truth.events[i].partition < 0 {
			j.lost = append(j.lost, i)
		}
	}
}

func (j *judge) record(aggregateType string, r *topic.Record) {
	header, _ := r.Header("id")
	id, err := uuid.ParseBytes(header)
	at, ok := j.truth.byID[id]
	if err != nil || !ok {
		j.strangers = append(j.strangers, fmt.Sprintf("%s/%d at %d: event id %q, value %.80q", r.Topic, r.Partition, r.Offset, header, r.Value))
		return
	}
	j.arrived++
	e := &j.truth.events[at]
	key := j.truth.keys[e.key]
	here := copyOf{at, r.Topic, int32(r.Partition), r.Offset}
	if key.kind != aggregateType || key.id != string(r.Key) || hash(r.Value) != e.value {
		j.wrong = append(j.wrong, here)
	}
	spot := place{e.key, int32(r.Partition)}
	if e.partition >= 0 {
		j.copies = append(j.copies, here)
		if len(j.copies) < 1000 {
			j.bench.note("duplicate: %s; %d and %d in %s/%d", j.describe(at), e.offset, r.Offset, r.Topic, r.Partition)
		}
		if e.version <= j.repeats[spot] {
			j.backwards++
		}
		j.repeats[spot] = e.version
		return
	}
	e.partition, e.offset = int32(r.Partition), r.Offset
	if e.version <= j.firsts[spot] {
		j.misordered = append(j.misordered, here)
	}
	j.firsts[spot] = max(e.version, j.firsts[spot])
	if home, ok := j.home[e.key]; ok && home != int32(r.Partition) && !j.mayMove(r.Topic) {
		j.moved = append(j.moved, here)
	}
	j.home[e.key] = int32(r.Partition)
}

// confirmations is I1 and I4: an event below a confirmed position lies below
// where its partition ended afterwards. The first sample that covers an event is
// the strictest for it.
func (j *judge) confirmations() {
	samples := j.bench.sampler.all()
	for ; j.early < len(j.truth.events); j.early++ {
		e := &j.truth.events[j.early]
		n := j.checked + sort.Search(len(samples)-j.checked, func(i int) bool { return samples[j.checked+i].confirmed > e.commit })
		if n == len(samples) {
			return // not covered yet: next time
		}
		j.checked = n // events come in commit order
		s := samples[n]
		ends := s.ends[topicOf+j.truth.keys[e.key].kind]
		if e.partition < 0 || int(e.partition) < len(ends) && ends[e.partition] >= 0 && e.offset >= ends[e.partition] {
			j.unbacked = append(j.unbacked, fmt.Sprintf("%s: at %s the position %X was confirmed, and partition %d ended at %v",
				j.describe(j.early), s.at.UTC().Format("15:04:05.000"), s.confirmed, e.partition, ends))
		}
	}
}

func (j *judge) String() string {
	return fmt.Sprintf("%d events, %d records: %d lost, %d duplicated, %d out of order (%d among repeats), %d in a second partition, %d altered, %d never committed, %d confirmed too early",
		len(j.truth.events), j.arrived, len(j.lost), len(j.copies), len(j.misordered), j.backwards, len(j.moved), len(j.wrong), len(j.strangers), len(j.unbacked))
}

// maxShown of each kind of failure.
const maxShown = 5

// verdict is an error that tells what is wrong.
func (j *judge) verdict() error {
	if len(j.lost)+len(j.copies)+len(j.misordered)+len(j.moved)+len(j.wrong)+len(j.strangers)+len(j.unbacked) == 0 {
		return nil
	}
	var out strings.Builder
	fmt.Fprintln(&out, j)
	for _, kind := range []struct {
		name   string
		copies []copyOf
	}{{"duplicated", j.copies}, {"out of order", j.misordered}, {"in a second partition", j.moved}, {"altered", j.wrong}} {
		for _, c := range sampled(kind.copies) {
			fmt.Fprintf(&out, "%s: %s", kind.name, j.history(c.event))
		}
	}
	for _, i := range sampled(j.lost) {
		fmt.Fprintf(&out, "lost: %s", j.history(i))
	}
	for _, text := range sampled(j.strangers) {
		fmt.Fprintf(&out, "never committed: %s\n", text)
	}
	for _, text := range sampled(j.unbacked) {
		fmt.Fprintf(&out, "confirmed too early: %s\n", text)
	}
	return finding{errors.New(out.String())}
}

// sampled are the first ones, and the last.
func sampled[T any](list []T) []T {
	if len(list) <= maxShown {
		return list
	}
	return append(append([]T{}, list[:maxShown-1]...), list[len(list)-1])
}
