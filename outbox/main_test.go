package outbox

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// pool is a small Beginner for several goroutines.
type pool struct {
	dsn  string
	mode pgx.QueryExecMode
	opts pgx.TxOptions
	idle chan *pgx.Conn
	// begins makes consumers call Begin, as they do for databases that are not
	// pgx's own.
	begins bool
	// fault is asked before each step of a transaction; nil never fails.
	fault func(step string) error
}

func newPool(t testing.TB, dsn string) *pool {
	p := &pool{dsn: dsn, idle: make(chan *pgx.Conn, 64)}
	t.Cleanup(func() {
		for {
			select {
			case c := <-p.idle:
				_ = c.Close(context.Background())
			default:
				return
			}
		}
	})
	return p
}

func (p *pool) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := p.fail("begin"); err != nil {
		return nil, err
	}
	conn, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := conn.BeginTx(ctx, p.opts)
	if err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return &pooledTx{Tx: tx, pool: p, conn: conn}, nil
}

func (p *pool) connect(ctx context.Context) (*pgx.Conn, error) {
	select {
	case conn := <-p.idle:
		return conn, nil
	default:
	}
	cfg, err := pgx.ParseConfig(p.dsn)
	if err != nil {
		return nil, err
	}
	if p.mode != 0 {
		cfg.DefaultQueryExecMode = p.mode
	}
	return pgx.ConnectConfig(ctx, cfg)
}

// SendBatch is what a pool of pgx does.
func (p *pool) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := p.fail("begin"); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	conn, err := p.connect(ctx)
	if err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	if p.fail("batch") != nil {
		_ = conn.Close(ctx)
	}
	r := &pooledResults{BatchResults: conn.SendBatch(ctx, b)}
	whole := &pooledTx{Tx: r.BatchResults.Tx(), pool: p, conn: conn}
	if whole.Tx != nil {
		r.tx = whole
	} else {
		r.release = whole.release
	}
	return r
}

type pooledResults struct {
	pgx.BatchResults
	tx      pgx.Tx
	release func() // of a batch without transaction
}

func (r *pooledResults) Tx() pgx.Tx { return r.tx }

func (r *pooledResults) Close() error {
	err := r.BatchResults.Close()
	if r.release != nil {
		r.release()
	}
	return err
}

func (p *pool) fail(step string) error {
	if p.fault == nil {
		return nil
	}
	return p.fault(step)
}

type pooledTx struct {
	pgx.Tx
	pool *pool
	conn *pgx.Conn
	once sync.Once
}

func (t *pooledTx) release() {
	t.once.Do(func() {
		if !t.conn.IsClosed() {
			t.pool.idle <- t.conn
		}
	})
}

func (t *pooledTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if t.pool.fail("batch") != nil {
		_ = t.conn.Close(ctx)
	}
	return t.Tx.SendBatch(ctx, b)
}

func (t *pooledTx) Commit(ctx context.Context) error {
	if t.pool.fail("commit") != nil {
		_ = t.conn.Close(ctx)
	}
	defer t.release()
	err := t.Tx.Commit(ctx)
	if err == nil && t.pool.fail("committed") != nil {
		return fmt.Errorf("connection lost after the commit")
	}
	return err
}

func (t *pooledTx) Rollback(ctx context.Context) error {
	defer t.release()
	return t.Tx.Rollback(ctx)
}

// bench is a database with everything in it.
type bench struct {
	testing.TB
	ctx  context.Context
	pg   *testkit.PG
	dsn  string
	pool *pool
}

func setup(t testing.TB) *bench {
	t.Helper()
	pg := testkit.Postgres(t, 0)
	b := &bench{TB: t, ctx: t.Context(), pg: pg, dsn: pg.NewDB(t)}
	b.pool = newPool(t, b.dsn)
	if _, err := Migrate(b.ctx, b.pool, MigrateOptions{SchemaOptions: SchemaOptions{UniqueVersions: true}}); err != nil {
		t.Fatal(err)
	}
	b.exec(`create table effects (consumer text, event_id uuid, aggregate_id text, version bigint, n bigint generated always as identity)`)
	return b
}

func (b *bench) exec(sql string, args ...any) {
	b.Helper()
	if err := b.try(sql, args...); err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
}

func (b *bench) try(sql string, args ...any) error {
	return b.in(func(tx pgx.Tx) error {
		_, err := tx.Exec(b.ctx, sql, args...)
		return err
	})
}

func (b *bench) in(f func(pgx.Tx) error) error {
	tx, err := newPoolTx(b)
	if err != nil {
		return err
	}
	defer rollback(b.ctx, tx)
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit(b.ctx)
}

// newPoolTx is a transaction without faults.
func newPoolTx(b *bench) (pgx.Tx, error) {
	p := *b.pool
	p.fault, p.opts = nil, pgx.TxOptions{}
	return p.Begin(b.ctx)
}

// text gives one value.
func (b *bench) text(sql string, args ...any) (s string) {
	b.Helper()
	if err := b.in(func(tx pgx.Tx) error { return tx.QueryRow(b.ctx, sql, args...).Scan(&s) }); err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
	return s
}

func (b *bench) expect(want, sql string, args ...any) {
	b.Helper()
	if got := b.text(sql, args...); got != want {
		b.Errorf("%s\n got %s\nwant %s", sql, got, want)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (b *bench) consumer(o ConsumerOptions) *Consumer {
	b.Helper()
	if o.Name == "" {
		o.Name = "billing"
	}
	c, err := NewConsumer(b.pool, o)
	if err != nil {
		b.Fatal(err)
	}
	if !b.pool.begins {
		c.direct = &direct{db: b.pool, options: b.pool.opts}
	}
	c.sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return c
}

func (b *bench) writer(o WriterOptions) *Writer {
	b.Helper()
	w, err := NewWriter(o)
	if err != nil {
		b.Fatal(err)
	}
	return w
}

// message is a version of an aggregate; 0 has none.
func message(aggregate string, version int64) Message {
	return Message{
		ID: must(uuid.NewV7()), AggregateType: "order", AggregateID: aggregate, Version: version, Type: "moved", SchemaVersion: 1,
		Record: Record{Topic: "outbox.event.order", Key: []byte(aggregate), Value: []byte(`{}`)},
	}
}

// effect is the side effect of the tests.
func effect(consumer string) Handler {
	return func(ctx context.Context, tx pgx.Tx, m Message) error {
		_, err := tx.Exec(ctx, `insert into effects (consumer, event_id, aggregate_id, version) values ($1, $2::uuid, $3, $4)`,
			consumer, m.ID.String(), m.AggregateID, m.Version)
		return err
	}
}
