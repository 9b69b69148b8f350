package outbox

import (
	"context"
	"iter"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const rowSecurity = `select row_security_active(to_regclass($1))`

// Copy streams many events with COPY, in order, and gives how many. It falls
// back to INSERT where COPY is refused because row security is active. Events
// are validated on the way, so all of it stands behind a savepoint: after an
// error none of them is there, and tx is usable unless it is broken itself.
func (w *Writer) Copy(ctx context.Context, tx pgx.Tx, events iter.Seq[*Event]) (int64, error) {
	if tx == nil {
		return 0, noTransaction("nil")
	}
	inner, err := tx.Begin(ctx)
	if err != nil {
		return 0, w.failed(0, err)
	}
	defer rollback(ctx, inner)
	var secured *bool
	if err := inner.QueryRow(ctx, rowSecurity, w.table.Sanitize()).Scan(&secured); err != nil {
		return 0, w.failed(0, err)
	}
	write := w.copyFrom
	if secured != nil && *secured {
		write = w.insertFrom
	}
	n, err := write(ctx, inner, events)
	if err != nil {
		return 0, err
	}
	if err := inner.Commit(ctx); err != nil {
		return 0, w.failed(int(n), err)
	}
	return n, nil
}

func (w *Writer) copyFrom(ctx context.Context, tx pgx.Tx, events iter.Seq[*Event]) (int64, error) {
	next, stop := iter.Pull(events)
	defer stop()
	s := &source{writer: w, ctx: ctx, next: next}
	n, err := tx.CopyFrom(ctx, w.table, columns, s)
	if s.err != nil {
		return 0, s.err // not as the driver quotes it
	}
	if err != nil {
		return 0, w.failed(s.index, err)
	}
	return n, nil
}

// source gives COPY its rows. Ids are not compared: the server does that.
type source struct {
	writer *Writer
	ctx    context.Context // of the one call that the source lives for
	next   func() (*Event, bool)
	index  int
	row    row
	err    error
}

// Next implements pgx.CopyFromSource.
func (s *source) Next() bool {
	e, more := s.next()
	if !more || s.err != nil {
		return false
	}
	s.row, s.err = s.writer.row(s.ctx, s.index, e)
	s.index++
	return s.err == nil
}

// Values implements pgx.CopyFromSource.
func (s *source) Values() ([]any, error) {
	r := &s.row
	var payload any = string(r.payload)
	if s.writer.opt.Payload == "bytea" {
		payload = r.payload
	}
	return []any{
		[16]byte(r.id), r.aggregateType, r.aggregateID, r.version, r.eventType, r.schemaVersion,
		payload, r.occurredAt, r.tenant, r.parent, r.state, r.headers,
	}, nil
}

// Err implements pgx.CopyFromSource.
func (s *source) Err() error { return s.err }

func (w *Writer) insertFrom(ctx context.Context, tx pgx.Tx, events iter.Seq[*Event]) (int64, error) {
	var n int64
	var rows []row
	size, index := 0, 0
	seen := map[uuid.UUID]bool{}
	flush := func() error {
		err := w.insertRows(ctx, tx, rows)
		n += int64(len(rows))
		rows, size = rows[:0], 0
		clear(seen)
		return err
	}
	for e := range events {
		r, err := w.row(ctx, index, e)
		if err != nil {
			return 0, err
		}
		if seen[r.id] {
			return 0, e.fault(index)("ID", r.id.String()+" is there twice", "give each event an ID of its own, or leave it zero")
		}
		seen[r.id] = true
		index++
		rows, size = append(rows, r), size+len(r.payload)
		if len(rows) == chunkEvents || size >= chunkBytes {
			if err := flush(); err != nil {
				return 0, err
			}
		}
	}
	if err := flush(); err != nil {
		return 0, err
	}
	return n, nil
}
