package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walpost/walpost/internal/testkit/topic"
)

// The two ways to a long tail.
const (
	// Nothing of a transaction is confirmed before its end: the next relay has to
	// read what was delivered of it, and gets all of it again from PostgreSQL.
	inTransaction = "in a transaction"
	// The checkpoint is behind and the slot is not: much is to be read, and next to
	// nothing comes again.
	behindCheckpoint = "small transactions"
)

// restart kills a relay with a long tail behind it, and starts the next one. That
// has to fence, and to read the tail, before it can send anything new.
func (c *crashRig) restart(ctx context.Context, kind string, n int) (Restart, error) {
	s := Restart{Kind: kind, Partitions: crashPartitions}
	name := fmt.Sprintf("on_start_%d", n)
	topicName, err := c.prepare(ctx, name, crashPartitions)
	if err != nil {
		return s, err
	}
	perTx := rowsPerTx
	if kind == inTransaction {
		perTx = crashRows
	}
	if _, err := c.fill(ctx, crashRows, perTx); err != nil {
		return s, err
	}
	w, err := c.relay(ctx, "on", name)
	if err != nil {
		return s, err
	}
	defer w.close()
	from, release := int64(0), func() {}
	if kind == behindCheckpoint {
		release, err = c.holdCheckpoint(ctx, w, name, &from)
		if err != nil {
			return s, err
		}
	}
	defer release()
	if _, err := c.offsets.await(ctx, topicName, from+crashTail, w.child, 2*time.Millisecond); err != nil {
		return s, err
	}
	if err := w.Signal(syscall.SIGKILL); err != nil {
		return s, err
	}
	<-w.Done()
	if err := c.free(ctx, "crash_"+name); err != nil {
		return s, err
	}
	release()
	next, err := c.relay(ctx, "on", name)
	if err != nil {
		return s, err
	}
	defer next.close()
	// The fence leaves a marker in each partition.
	if _, err := c.offsets.await(ctx, topicName, crashRows+crashPartitions, next.child, 10*time.Millisecond); err != nil {
		return s, err
	}
	if err := next.stop(ctx); err != nil {
		return s, err
	}
	if err := c.compare(ctx, topicName, next.start, &s); err != nil {
		return s, err
	}
	s.Tail -= int(from)
	return s, errors.Join(c.dropSlots(ctx, "crash_"+name), topic.Delete(ctx, c.cluster.Addr(), topicName))
}

// compare reads what both relays have written. Which of them wrote a record is
// told by its epoch: what the first one had sent can arrive after its end.
func (c *crashRig) compare(ctx context.Context, topicName string, started time.Time, s *Restart) error {
	ids := make(map[string]bool, crashRows)
	records := map[int16]int{}
	firsts := map[int16]time.Time{}
	err := c.read(ctx, topicName, func(r *kgo.Record) {
		for _, h := range r.Headers {
			if h.Key == "id" {
				ids[string(h.Value)] = true
			}
		}
		e := r.ProducerEpoch
		if records[e]++; records[e] == 1 || r.Timestamp.Before(firsts[e]) {
			firsts[e] = r.Timestamp
		}
	})
	switch {
	case err != nil:
		return err
	case len(ids) != crashRows:
		return fmt.Errorf("%d different events arrived, want %d", len(ids), crashRows)
	case len(records) != 2:
		return fmt.Errorf("records of %d relays, want those of two: the backlog was over before the kill", len(records))
	}
	var older, newer int16 = -1, -1
	for e := range records {
		older, newer = newer, e
	}
	if older > newer {
		older, newer = newer, older
	}
	s.Tail = records[older]
	s.Duplicates = records[older] + records[newer] - len(ids)
	s.Seconds = firsts[newer].Sub(started).Seconds()
	return nil
}

// holdCheckpoint keeps a relay from moving its checkpoint on, once it has one,
// and tells how many records lie below that. Whoever calls release lets the
// successor have it.
func (c *crashRig) holdCheckpoint(ctx context.Context, w *walpost, name string, below *int64) (release func(), err error) {
	conn, err := pgx.Connect(ctx, c.pg.DSN(database))
	if err != nil {
		return nil, err
	}
	release = func() { _ = conn.Close(context.WithoutCancel(ctx)) }
	defer func() {
		if err != nil {
			release()
		}
	}()
	const covered = `select count(*), coalesce(sum(log_offset), 0) from walpost.checkpoint_offset where slot = $1`
	var width int
	err = poll(ctx, 2*time.Millisecond, patience, "a checkpoint", func() (bool, error) {
		if err := conn.QueryRow(ctx, covered, "crash_"+name).Scan(&width, below); err != nil {
			return false, err
		}
		return width == crashPartitions, w.ended()
	})
	if err != nil {
		return release, err
	}
	if _, err = conn.Exec(ctx, "begin"); err != nil {
		return release, err
	}
	if _, err = conn.Exec(ctx, "lock table walpost.checkpoint in exclusive mode"); err != nil {
		return release, err
	}
	err = conn.QueryRow(ctx, covered, "crash_"+name).Scan(&width, below)
	return release, err
}

// free waits until nobody holds a slot: an orchestrator takes longer for a new
// container than the walsender takes to find that nobody listens. A save that
// hangs in the server must not succeed after its relay's death.
func (c *crashRig) free(ctx context.Context, slotName string) error {
	const end = `select pg_terminate_backend(pid) from pg_stat_activity where usename = $1`
	if _, err := c.sql.Exec(ctx, end, role("on")); err != nil {
		return err
	}
	return poll(ctx, 2*time.Millisecond, 20*time.Second, "the slot to be free", func() (free bool, err error) {
		err = c.sql.QueryRow(ctx, "select not active from pg_replication_slots where slot_name = $1", slotName).Scan(&free)
		return free, err
	})
}
