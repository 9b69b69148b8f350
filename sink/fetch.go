package sink

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	fetchMaxBytes = 1 << 20
	fetchMaxWait  = 500 * time.Millisecond
)

// fetch reads one answer's records at or above from, hands each to each, and
// returns the offset behind them. No record at or above an offset below the end
// means a hole: a transaction marker, or what compaction left. An offset at or
// above the end, which the caller knew to be below it, is a new leader's that does
// not know yet how far its followers are: kafka.OffsetNotAvailable. A record's key
// and value are good until each returns.
func (k *Kafka) fetch(ctx context.Context, p Partition, from int64, each func(*kafka.Record) error) (next int64, err error) {
	response, err := k.client.Fetch(ctx, &kafka.FetchRequest{
		Topic: p.Topic, Partition: int(p.Number), Offset: from, MinBytes: 1, MaxBytes: fetchMaxBytes, MaxWait: fetchMaxWait,
	})
	if err != nil {
		return 0, err
	}
	if response.Error != nil {
		return 0, response.Error
	}
	if from >= response.HighWatermark {
		return 0, kafka.OffsetNotAvailable
	}
	next = from + 1
	for {
		r, err := response.Records.ReadRecord()
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
