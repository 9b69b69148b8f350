package outboxtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/outbox"
)

// Variable names the server for DB: a connection string of a user who may create
// schemas.
const Variable = "OUTBOXTEST_DSN"

// Options of Open.
type Options struct {
	// DSN of the server and database.
	DSN string
	// Tables to make; the zero value makes all. The names must not have a schema.
	Tables outbox.SchemaOptions
}

// Database is a schema of one test, and a small pool of connections that have it
// first in their search path. It is an outbox.Beginner.
type Database struct {
	DSN    string // leads into the schema; for other pools and drivers
	Schema string

	config *pgx.ConnConfig
	slots  chan struct{} // one for each connection that there may be
	mu     sync.Mutex
	idle   []*pgx.Conn
	closed bool
}

// maxConns is above what Storm and a test beside it use at once.
const maxConns = 24

// DB opens a Database on the server that OUTBOXTEST_DSN names. Without one the
// test fails, or with -short is skipped.
func DB(t testing.TB) *Database {
	t.Helper()
	dsn := os.Getenv(Variable)
	switch {
	case dsn == "" && testing.Short():
		t.Skipf("needs a PostgreSQL server: set %s and run without -short", Variable)
	case dsn == "":
		t.Fatalf("%s is not set: name a PostgreSQL server, such as postgres://user:password@localhost:5432/test, or run with -short", Variable)
	}
	return Open(t, Options{DSN: dsn})
}

// Open makes a schema with the tables of package outbox in it. When the test ends
// the schema is dropped.
func Open(t testing.TB, o Options) *Database {
	t.Helper()
	config, err := pgx.ParseConfig(o.DSN)
	if err != nil {
		t.Fatalf("outboxtest: %v", err) // pgx leaves the password out
	}
	d := &Database{
		Schema: fmt.Sprintf("outboxtest_%016x", rand.Uint64()),
		slots:  make(chan struct{}, maxConns),
	}
	path := d.Schema + ",public"
	config.RuntimeParams["search_path"] = path
	d.config, d.DSN = config, withParameter(o.DSN, "search_path", path)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := d.Exec(ctx, "create schema "+d.Schema); err != nil {
		t.Fatalf("outboxtest: create a schema: %v", err)
	}
	t.Cleanup(func() { d.drop(t) })
	if _, err := outbox.Migrate(ctx, d, outbox.MigrateOptions{SchemaOptions: o.Tables}); err != nil {
		t.Fatalf("outboxtest: %v", err)
	}
	return d
}

func (d *Database) drop(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, sql := range []string{
		"drop schema " + d.Schema + " cascade",
		"delete from walpost.outbox_schema where object like '" + d.Schema + ".%'",
	} {
		if err := d.Exec(ctx, sql); err != nil {
			t.Errorf("outboxtest: %s: %v", sql, err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, c := range d.idle {
		_ = c.Close(ctx) // nothing is lost with it
	}
	d.idle = nil
}

// Begin begins a transaction.
func (d *Database) Begin(ctx context.Context) (pgx.Tx, error) {
	return d.BeginTx(ctx, pgx.TxOptions{})
}

// BeginTx begins a transaction with options; see outbox.BeginWith.
func (d *Database) BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error) {
	conn, err := d.acquire(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := conn.BeginTx(ctx, o)
	if err != nil {
		d.release(conn)
		return nil, err
	}
	return &transaction{Tx: tx, done: sync.OnceFunc(func() { d.release(conn) })}, nil
}

// transaction gives its connection back when it ends.
type transaction struct {
	pgx.Tx
	done func()
}

// Commit implements pgx.Tx.
func (t *transaction) Commit(ctx context.Context) error {
	defer t.done()
	return t.Tx.Commit(ctx)
}

// Rollback implements pgx.Tx.
func (t *transaction) Rollback(ctx context.Context) error {
	defer t.done()
	return t.Tx.Rollback(ctx)
}

// Exec runs statements outside of a transaction. Without arguments it may be
// several, separated by semicolons.
func (d *Database) Exec(ctx context.Context, sql string, args ...any) error {
	conn, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	defer d.release(conn)
	_, err = conn.Exec(ctx, sql, args...)
	return err
}

// QueryRow reads one row outside of a transaction.
func (d *Database) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return row(func(dest ...any) error {
		conn, err := d.acquire(ctx)
		if err != nil {
			return err
		}
		defer d.release(conn)
		return conn.QueryRow(ctx, sql, args...).Scan(dest...)
	})
}

type row func(dest ...any) error

// Scan implements pgx.Row.
func (r row) Scan(dest ...any) error { return r(dest...) }

func (d *Database) acquire(ctx context.Context) (*pgx.Conn, error) {
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("all %d connections are in use: %w", maxConns, context.Cause(ctx))
	}
	d.mu.Lock()
	if n := len(d.idle); n > 0 {
		conn := d.idle[n-1]
		d.idle = d.idle[:n-1]
		d.mu.Unlock()
		return conn, nil
	}
	d.mu.Unlock()
	conn, err := pgx.ConnectConfig(ctx, d.config.Copy())
	if err != nil {
		<-d.slots
	}
	return conn, err
}

// release keeps a connection that is good for another transaction.
func (d *Database) release(conn *pgx.Conn) {
	defer func() { <-d.slots }()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed && !conn.IsClosed() && conn.PgConn().TxStatus() == 'I' {
		d.idle = append(d.idle, conn)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx) // the server rolls back
}

// withParameter adds a setting to a connection string in either form.
func withParameter(dsn, name, value string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return dsn + " " + name + "='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}
