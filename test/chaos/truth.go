package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"

	"github.com/google/uuid"
	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/decoder"
)

// event is one that was committed, and where its first copy is in Kafka.
type event struct {
	id        uuid.UUID
	key       int // index into truth.keys
	version   int
	commit    uint64
	ordinal   uint32
	value     uint64 // hash of the payload
	partition int32  // -1: not seen
	offset    int64
}

// truth is what PostgreSQL has committed, in commit order, as the judge's own
// slot tells it.
type truth struct {
	events []event
	byID   map[uuid.UUID]int
	keys   []aggregate
	byKey  map[aggregate]int
	newest []int // newest version by key
	commit uint64
}

func newTruth() *truth {
	return &truth{byID: map[uuid.UUID]int{}, byKey: map[aggregate]int{}}
}

func hash(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b)
	return h.Sum64()
}

// read takes what has been committed since the last time.
func (t *truth) read(ctx context.Context, s *servers) error {
	for {
		n := 0
		d := decoder.New()
		err := s.once(ctx, func(db *pgx.Conn) error {
			rows, err := db.Query(ctx, `select lsn::text, data from pg_logical_slot_get_binary_changes($1, null, 50000,
				'proto_version', '1', 'publication_names', $2)`, judgeSlot, slotName)
			if err != nil {
				return err
			}
			var lsn string
			var data []byte
			_, err = pgx.ForEachRow(rows, []any{&lsn, &data}, func() error {
				n++
				at, err := pglogrepl.ParseLSN(lsn)
				if err != nil {
					return err
				}
				c, err := d.Decode(at, data)
				if err != nil {
					return err
				}
				if c.Kind != decoder.KindInsert || uint64(c.Transaction.CommitLSN) <= t.commit {
					if c.Kind == decoder.KindCommit {
						t.commit = max(t.commit, uint64(c.Transaction.CommitLSN))
					}
					return nil // after a crash the slot gives again what it gave before
				}
				return t.add(c)
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("read the judge's slot: %w", err)
		}
		if n == 0 {
			return nil
		}
	}
}

func (t *truth) add(c *decoder.Change) error {
	e := event{commit: uint64(c.Transaction.CommitLSN), ordinal: c.Ordinal, partition: -1}
	var a aggregate
	for i, column := range c.Relation.Columns {
		data := c.New[i].Data
		switch column.Name {
		case "event_id":
			id, err := uuid.ParseBytes(data)
			if err != nil {
				return fmt.Errorf("event id %q: %w", data, err)
			}
			e.id = id
		case "aggregate_type":
			a.kind = string(data)
		case "aggregate_id":
			a.id = string(data)
		case "payload":
			var p struct{ V int }
			if err := json.Unmarshal(data, &p); err != nil {
				return fmt.Errorf("payload %q: %w", data, err)
			}
			e.version, e.value = p.V, hash(data)
		}
	}
	key, ok := t.byKey[a]
	if !ok {
		key = len(t.keys)
		t.byKey[a] = key
		t.keys = append(t.keys, a)
		t.newest = append(t.newest, 0)
	}
	e.key = key
	// What the judge itself rests on.
	if e.version != t.newest[key]+1 {
		return fmt.Errorf("the bench is broken: version %d of %v comes after %d", e.version, a, t.newest[key])
	}
	t.newest[key] = e.version
	if _, ok := t.byID[e.id]; ok {
		return fmt.Errorf("the bench is broken: event %s was written twice", e.id)
	}
	t.byID[e.id] = len(t.events)
	t.events = append(t.events, e)
	return nil
}

// compare checks the truth against the table: the slot is PostgreSQL's word,
// but the decoder that read it is ours.
func (t *truth) compare(ctx context.Context, s *servers, ids bool) error {
	return s.once(ctx, func(db *pgx.Conn) error {
		var n int
		if err := db.QueryRow(ctx, `select count(*) from public.outbox_events`).Scan(&n); err != nil {
			return err
		}
		if n != len(t.events) {
			return fmt.Errorf("the table has %d events, the judge's slot gave %d", n, len(t.events))
		}
		if !ids {
			return nil
		}
		rows, err := db.Query(ctx, `select event_id from public.outbox_events`)
		if err != nil {
			return err
		}
		var id uuid.UUID
		_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
			if _, ok := t.byID[id]; !ok {
				return fmt.Errorf("event %s is in the table, and the judge's slot did not give it", id)
			}
			return nil
		})
		return err
	})
}
