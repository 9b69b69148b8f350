package outbox

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5"
)

// direct is a database on which a transaction is begun in the round trip of its
// first statements.
type direct struct {
	db      sender
	options pgx.TxOptions
}

type sender interface {
	SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
}

// directly is nil for databases whose Begin has to be called. Only types of pgx
// itself need no call: one that embeds a pool may do more in its Begin, such as
// choosing a schema, and must not be passed by.
func directly(db Beginner) *direct {
	d := &direct{}
	var inner any = db
	if w, ok := db.(*beginWith); ok {
		inner, d.options = w.db, w.options
	}
	if d.options.BeginQuery != "" {
		return nil // may be several statements, which a batch cannot hold as one
	}
	if _, ok := inner.(pgx.Tx); ok {
		return nil // begins savepoints
	}
	t := reflect.TypeOf(inner)
	if t == nil || t.Kind() != reflect.Pointer || !strings.HasPrefix(t.Elem().PkgPath()+"/", "github.com/jackc/pgx/v5/") {
		return nil
	}
	var ok bool
	if d.db, ok = inner.(sender); !ok {
		return nil
	}
	return d
}

// open begins a transaction and claims the messages in it. The transaction, if
// there is one, is the caller's to end, also after an error.
func (c *Consumer) open(ctx context.Context, ms []Message) (pgx.Tx, []finding, error) {
	if c.direct == nil {
		tx, err := c.db.Begin(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("begin: %w", err)
		}
		found, err := c.claim(ctx, tx, ms, false)
		return tx, found, err
	}
	var batch pgx.Batch
	batch.BeginTx(c.direct.options)
	c.queueClaims(&batch, ms)
	results := c.direct.db.SendBatch(ctx, &batch)
	tx := results.Tx()
	if _, err := results.Exec(); err != nil {
		_ = results.Close() // gives the same error
		return tx, nil, err // of any of the statements, when they are prepared
	}
	found, err := c.readClaims(results, ms, false)
	return tx, found, err
}

// peek looks whether all the messages were dealt with before, in one round trip
// and without a transaction. What it finds stays so. What it does not find means
// nothing: only a claim tells, since that waits for others.
func (c *Consumer) peek(ctx context.Context, ms []Message) (found []finding, known bool) {
	// Duplicates come in a row: after a restart, a rebalance, in a replay.
	if !c.repeating.Load() || c.direct == nil {
		return nil, false
	}
	var batch pgx.Batch
	for i := range ms {
		batch.Queue(c.sql.peek, c.lookArgs(&ms[i])...)
	}
	results := c.direct.db.SendBatch(ctx, &batch)
	found, known = make([]finding, len(ms)), true
	for i := range ms {
		m, f := &ms[i], &found[i]
		var seen bool
		below, err := f.read(results.QueryRow(), &seen)
		if err != nil {
			break // Close gives it again
		}
		f.verdict = c.decide(m, f, !seen || !c.byID(m), false, false, below, false)
		known = known && (f.verdict == isDuplicate || f.verdict == isStale && !c.keeps(m, f))
	}
	if results.Close() != nil {
		return nil, false // the claim will say what is wrong
	}
	c.repeating.Store(known)
	return found, known
}

// keeps says whether a message that is stale leaves something to be committed:
// its id, or what becomes of its row among the parked.
func (c *Consumer) keeps(m *Message, f *finding) bool { return c.byID(m) || f.own != "" }
