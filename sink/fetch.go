package sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/fetch"
)

const (
	fetchMaxBytes = 1 << 20
	fetchMaxWait  = 500 * time.Millisecond
)

// place is a partition that is read, and the broker that leads it; -1 when that has
// to be found out.
type place struct {
	Partition
	leader int32
}

// fetch reads one answer's records at or above from, hands each to each, and
// returns the offset behind them. No record at or above an offset below the end
// means a hole: a transaction marker, or what compaction left. An offset at or
// above the end, which the caller knew to be below it, is a new leader's that does
// not know yet how far its followers are: kafka.OffsetNotAvailable. A record's key
// and value are good until each returns.
func (k *Kafka) fetch(ctx context.Context, p *place, from int64, each func(*kafka.Record) error) (next int64, err error) {
	defer func() {
		if err != nil {
			p.leader = -1 // it may have moved
		}
	}()
	response, err := k.fetchOnce(ctx, p, from)
	if err != nil {
		return 0, err
	}
	if from >= response.HighWatermark {
		return 0, kafka.OffsetNotAvailable
	}
	next = from + 1
	records := response.RecordSet.Records
	if records == nil {
		return next, nil
	}
	for {
		r, err := records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return next, nil
		}
		if err != nil {
			return 0, err
		}
		if r.Offset >= from { // a batch is sent whole
			next = r.Offset + 1
			err = each(r)
		}
		for _, b := range []kafka.Bytes{r.Key, r.Value} {
			if b != nil {
				_ = b.Close()
			}
		}
		if err != nil {
			return 0, err
		}
	}
}

// fetchOnce finds out who leads the partition, if it must, and asks.
func (k *Kafka) fetchOnce(ctx context.Context, p *place, from int64) (*fetch.ResponsePartition, error) {
	if p.leader < 0 {
		cluster, err := k.metadata(ctx, []string{p.Topic})
		if err != nil {
			return nil, err
		}
		if p.leader, err = leaderOf(cluster, p.Partition); err != nil {
			return nil, err
		}
	}
	request := &fetchRequest{
		ReplicaID:    -1, // a client
		MaxWaitTime:  int32(fetchMaxWait.Milliseconds()),
		MinBytes:     1,
		MaxBytes:     fetchMaxBytes,
		SessionID:    -1, // none
		SessionEpoch: -1,
		Topics: []fetch.RequestTopic{{Topic: p.Topic, Partitions: []fetch.RequestPartition{{
			Partition: p.Number, CurrentLeaderEpoch: -1, FetchOffset: from, LogStartOffset: -1, PartitionMaxBytes: fetchMaxBytes,
		}}}},
	}
	request.leader = leader(p.leader)
	answer, err := k.transport.RoundTrip(ctx, k.client.Addr, request)
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	response, ok := answer.(*fetch.Response)
	switch {
	case !ok:
		return nil, fmt.Errorf("fetch: unexpected answer %T", answer)
	case response.ErrorCode != 0:
		return nil, kafka.Error(response.ErrorCode)
	case len(response.Topics) != 1 || len(response.Topics[0].Partitions) != 1:
		return nil, fmt.Errorf("fetch: %w", errNoAnswer)
	}
	partition := &response.Topics[0].Partitions[0]
	if partition.ErrorCode != 0 {
		return nil, kafka.Error(partition.ErrorCode)
	}
	return partition, nil
}
