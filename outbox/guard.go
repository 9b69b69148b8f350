package outbox

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// maxTries is how often a message may end the process before it is parked.
const maxTries = 3

// watchLength is how many messages are watched one by one after a process has
// ended in the middle of something: more than a client fetches at once.
const watchLength = 1000

const (
	readStart  = `select start_offset, log_offset, tries from {schema}consumer_starts where consumer = $1 and topic = $2 and partition = $3`
	writeStart = `insert into {schema}consumer_starts as s (consumer, topic, partition, start_offset, log_offset, tries) values ($1, $2, $3, $4, $5, $6)
on conflict (consumer, topic, partition) do update set start_offset = excluded.start_offset, log_offset = excluded.log_offset, tries = excluded.tries, updated_at = now()`
)

// place is a partition.
type place struct {
	topic     string
	partition int32
}

// start is what the guard knows of a partition since this process has it. The
// message that ends a process is among those that were not committed: so it is
// looked for only after a start at the same offset as the one before, or after
// one that ended in a watched message.
type start struct {
	first   int64 // the offset of the first message
	offset  int64 // the last one that was written down
	tries   int   // how often it was begun
	watched int   // how many messages are still watched
}

// entry is a message under watch.
type entry struct {
	watched bool // it is written down as begun
	suspect bool // its neighbours are watched too
	ended   int  // how often the process ended in it, if it is to be parked
}

// suspect says whether the messages have to go one by one.
func (c *Consumer) suspect(ms []Message) bool {
	if !c.opt.CrashGuard {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.starts[place{ms[0].Topic, ms[0].Partition}]
	return s != nil && s.watched > 0
}

// enter writes down that a watched message is begun, before it is. In the steady
// state it costs nothing.
func (c *Consumer) enter(ctx context.Context, m *Message) (entry, error) {
	if !c.opt.CrashGuard || m.Topic == "" {
		return entry{}, nil
	}
	c.mu.Lock()
	known := c.starts[place{m.Topic, m.Partition}] != nil
	c.mu.Unlock()
	if !known {
		if err := c.begin(ctx, m); err != nil {
			return entry{}, err
		}
	}
	c.mu.Lock()
	s := c.starts[place{m.Topic, m.Partition}]
	e := entry{watched: true, suspect: s.watched > 0}
	switch {
	case known && !e.suspect:
		e = entry{}
	case m.Offset < s.offset:
		// It was survived before; what is written down is still to come.
		e.watched = false
	case m.Offset == s.offset && s.tries >= maxTries:
		e.ended = s.tries
	case m.Offset == s.offset:
		s.tries++
	default:
		s.offset, s.tries = m.Offset, 1
	}
	s.watched = max(s.watched-1, 0)
	now := *s
	c.mu.Unlock()
	if !e.watched || e.ended > 0 {
		return e, nil
	}
	return e, c.write(ctx, m, now)
}

// begin finds out how the start before ended.
func (c *Consumer) begin(ctx context.Context, m *Message) error {
	s := &start{first: m.Offset, offset: -1}
	var first, offset int64
	var tries int
	err := c.row(ctx, readStart, c.opt.Name, m.Topic, m.Partition).Scan(&first, &offset, &tries)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return missing("look for an earlier start", err)
	}
	if err == nil && m.Offset <= offset && (first == m.Offset || tries > 0) {
		s.offset, s.tries, s.watched = offset, tries, watchLength
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starts[place{m.Topic, m.Partition}] = s
	return nil
}

// leave writes down that a message has not ended the process: it is done, or it
// comes again as if it were the first time.
func (c *Consumer) leave(ctx context.Context, m *Message, e entry, done bool) error {
	if !e.watched {
		return nil
	}
	c.mu.Lock()
	s := c.starts[place{m.Topic, m.Partition}]
	if s.tries--; done || s.tries < 0 {
		s.tries = 0
	}
	now := *s
	c.mu.Unlock()
	return c.write(context.WithoutCancel(ctx), m, now)
}

func (c *Consumer) write(ctx context.Context, m *Message, s start) error {
	return c.inTx(ctx, "write down a start", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, c.sql.fill(writeStart), c.opt.Name, m.Topic, m.Partition, s.first, s.offset, s.tries)
		return err
	})
}

// inTx runs f in a transaction of its own.
func (c *Consumer) inTx(ctx context.Context, doing string, f func(pgx.Tx) error) error {
	tx, err := c.db.Begin(ctx)
	if err == nil {
		defer rollback(ctx, tx)
		if err = f(tx); err == nil {
			err = tx.Commit(ctx)
		}
	}
	if err != nil {
		return missing(doing, err)
	}
	return nil
}

type scanner func(dest ...any) error

// Scan implements pgx.Row.
func (s scanner) Scan(dest ...any) error { return s(dest...) }

// row is one row, read in a transaction of its own.
func (c *Consumer) row(ctx context.Context, sql string, args ...any) pgx.Row {
	return scanner(func(dest ...any) error {
		tx, err := c.db.Begin(ctx)
		if err != nil {
			return err
		}
		defer rollback(ctx, tx)
		return tx.QueryRow(ctx, c.sql.fill(sql), args...).Scan(dest...)
	})
}
