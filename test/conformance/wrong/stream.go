package main

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/decoder"
)

// statusInterval is how often a status goes out unasked.
const statusInterval = 200 * time.Millisecond

func (r *relay) stream(ctx context.Context) error {
	conn, err := pgconn.Connect(ctx, os.Getenv("DATABASE_URL")+"&replication=database")
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = pglogrepl.StartReplication(ctx, conn, os.Getenv("OUTBOX_SLOT"), 0, pglogrepl.StartReplicationOptions{
		PluginArgs: []string{"proto_version '1'", "publication_names '" + os.Getenv("OUTBOX_PUBLICATION") + "'"},
	})
	if err != nil {
		return err
	}
	// Reading has no deadline, which would also be the writer's; it ends with the
	// connection.
	defer context.AfterFunc(ctx, func() { _ = conn.Conn().Close() })()
	out := &status{tracker: &r.tracker, conn: conn, answers: !r.faults.quiet}
	r.tasks.Go(func() { out.run(ctx) })
	d := decoder.New()
	for {
		message, err := conn.ReceiveMessage(context.WithoutCancel(ctx))
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		switch m := message.(type) {
		case *pgproto3.CopyData:
			if err := r.message(ctx, d, out, m.Data); err != nil {
				return err
			}
		case *pgproto3.ErrorResponse:
			return pgconn.ErrorResponseToPgError(m)
		case *pgproto3.CopyDone, *pgproto3.CommandComplete:
			return errors.New("the server ended the stream")
		}
	}
}

// message takes a keepalive, or a change with its header of 25 bytes.
func (r *relay) message(ctx context.Context, d *decoder.Decoder, out *status, data []byte) error {
	if data[0] == 'k' {
		walEnd := binary.BigEndian.Uint64(data[1:])
		if !r.faults.quiet {
			r.tracker.idle(walEnd, r.faults.keepalive)
		}
		return out.send(walEnd)
	}
	start := binary.BigEndian.Uint64(data[1:])
	c, err := d.Decode(pglogrepl.LSN(start), data[25:])
	if err != nil {
		return err
	}
	switch c.Kind {
	case decoder.KindBegin:
		r.tx = r.tracker.begin()
	case decoder.KindInsert:
		r.insert(ctx, c, start+uint64(len(data)-25))
	case decoder.KindCommit:
		r.release()
		confirm := uint64(c.Transaction.EndLSN)
		if r.faults.commitLSN {
			confirm = uint64(c.Transaction.CommitLSN)
		}
		r.tracker.commit(r.tx, confirm)
	}
	return nil
}

// insert sends the event of a row; after is WALStart + len.
func (r *relay) insert(ctx context.Context, c *decoder.Change, after uint64) {
	row := map[string][]byte{}
	for i, column := range c.Relation.Columns {
		row[column.Name] = append([]byte(nil), c.New[i].Data...)
	}
	at := uint64(c.LSN)
	if r.faults.rowLSN && at <= r.skip {
		return
	}
	r.events++
	if r.faults.loses > 0 && r.events%r.faults.loses == 0 {
		return
	}
	tx := r.tx
	done := func() {
		if r.faults.walStart {
			r.tracker.jump(after)
		}
		if r.faults.rowLSN {
			r.save(at)
		}
		r.tracker.ack(tx, r.faults.maxAck)
	}
	message := kafka.Message{
		Topic: "outbox.event." + string(row["aggregatetype"]), Key: row["aggregateid"], Value: row["payload"],
		Headers: []kafka.Header{{Key: "id", Value: row["id"]}},
	}
	send := func() {
		r.tracker.add(tx)
		r.submit(ctx, message, done)
		if r.faults.repeats > 0 && r.events%r.faults.repeats == 0 {
			r.tracker.add(tx)
			r.submit(ctx, message, done)
		}
	}
	if r.faults.phantom && r.events == 1 {
		extra := message
		extra.Headers = []kafka.Header{{Key: "id", Value: []byte("00000000-0000-0000-0000-000000000000")}}
		r.submit(ctx, extra, func() {})
	}
	if r.faults.disorders && r.held == nil {
		r.held = send
		return
	}
	send()
	r.release()
}

// release sends the neighbour that was kept back.
func (r *relay) release() {
	if r.held != nil {
		r.held()
		r.held = nil
	}
}

func (r *relay) readState() {
	if text, err := os.ReadFile(r.state); err == nil {
		r.skip, _ = strconv.ParseUint(string(text), 10, 64) // an empty file is none
	}
}

func (r *relay) save(at uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at > r.saved {
		r.saved = at
		_ = os.WriteFile(r.state, strconv.AppendUint(nil, at, 10), 0o600)
	}
}

// status sends status updates.
type status struct {
	tracker *tracker
	conn    *pgconn.PgConn
	answers bool

	mu    sync.Mutex
	write uint64
}

// run confirms what has come, whether the server asks or not.
func (s *status) run(ctx context.Context) {
	tick := time.NewTicker(statusInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if s.send(0) != nil {
			return // the reader sees it too
		}
	}
}

// send confirms the tracker's position. Where that is below what the server has
// sent, a second update without a flush position follows: a shutdown waits for
// flush, or for write if flush is zero.
func (s *status) send(walEnd uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.tracker.position()
	s.write = max(s.write, walEnd, at)
	var updates []byte
	if at > 0 {
		updates = update(updates, s.write, at)
	}
	if at < s.write && s.answers {
		updates = update(updates, s.write, 0)
	}
	_, err := s.conn.Conn().Write(updates)
	return err
}

func update(to []byte, write, flush uint64) []byte {
	to = append(to, 'd', 0, 0, 0, 38, 'r')
	to = binary.BigEndian.AppendUint64(to, write)
	to = binary.BigEndian.AppendUint64(to, flush)
	to = binary.BigEndian.AppendUint64(to, flush)
	to = binary.BigEndian.AppendUint64(to, uint64(time.Since(epoch).Microseconds()))
	return append(to, 0)
}

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
