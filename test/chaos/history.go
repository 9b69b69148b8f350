package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"
)

// describe names an event.
func (j *judge) describe(i int) string {
	e := &j.truth.events[i]
	key := j.truth.keys[e.key]
	return fmt.Sprintf("event %s, %s %s version %d, commit %s ordinal %d", e.id, key.kind, key.id, e.version, pglogrepl.LSN(e.commit), e.ordinal)
}

// history tells what is known of an event: when it was committed, where its
// copies are, who wrote them, and what was going on.
func (j *judge) history(i int) string {
	e := &j.truth.events[i]
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", j.describe(i))
	if r := j.bench.committedIn(e.commit); r != nil {
		j.bench.suspect(*r)
		fmt.Fprintf(&out, "    committed in %s (%s to %s)\n", r, clock(r.began), clock(r.ended))
	}
	name := topicOf + j.truth.keys[e.key].kind
	places := []copyOf{}
	if e.partition >= 0 {
		places = append(places, copyOf{i, name, e.partition, e.offset})
	}
	for _, c := range j.copies {
		if c.event == i {
			places = append(places, c)
		}
	}
	for _, c := range places {
		fmt.Fprintf(&out, "    copy in %s/%d at %d: %s; %s\n", c.topic, c.partition, c.offset, j.writtenIn(c), j.producer(c))
	}
	return out.String()
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// left notes what a relay that has ended left for its successor.
func (b *bench) left(ctx context.Context, name string) {
	var text string
	err := b.servers.once(ctx, func(db *pgx.Conn) error {
		return db.QueryRow(ctx, `select format('slot at %s, checkpoint at %s of %s, offsets %s', s.confirmed_flush_lsn, c.lsn, c.updated_at,
			(select string_agg(format('%s/%s %s', topic, partition, log_offset), ', ' order by topic, partition) from walpost.checkpoint_offset))
			from pg_replication_slots s left join walpost.checkpoint c on c.slot = s.slot_name where s.slot_name = $1`, slotName).Scan(&text)
	})
	if err != nil {
		text = err.Error()
	}
	b.note("%s left: %s", name, text)
}

// committedIn is the round in which a commit came.
func (b *bench) committedIn(commit uint64) *round {
	for i := len(b.rounds) - 1; i >= 0; i-- {
		if b.rounds[i].lsn <= commit {
			return &b.rounds[i]
		}
	}
	return nil
}

// writtenIn says between which samples a record came.
func (j *judge) writtenIn(c copyOf) string {
	var from, to time.Time
	for _, s := range j.bench.sampler.all() {
		ends := s.ends[c.topic]
		if int(c.partition) >= len(ends) || ends[c.partition] < 0 {
			continue
		}
		if ends[c.partition] > c.offset {
			to = s.at
			break
		}
		from = s.at
	}
	text := fmt.Sprintf("written between %s and %s", clock(from), clock(to))
	for _, r := range j.bench.rounds {
		if !to.IsZero() && r.began.Before(to) && (r.ended.IsZero() || r.ended.After(from)) {
			text += ", " + r.String()
			j.bench.suspect(r)
		}
	}
	return text
}

// producer says who wrote the batch of a record.
func (j *judge) producer(c copyOf) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(ctx, kafka.TCP(j.bench.servers.kafka.DirectAddr()...), &fetch.Request{
		ReplicaID: -1, MaxWaitTime: 500, MinBytes: 1, MaxBytes: 1 << 20, SessionEpoch: -1,
		Topics: []fetch.RequestTopic{{Topic: c.topic, Partitions: []fetch.RequestPartition{{
			Partition: c.partition, CurrentLeaderEpoch: -1, FetchOffset: c.offset, PartitionMaxBytes: 1 << 20,
		}}}},
	})
	if err != nil {
		return err.Error()
	}
	answer, ok := response.(*fetch.Response)
	if !ok || len(answer.Topics) == 0 || len(answer.Topics[0].Partitions) == 0 {
		return "no answer"
	}
	records := answer.Topics[0].Partitions[0].RecordSet.Records
	if stream, ok := records.(*protocol.RecordStream); ok && len(stream.Records) > 0 {
		records = stream.Records[0]
	}
	batch, ok := records.(*protocol.RecordBatch)
	if !ok {
		return fmt.Sprintf("no batch but %T", records)
	}
	n := 0
	for {
		if _, err := batch.ReadRecord(); err != nil {
			if !errors.Is(err, io.EOF) {
				return err.Error()
			}
			break
		}
		n++
	}
	return fmt.Sprintf("producer %d epoch %d, batch from offset %d of %d records, sequence %d",
		batch.ProducerID, batch.ProducerEpoch, batch.BaseOffset, n, batch.BaseSequence)
}
