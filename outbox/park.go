package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// parkAlone parks in a transaction of its own: the one that failed is gone.
func (c *Consumer) parkAlone(ctx context.Context, m *Message, reason Reason, why error, attempts int) error {
	tx, err := c.db.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer rollback(ctx, tx)
	if err := c.park(ctx, tx, m, reason, why, attempts); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// park keeps the message, unless what it is parked for is not so any more:
// errChanged. It waits for whoever is just applying the same event or another one
// of the aggregate, so that no event is parked behind one that has been applied.
func (c *Consumer) park(ctx context.Context, tx pgx.Tx, m *Message, reason Reason, why error, attempts int) error {
	if c.byID(m) {
		var got, none bool
		if err := tx.QueryRow(ctx, c.sql.claimID, c.opt.Name, m.ID.String()).Scan(&got, &none, &none); err != nil {
			return err
		}
		if !got {
			return errChanged
		}
		if _, err := tx.Exec(ctx, c.sql.unclaim, c.opt.Name, m.ID.String()); err != nil {
			return err
		}
	}
	switch {
	case reason == Age:
	case c.versioned(m):
		// The row is what a concurrent claim waits for. It also says where the
		// aggregate stands when this event is the first one seen.
		base := int64(0)
		if c.opt.FirstVersion == FirstAny && reason != Gap {
			base = m.Version - 1
		}
		if _, err := tx.Exec(ctx, c.sql.baseline, c.opt.Name, m.AggregateType, m.AggregateID, base); err != nil {
			return err
		}
		var position int64
		if err := tx.QueryRow(ctx, c.sql.lockPosition, c.opt.Name, m.AggregateType, m.AggregateID).Scan(&position); err != nil {
			return err
		}
		if isNext := position == m.Version-1; position >= m.Version || isNext == (reason == Gap) {
			return errChanged
		}
	case reason == Behind:
		tag, err := tx.Exec(ctx, c.sql.lockHeads, c.opt.Name, m.AggregateType, m.AggregateID, m.ID.String())
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return errChanged
		}
	}
	return c.insertParked(ctx, tx, m, reason, why, attempts)
}

func (c *Consumer) insertParked(ctx context.Context, tx pgx.Tx, m *Message, reason Reason, why error, attempts int) error {
	headers, err := json.Marshal(m.Headers)
	if err != nil {
		return fmt.Errorf("keep the headers of %s: %w", m, err)
	}
	if m.Headers == nil {
		headers = []byte("[]")
	}
	text := ""
	if why != nil {
		text = storable(why.Error())
	}
	var version *int64
	if m.Version > 0 {
		version = &m.Version
	}
	_, err = tx.Exec(ctx, c.sql.park, c.opt.Name, m.ID.String(), m.AggregateType, m.AggregateID, version, m.Type, int32(m.SchemaVersion),
		instant(m.OccurredAt), optional(m.TenantID), optional(m.Traceparent), optional(m.Tracestate),
		m.Topic, m.Partition, m.Offset, instant(m.Time), m.Key, m.Value, string(headers), string(reason), text, int32(attempts))
	return err
}

// storable makes a text of an error that PostgreSQL takes.
func storable(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\ufffd")
	if len(text) > 2000 {
		text = strings.ToValidUTF8(text[:2000], "") + " ..."
	}
	return text
}

// instant makes NULL of no time, and of one that PostgreSQL could not keep.
func instant(t time.Time) *time.Time {
	if t.IsZero() || t.Year() < 1 || t.Year() > 9999 {
		return nil
	}
	return &t
}

// ParkedEvent is one of parked_events.
type ParkedEvent struct {
	Message  Message
	Reason   Reason
	Err      string // of the last attempt
	Attempts int
	ParkedAt time.Time
}

func scanParked(row pgx.CollectableRow) (ParkedEvent, error) {
	var p ParkedEvent
	var id, headers, reason string
	var version *int64
	var occurred, record *time.Time
	var tenant, parent, state *string
	m := &p.Message
	err := row.Scan(&id, &m.AggregateType, &m.AggregateID, &version, &m.Type, &m.SchemaVersion, &occurred, &tenant, &parent, &state,
		&m.Topic, &m.Partition, &m.Offset, &record, &m.Key, &m.Value, &headers, &reason, &p.Err, &p.Attempts, &p.ParkedAt)
	if err != nil {
		return p, err
	}
	p.Reason = Reason(reason)
	if m.ID, err = uuid.Parse(id); err != nil {
		return p, err
	}
	if version != nil {
		m.Version = *version
	}
	for _, t := range []struct {
		from *time.Time
		to   *time.Time
	}{{occurred, &m.OccurredAt}, {record, &m.Time}} {
		if t.from != nil {
			*t.to = t.from.UTC()
		}
	}
	for _, s := range []struct{ from, to *string }{{tenant, &m.TenantID}, {parent, &m.Traceparent}, {state, &m.Tracestate}} {
		if s.from != nil {
			*s.to = *s.from
		}
	}
	if err := json.Unmarshal([]byte(headers), &m.Headers); err != nil {
		return p, fmt.Errorf("headers of %s: %w", m, err)
	}
	if len(m.Headers) == 0 {
		m.Headers = nil
	}
	return p, nil
}
