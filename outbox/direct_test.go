package outbox

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// embedding has a Begin of its own, which may do more than begin.
type embedding struct{ *pgx.Conn }

func (e embedding) Begin(ctx context.Context) (pgx.Tx, error) { return e.Conn.Begin(ctx) }

func TestOnlyDatabasesOfPgxAreBegunDirectly(t *testing.T) {
	t.Parallel()
	conn := &pgx.Conn{}
	options := pgx.TxOptions{IsoLevel: pgx.Serializable}
	for name, c := range map[string]struct {
		db   Beginner
		want bool
	}{
		"a connection":              {conn, true},
		"a connection with options": {BeginWith(conn, options), true},
		"its own begin":             {BeginWith(conn, pgx.TxOptions{BeginQuery: "begin read write"}), false},
		"one that embeds it":        {embedding{conn}, false},
		"a pointer to that":         {&embedding{conn}, false},
		"that with options":         {BeginWith(&embedding{conn}, options), false},
		"a function":                {BeginnerFunc(conn.Begin), false},
		"a transaction":             {&pooledTx{}, false},
		"a pool that is not pgx's":  {&pool{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := directly(c.db)
			if (d != nil) != c.want {
				t.Fatalf("got %v, want %v", d != nil, c.want)
			}
			if _, with := c.db.(*beginWith); d != nil && with && d.options != options {
				t.Errorf("options: got %v, want %v", d.options, options)
			}
		})
	}
	b := setup(t)
	conn = must(pgx.Connect(b.ctx, b.dsn))
	tx := must(conn.Begin(b.ctx))
	if directly(tx) != nil {
		t.Error("a transaction of pgx is begun again")
	}
	if err := conn.Close(b.ctx); err != nil {
		t.Error(err)
	}
}

// wired connects with a wire that the test reads along.
func wired(b *bench, w *wire) *pgx.Conn {
	b.Helper()
	cfg, err := pgx.ParseConfig(b.dsn)
	if err != nil {
		b.Fatal(err)
	}
	cfg.TLSConfig, cfg.Fallbacks = nil, nil
	dial := cfg.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &wiredConn{Conn: conn, wire: w}, nil
	}
	conn, err := pgx.ConnectConfig(b.ctx, cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// The package adds no round trip to a message that is applied, and none is needed
// for the second of two duplicates but the one that finds it.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	type step struct {
		name string
		ms   []Message
		want Outcome
		n    int
	}
	a, b2, batch := message("a", 1), message("b", 1), []Message{message("c", 1), message("c", 2), message("d", 1)}
	for name, c := range map[string]struct {
		options ConsumerOptions
		begins  bool
		again   Outcome
		n       []int
	}{
		"by id and version": {ConsumerOptions{}, false, Duplicate, []int{3, 2, 1, 4, 2, 5, 2, 1}},
		"by version":        {ConsumerOptions{Dedup: ByVersion}, false, Stale, []int{3, 2, 1, 4, 2, 5, 2, 1}},
		"begun by a call":   {ConsumerOptions{}, true, Duplicate, []int{4, 3, 3, 4, 3, 6, 3, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			w := &wire{}
			conn := wired(b, w)
			var db Beginner = conn
			if c.begins {
				db = BeginnerFunc(conn.Begin)
			}
			// The first run prepares the statements.
			for _, consumer := range []string{"warm", "cold"} {
				c.options.Name = consumer
				consumer := must(NewConsumer(db, c.options))
				for i, s := range []step{
					{"new", []Message{a}, Applied, c.n[0]},
					{"again", []Message{a}, c.again, c.n[1]},
					{"and again", []Message{a}, c.again, c.n[2]},
					{"new, after a duplicate", []Message{b2}, Applied, c.n[3]},
					{"again", []Message{b2}, c.again, c.n[4]},
					// A batch tries its luck too after a duplicate.
					{"new batch", batch, Applied, c.n[5] + map[bool]int{true: 0, false: 1}[c.begins]},
					{"again", batch, c.again, c.n[6]},
					{"and again", batch, c.again, c.n[7]},
				} {
					w.take()
					results, err := consumer.ProcessBatch(b.ctx, s.ms, effect("billing"))
					if err != nil {
						t.Fatal(err)
					}
					n := w.take()
					if slices.ContainsFunc(results, func(r Result) bool { return r.Outcome != s.want }) {
						t.Errorf("step %d, %s: %v, want %s", i, s.name, results, s.want)
					}
					if c.options.Name == "cold" && n != s.n {
						t.Errorf("step %d, %s: %d round trips, want %d", i, s.name, n, s.n)
					}
				}
			}
		})
	}
}

// What a Begin does besides is done for each message, also after duplicates.
func TestBeginThatDoesMore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn := wired(b, &wire{})
	in := func(schema string) Beginner {
		b.exec(`create schema ` + schema)
		b.exec(`create table ` + schema + `.effects (like effects including identity)`)
		db := BeginWith(conn, pgx.TxOptions{BeginQuery: "begin; set local search_path = " + schema})
		if _, err := Migrate(b.ctx, b.pool, MigrateOptions{SchemaOptions: SchemaOptions{Parts: Consumption, Schema: schema}}); err != nil {
			t.Fatal(err)
		}
		return db
	}
	m := message("a", 1)
	for _, schema := range []string{"red", "blue"} {
		c := must(NewConsumer(in(schema), ConsumerOptions{Name: "billing"}))
		for i, want := range []Outcome{Applied, Duplicate, Duplicate} {
			if r, err := c.Process(b.ctx, m, effect("billing")); err != nil || r.Outcome != want {
				t.Errorf("%s, delivery %d: %s, %v; want %s", schema, i, r.Outcome, err, want)
			}
		}
		b.expect("1", `select count(*)::text from `+schema+`.effects`)
	}
}

// An error of the first batch leaves the connection as it was, and says what to do.
func TestTablesThatAreNotThere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn := wired(b, &wire{})
	c := must(NewConsumer(conn, ConsumerOptions{Name: "billing", Schema: "nowhere"}))
	for range 2 {
		_, err := c.Process(b.ctx, message("a", 1), effect("billing"))
		if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Hint(), "Migrate") {
			t.Errorf("got %v, want one with a hint at Migrate", err)
		}
	}
	if status := conn.PgConn().TxStatus(); status != 'I' || conn.IsClosed() {
		t.Errorf("the connection is left in state %c", status)
	}
}

// A duplicate by version alone writes nothing, so it does not wait for the disk.
func TestStaleByVersionCommitsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.consumer(ConsumerOptions{Dedup: ByVersion})
	commits := 0
	b.pool.fault = func(step string) error {
		if step == "commit" {
			commits++
		}
		return nil
	}
	m := message("a", 1)
	for _, want := range []Outcome{Applied, Stale, Stale} {
		if r, err := c.Process(b.ctx, m, effect("billing")); err != nil || r.Outcome != want {
			t.Errorf("%s, %v; want %s", r.Outcome, err, want)
		}
	}
	if commits != 1 {
		t.Errorf("%d commits, want 1", commits)
	}
}
