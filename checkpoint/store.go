package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/pg"
)

// Partition of a topic.
type Partition struct {
	Topic  string
	Number int32
}

// Checkpoint is what a relay leaves behind for its successor: where in which
// history it was, and for every partition that it may have written an offset
// below which everything belongs under LSN. A partition without an offset was
// never written.
type Checkpoint struct {
	SystemID     string
	Timeline     int32
	LSN          pglogrepl.LSN // the low-water mark
	KafkaCluster string        // offsets mean nothing in another cluster
	Offsets      map[Partition]int64
}

// ErrNoStore says that the checkpoint tables cannot be used: they do not exist,
// or the role has no right on them. The relay works without.
var ErrNoStore = errors.New("no checkpoint table")

// Statements make the tables; Grant gives a role what Store needs.
func Statements() []string { return []string{createHeader, createOffsets} }

// Grants are the rights that the relay's role needs on the tables.
func Grants(role string) []string {
	return []string{
		"grant usage on schema walpost to " + role,
		"grant select, insert, update, delete on walpost.checkpoint, walpost.checkpoint_offset to " + role,
	}
}

const createHeader = `create table walpost.checkpoint (
  slot              text primary key,
  system_identifier text not null,
  timeline          integer not null,
  lsn               pg_lsn not null,
  kafka_cluster     text not null,
  updated_at        timestamptz not null default now()
) with (fillfactor = 50)`

const createOffsets = `create table walpost.checkpoint_offset (
  slot         text not null,
  topic        text not null,
  partition    integer not null,
  log_offset   bigint not null,
  primary key (slot, topic, partition)
) with (fillfactor = 50)`

const loadHeader = `select system_identifier, timeline, lsn::text, kafka_cluster from walpost.checkpoint where slot = $1`

const loadOffsets = `select topic, partition, log_offset from walpost.checkpoint_offset where slot = $1`

const saveHeader = `
insert into walpost.checkpoint (slot, system_identifier, timeline, lsn, kafka_cluster) values ($1, $2, $3, $4::pg_lsn, $5)
on conflict (slot) do update set system_identifier = excluded.system_identifier, timeline = excluded.timeline,
  lsn = greatest(checkpoint.lsn, excluded.lsn), kafka_cluster = excluded.kafka_cluster, updated_at = now()`

const forgetHeader = `delete from walpost.checkpoint where slot = $1`

const saveOffsets = `
insert into walpost.checkpoint_offset (slot, topic, partition, log_offset)
select $1, * from unnest($2::text[], $3::integer[], $4::bigint[])
on conflict (slot, topic, partition) do update set log_offset = excluded.log_offset
 where checkpoint_offset.log_offset < excluded.log_offset`

const forgetOffsets = `delete from walpost.checkpoint_offset where slot = $1`

// Store keeps the checkpoint of one slot in the database that the slot belongs
// to: it is backed up, restored and crashes together with the WAL that it speaks
// of. It opens its connection when it is needed. Methods are safe for concurrent
// use and wait for each other.
type Store struct {
	config      *pgx.ConnConfig
	slot        string
	application string

	mu   sync.Mutex
	conn *pgx.Conn
}

// NewStore makes a store; it connects to nothing yet.
func NewStore(config *pgx.ConnConfig, slot, application string) *Store {
	return &Store{config: config, slot: slot, application: application}
}

// Load reads the checkpoint. It is nil when there is none yet.
func (s *Store) Load(ctx context.Context) (*Checkpoint, error) {
	var c *Checkpoint
	err := s.do(ctx, "load checkpoint", func(tx pgx.Tx) error {
		found := &Checkpoint{Offsets: map[Partition]int64{}}
		var lsn string
		err := tx.QueryRow(ctx, loadHeader, s.slot).Scan(&found.SystemID, &found.Timeline, &lsn, &found.KafkaCluster)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if found.LSN, err = pglogrepl.ParseLSN(lsn); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, loadOffsets, s.slot)
		if err != nil {
			return err
		}
		var p Partition
		var offset int64
		_, err = pgx.ForEachRow(rows, []any{&p.Topic, &p.Number, &offset}, func() error {
			found.Offsets[p] = offset
			return nil
		})
		c = found
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Save writes position and history of c, and the offsets that changed; c's other
// offsets stay. It is durable when Save returns. Neither the position nor an
// offset goes back, except that fresh forgets all that was there before: a
// position behind its offsets would make a successor replay events that lie
// below them, and send them again. An instance that was frozen and does not know
// yet that it is succeeded may save such a position.
func (s *Store) Save(ctx context.Context, c Checkpoint, fresh bool) error {
	return s.do(ctx, "save checkpoint", func(tx pgx.Tx) error {
		if fresh {
			for _, forget := range []string{forgetHeader, forgetOffsets} {
				if _, err := tx.Exec(ctx, forget, s.slot); err != nil {
					return err
				}
			}
		}
		if _, err := tx.Exec(ctx, saveHeader, s.slot, c.SystemID, c.Timeline, c.LSN.String(), c.KafkaCluster); err != nil {
			return err
		}
		if len(c.Offsets) == 0 {
			return nil
		}
		var topics []string
		var numbers []int32
		var offsets []int64
		for p := range maps.Keys(c.Offsets) {
			topics = append(topics, p.Topic)
			numbers = append(numbers, p.Number)
			offsets = append(offsets, c.Offsets[p])
		}
		_, err := tx.Exec(ctx, saveOffsets, s.slot, topics, numbers, offsets)
		return err
	})
}

// Close ends the connection.
func (s *Store) Close(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close(ctx)
}

func (s *Store) close(ctx context.Context) {
	if s.conn != nil {
		_ = s.conn.Close(ctx)
		s.conn = nil
	}
}

// do runs f in a transaction that is durable when it is committed, whatever the
// role's synchronous_commit says.
func (s *Store) do(ctx context.Context, doing string, f func(pgx.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil || s.conn.IsClosed() {
		conn, err := pg.Connect(ctx, s.config, s.application)
		if err != nil {
			return err
		}
		s.conn = conn
	}
	err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local synchronous_commit = on"); err != nil {
			return err
		}
		return f(tx)
	})
	if err == nil {
		return nil
	}
	switch pg.SQLState(err) {
	case "42P01", "3F000", "42501": // no table, no schema, no right
		return fmt.Errorf("%s: %w: %w", doing, ErrNoStore, pg.Describe(err))
	}
	s.close(context.WithoutCancel(ctx))
	return fmt.Errorf("%s: %w", doing, pg.Describe(err))
}
