package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Beginner begins transactions: a *pgxpool.Pool, a *pgx.Conn, or a pgx.Tx, in
// which a transaction is a savepoint. Begin may do more, such as choosing a schema:
// it is called for each transaction, but for a Consumer's on a pool or connection
// of pgx, where BEGIN is sent together with what follows.
type Beginner interface {
	Begin(context.Context) (pgx.Tx, error)
}

// BeginnerFunc makes a Beginner of a function.
type BeginnerFunc func(context.Context) (pgx.Tx, error)

// Begin implements Beginner.
func (f BeginnerFunc) Begin(ctx context.Context) (pgx.Tx, error) { return f(ctx) }

// BeginWith is a Beginner whose transactions have these options, for RunTx and
// NewConsumer in another isolation level than the server's default.
func BeginWith(db interface {
	BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error)
}, o pgx.TxOptions) Beginner {
	return &beginWith{db, o}
}

type beginWith struct {
	db interface {
		BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error)
	}
	options pgx.TxOptions
}

// Begin implements Beginner.
func (b *beginWith) Begin(ctx context.Context) (pgx.Tx, error) { return b.db.BeginTx(ctx, b.options) }

// Buffer holds the events of a transaction until everything else is written. It
// is not safe for concurrent use.
type Buffer struct{ events []*Event }

// Add puts events behind those that are there.
func (b *Buffer) Add(events ...*Event) { b.events = append(b.events, events...) }

// Len is how many events there are.
func (b *Buffer) Len() int { return len(b.events) }

// runAttempts of a transaction that others got in the way of.
const runAttempts = 10

// RunTx begins a transaction, calls fn, writes the events that fn put into the
// buffer as the last statement, and commits. It begins again when the server
// asks for that (serialization failure, deadlock), up to ten times. fn then runs
// again, with an empty buffer: it must do nothing outside of the transaction.
// An Event that fn makes anew gets a new ID; one that fn only adds keeps its own.
//
// When the connection is lost during the commit nobody knows whether it
// happened. Events with ids of DeriveID tell: run the command again, and
// ErrIDTaken says that it did.
func RunTx(ctx context.Context, db Beginner, w *Writer, fn func(pgx.Tx, *Buffer) error) error {
	wait := backoff{least: 2 * time.Millisecond, most: time.Second}
	for attempt := 1; ; attempt++ {
		err := runOnce(ctx, db, w, fn)
		if err == nil || ctx.Err() != nil || !isConflict(err) || attempt == runAttempts {
			return err
		}
		if sleep(ctx, wait.next()) != nil {
			return err // which says more than the context
		}
	}
}

func runOnce(ctx context.Context, db Beginner, w *Writer, fn func(pgx.Tx, *Buffer) error) error {
	tx, err := db.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer rollback(ctx, tx)
	var b Buffer
	if err := fn(tx, &b); err != nil {
		return err
	}
	if err := w.Write(ctx, tx, b.events...); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// rollback also works when the caller's context has ended, which is the usual
// reason for it. After a commit it does nothing.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = tx.Rollback(ctx) // a broken connection has rolled back by itself
}
