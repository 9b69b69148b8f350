package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/failpoint"
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
// are those of an older release, or the role has no right on them. The relay
// works without.
var ErrNoStore = errors.New("no checkpoint table")

// ErrSucceeded says that another relay has claimed the checkpoint since: nothing
// was written.
var ErrSucceeded = errors.New("the checkpoint belongs to another relay")

// Statements make the tables; Upgrade gives those of an older release what has
// come since.
func Statements() []string { return []string{createHeader, createOffsets} }

// Upgrade may be run any number of times.
func Upgrade() []string { return []string{addOwner} }

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
  updated_at        timestamptz not null default now(),
  owner             text not null default '',
  epoch             bigint not null default 0
) with (fillfactor = 50)`

const addOwner = `alter table walpost.checkpoint
  add column if not exists owner text not null default '',
  add column if not exists epoch bigint not null default 0`

const createOffsets = `create table walpost.checkpoint_offset (
  slot         text not null,
  topic        text not null,
  partition    integer not null,
  log_offset   bigint not null,
  primary key (slot, topic, partition)
) with (fillfactor = 50)`

const loadHeader = `select system_identifier, timeline, lsn::text, kafka_cluster from walpost.checkpoint where slot = $1`

const loadOffsets = `select topic, partition, log_offset from walpost.checkpoint_offset where slot = $1`

// claim waits for a save that is under way, and every save that comes later finds
// another epoch than its own.
const claim = `
insert into walpost.checkpoint (slot, system_identifier, timeline, lsn, kafka_cluster, owner, epoch) values ($1, $2, $3, '0/0', $4, $5, 1)
on conflict (slot) do update set owner = excluded.owner, epoch = checkpoint.epoch + 1
returning epoch`

// save is one statement, so that a relay that is frozen in the middle of it
// holds no lock that its successor would wait for. Where the epoch is not ours
// any more, also when the statement had to wait to see that, mine is empty and
// nothing is written.
const save = `
with mine as (
  update walpost.checkpoint set system_identifier = $3, timeline = $4, kafka_cluster = $6, updated_at = now(),
    lsn = case when $7::boolean then $5::pg_lsn else greatest(lsn, $5::pg_lsn) end
   where slot = $1 and epoch = $2
  returning slot),
given as (select * from unnest($8::text[], $9::integer[], $10::bigint[]) as g (topic, partition, log_offset)),
forgotten as (
  delete from walpost.checkpoint_offset o using mine
   where $7::boolean and o.slot = mine.slot
     and not exists (select from given g where g.topic = o.topic and g.partition = o.partition)),
kept as (
  insert into walpost.checkpoint_offset (slot, topic, partition, log_offset)
  select mine.slot, g.topic, g.partition, g.log_offset from mine, given g
  on conflict (slot, topic, partition) do update set log_offset = excluded.log_offset
   where $7::boolean or checkpoint_offset.log_offset < excluded.log_offset)
select count(*) from mine`

// prepare undoes what a role or a database may have set.
const prepare = "set synchronous_commit = on; set default_transaction_read_only = off"

const whose = `select owner, epoch from walpost.checkpoint where slot = $1`

// Store keeps the checkpoint of one slot in the database that the slot belongs
// to: it is backed up, restored and crashes together with the WAL that it speaks
// of. It opens its connection when it is needed. Methods are safe for concurrent
// use and wait for each other.
type Store struct {
	config      *pgx.ConnConfig
	slot        string
	application string

	mu    sync.Mutex
	conn  *pgx.Conn
	epoch int64 // 0: nothing is claimed
}

// NewStore makes a store; it connects to nothing yet.
func NewStore(config *pgx.ConnConfig, slot, application string) *Store {
	return &Store{config: config, slot: slot, application: application}
}

// Load reads the checkpoint. It is nil when there is none yet.
func (s *Store) Load(ctx context.Context) (c *Checkpoint, err error) {
	err = s.do(ctx, "load checkpoint", func(conn *pgx.Conn) error {
		c, err = s.load(ctx, conn)
		return err
	})
	return c, err
}

// Claim takes the checkpoint over and reads it: from here on nobody can save who
// has claimed it before. of names the history and the Kafka cluster of a
// checkpoint that does not exist yet, owner whoever claims it, for people to see.
func (s *Store) Claim(ctx context.Context, of Checkpoint, owner string) (c *Checkpoint, err error) {
	err = s.do(ctx, "claim checkpoint", func(conn *pgx.Conn) error {
		if err := failpoint.Fail("checkpoint.before-claim"); err != nil {
			return err
		}
		if err := conn.QueryRow(ctx, claim, s.slot, of.SystemID, of.Timeline, of.KafkaCluster, owner).Scan(&s.epoch); err != nil {
			return err
		}
		if err := failpoint.Fail("checkpoint.after-claim"); err != nil {
			return err
		}
		// In a snapshot of its own, behind the claim: it must see what was saved
		// while the claim waited.
		c, err = s.load(ctx, conn)
		return err
	})
	return c, err
}

func (s *Store) load(ctx context.Context, conn *pgx.Conn) (*Checkpoint, error) {
	c := &Checkpoint{Offsets: map[Partition]int64{}}
	var lsn string
	err := conn.QueryRow(ctx, loadHeader, s.slot).Scan(&c.SystemID, &c.Timeline, &lsn, &c.KafkaCluster)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if c.LSN, err = pglogrepl.ParseLSN(lsn); err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, loadOffsets, s.slot)
	if err != nil {
		return nil, err
	}
	var p Partition
	var offset int64
	if _, err = pgx.ForEachRow(rows, []any{&p.Topic, &p.Number, &offset}, func() error {
		c.Offsets[p] = offset
		return nil
	}); err != nil {
		return nil, err
	}
	return c, nil
}

// Save writes position and history of c, and the offsets that changed; c's other
// offsets stay. It is durable when Save returns. Neither the position nor an
// offset goes back, except that fresh forgets all that was there before.
//
// After another Store has claimed the checkpoint it writes nothing and returns
// ErrSucceeded: an instance that was frozen, and does not know yet that it has a
// successor, must not make a partition known that the successor has not looked
// at.
func (s *Store) Save(ctx context.Context, c Checkpoint, fresh bool) error {
	topics := make([]string, 0, len(c.Offsets))
	numbers := make([]int32, 0, len(c.Offsets))
	offsets := make([]int64, 0, len(c.Offsets))
	for p, offset := range c.Offsets {
		topics, numbers, offsets = append(topics, p.Topic), append(numbers, p.Number), append(offsets, offset)
	}
	return s.do(ctx, "save checkpoint", func(conn *pgx.Conn) error {
		if err := failpoint.Fail("checkpoint.before-save"); err != nil {
			return err
		}
		var mine int
		err := conn.QueryRow(ctx, save, s.slot, s.epoch, c.SystemID, c.Timeline, c.LSN.String(), c.KafkaCluster, fresh,
			topics, numbers, offsets).Scan(&mine)
		if err == nil && mine == 1 {
			return failpoint.Fail("checkpoint.after-save")
		}
		if err != nil {
			return err
		}
		var owner string
		var epoch int64
		switch err := conn.QueryRow(ctx, whose, s.slot).Scan(&owner, &epoch); {
		case errors.Is(err, pgx.ErrNoRows):
			return fmt.Errorf("%w: its row is gone", ErrSucceeded)
		case err != nil:
			return err
		}
		return fmt.Errorf("%w: %s has claimed it as number %d, after our %d", ErrSucceeded, owner, epoch, s.epoch)
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

// do runs f with the connection, on which every statement is a transaction that
// is durable when it has ended.
func (s *Store) do(ctx context.Context, doing string, f func(*pgx.Conn) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.connect(ctx)
	if err != nil {
		return err
	}
	if err = f(s.conn); err == nil {
		return nil
	}
	if errors.Is(err, ErrSucceeded) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	switch pg.SQLState(err) {
	case "42P01", "3F000", "42501", "42703", "25006": // no table, no schema, no right, no column, a standby
		return fmt.Errorf("%s: %w: %w", doing, ErrNoStore, pg.Describe(err))
	}
	s.close(context.WithoutCancel(ctx))
	return fmt.Errorf("%s: %w", doing, pg.Describe(err))
}

func (s *Store) connect(ctx context.Context) error {
	if s.conn != nil && !s.conn.IsClosed() {
		return nil
	}
	conn, err := pg.Connect(ctx, s.config, s.application)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, prepare); err != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return fmt.Errorf("prepare the checkpoint's connection: %w", pg.Describe(err))
	}
	s.conn = conn
	return nil
}
