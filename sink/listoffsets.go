package sink

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

// Times with a meaning of their own in a ListOffsets request (Kafka protocol,
// "ListOffsets API").
const (
	latest   = -1
	earliest = -2
)

// offset is the answer for one partition.
type offset struct {
	at     int64 // -1: no record is as new as the time asked for
	leader int32 // who has answered
	// err is a kafka.Error when its leader has answered.
	err error
}

// answered says whether the partition's leader has spoken: otherwise nothing is
// known of the partition. -1, an error that the broker has no word for, is as good
// as nothing, and BrokerNotAvailable is the library's own word.
func (o *offset) answered() bool {
	var code kafka.Error
	return o.err == nil || errors.As(o.err, &code) && code != kafka.Unknown && code != kafka.BrokerNotAvailable
}

// listOffsets asks the leaders where in their partitions a time is, in
// milliseconds since 1970, earliest or latest. Each partition has an answer.
func (k *Kafka) listOffsets(ctx context.Context, partitions []Partition, time int64) (map[Partition]offset, error) {
	l, err := k.leaders(ctx, partitions)
	if err != nil {
		return nil, err
	}
	return k.askLeaders(ctx, l, time), nil
}

// listBounds asks where each partition begins and ends. What stands in the way of
// either is the error of its last offset.
func (k *Kafka) listBounds(ctx context.Context, partitions []Partition) (first, last map[Partition]offset, err error) {
	l, err := k.leaders(ctx, partitions)
	if err != nil {
		return nil, nil, err
	}
	first, last = k.askLeaders(ctx, l, earliest), k.askLeaders(ctx, l, latest)
	for p, o := range first {
		if o.err != nil {
			last[p] = o
		}
	}
	return first, last, nil
}

// leaders are the brokers that lead some partitions.
type leaders struct {
	lead map[int32][]Partition
	none map[Partition]offset // what there is to say of partitions without one
}

func (k *Kafka) leaders(ctx context.Context, partitions []Partition) (leaders, error) {
	l := leaders{make(map[int32][]Partition), make(map[Partition]offset)}
	topics := make(map[string][]Partition)
	for _, p := range partitions {
		topics[p.Topic] = append(topics[p.Topic], p)
	}
	for piece := range slices.Chunk(slices.Collect(maps.Keys(topics)), describeAtOnce) {
		cluster, err := k.metadata(ctx, piece)
		if err != nil {
			return leaders{}, err
		}
		for _, name := range piece {
			for _, p := range topics[name] {
				if id, err := leaderOf(cluster, p); err != nil {
					l.none[p] = offset{at: -1, err: err}
				} else {
					l.lead[id] = append(l.lead[id], p)
				}
			}
		}
	}
	return l, nil
}

// askLeaders asks for a time.
//
// A leader gets one request for all its partitions. The client library's own call
// sends one for each partition, all at once and, while none is answered, each on a
// connection of its own: thousands of them at a start.
func (k *Kafka) askLeaders(ctx context.Context, l leaders, time int64) map[Partition]offset {
	answers := maps.Clone(l.none)
	var mu sync.Mutex
	var asking sync.WaitGroup
	for id, list := range l.lead {
		asking.Go(func() {
			for piece := range slices.Chunk(list, maxPartitionsPerRequest) {
				some := k.leaderOffsets(ctx, id, piece, time)
				mu.Lock()
				maps.Copy(answers, some)
				mu.Unlock()
			}
		})
	}
	asking.Wait()
	return answers
}

func leaderOf(cluster *metadata.Response, p Partition) (int32, error) {
	for i := range cluster.Topics {
		t := &cluster.Topics[i]
		switch {
		case t.Name != p.Topic:
			continue
		case t.ErrorCode != 0:
			return -1, kafka.Error(t.ErrorCode)
		}
		for j := range t.Partitions {
			switch id := t.Partitions[j].LeaderID; {
			case t.Partitions[j].PartitionIndex != p.Number:
				continue
			case !hasBroker(cluster.Brokers, id):
				return -1, kafka.LeaderNotAvailable
			default:
				return id, nil
			}
		}
	}
	return -1, kafka.UnknownTopicOrPartition
}

// leaderOffsets asks the one broker that leads the partitions. Where another
// broker leads one of them by now, the answer says so.
func (k *Kafka) leaderOffsets(ctx context.Context, id int32, partitions []Partition, time int64) map[Partition]offset {
	request := &offsetsRequest{ReplicaID: -1} // a client
	request.leader = leader(id)
	index := make(map[string]int)
	answers := make(map[Partition]offset, len(partitions))
	all := func(err error) map[Partition]offset {
		for _, p := range partitions {
			answers[p] = offset{at: -1, leader: id, err: err}
		}
		return answers
	}
	for _, p := range partitions {
		at, ok := index[p.Topic]
		if !ok {
			at = len(request.Topics)
			index[p.Topic] = at
			request.Topics = append(request.Topics, listoffsets.RequestTopic{Topic: p.Topic})
		}
		request.Topics[at].Partitions = append(request.Topics[at].Partitions,
			listoffsets.RequestPartition{Partition: p.Number, CurrentLeaderEpoch: -1, Timestamp: time})
	}
	answer, err := k.transport.RoundTrip(ctx, k.client.Addr, request)
	if err != nil {
		return all(fmt.Errorf("list offsets: %w", err))
	}
	response, ok := answer.(*listoffsets.Response)
	if !ok {
		return all(fmt.Errorf("list offsets: unexpected answer %T", answer))
	}
	all(errNoAnswer)
	for i := range response.Topics {
		t := &response.Topics[i]
		for j := range t.Partitions {
			a := &t.Partitions[j]
			o := offset{at: a.Offset, leader: id}
			if a.ErrorCode != 0 {
				o.err = kafka.Error(a.ErrorCode)
			}
			if p := (Partition{t.Topic, a.Partition}); answers[p].err != nil {
				answers[p] = o
			}
		}
	}
	return answers
}
