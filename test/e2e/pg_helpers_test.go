package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/internal/testkit/proxy"
	"github.com/walpost/walpost/internal/testkit/topic"
)

// query returns one value.
func query[T any](o *outbox, sql string, args ...any) T {
	o.t.Helper()
	var v T
	if err := o.db.QueryRow(o.t.Context(), sql, args...).Scan(&v); err != nil {
		o.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// debeziumTable makes a table of Debezium's columns with that type of payload,
// without the guard against everything but inserts.
func (o *outbox) debeziumTable(name, payload string) {
	o.t.Helper()
	o.exec(`create table ` + name + ` (id uuid primary key default gen_random_uuid(), aggregatetype text, aggregateid text, type text, payload ` + payload + `)`)
}

// debezium writes rows into such a table, one for each n, in one statement.
func (o *outbox) debezium(q querier, table, aggregateID string, n ...int) {
	o.t.Helper()
	_, err := q.Exec(o.t.Context(), `insert into `+table+` (aggregatetype, aggregateid, type, payload)
		select 'order', $1, 'Created', json_build_object('n', n) from unnest($2::int[]) with ordinality as rows (n, i) order by i`, aggregateID, n)
	if err != nil {
		o.t.Fatal(err)
	}
}

// bareDebezium is an outbox of a Debezium table named out, published and ready.
func bareDebezium(t *testing.T, dsn string) *outbox {
	t.Helper()
	o := bareOutbox(t, dsn, testkit.Kafka(t).Addr())
	o.table = "public.out"
	o.debeziumTable("out", "json")
	o.must("init")
	return o
}

// singleTopic makes the topic of an aggregate type with one partition, so that
// what is read back has one order.
func (o *outbox) singleTopic(aggregateType string) {
	o.t.Helper()
	testkit.CreateTopic(o.t, testkit.Kafka(o.t).Addr(), o.topic(aggregateType), 1)
}

// labels are key and n of each record, in order.
func labels(t *testing.T, records []topic.Record) []string {
	t.Helper()
	list := []string{}
	for i := range records {
		list = append(list, fmt.Sprintf("%s %d", records[i].Key, number(t, records[i])))
	}
	return list
}

// wantRecords waits until the topic has as many records as labels, and compares.
func (o *outbox) wantRecords(aggregateType string, want ...string) {
	o.t.Helper()
	o.awaitCount(aggregateType, len(want))
	if diff := cmp.Diff(want, labels(o.t, o.read(aggregateType))); diff != "" {
		o.t.Errorf("records of %s (-want +got):\n%s", o.topic(aggregateType), diff)
	}
}

// viaBrokers returns the outbox with other brokers for the relay.
func (o *outbox) viaBrokers(addr string) *outbox {
	other := *o
	other.brokers = []string{addr}
	return &other
}

// viaProxy returns the outbox whose relay reaches PostgreSQL through a proxy.
func (o *outbox) viaProxy() (*outbox, *proxy.Proxy) {
	o.t.Helper()
	u, err := url.Parse(o.dsn)
	if err != nil {
		o.t.Fatal(err)
	}
	p := newProxy(o.t, u.Host)
	u.Host = p.Addr()
	other := *o
	other.dsn = u.String()
	return &other, p
}

func newProxy(t *testing.T, target string) *proxy.Proxy {
	t.Helper()
	p, err := proxy.New(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// withParam adds a parameter to the relay's connection string.
func (o *outbox) withParam(name, value string) *outbox {
	o.t.Helper()
	u, err := url.Parse(o.dsn)
	if err != nil {
		o.t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	other := *o
	other.dsn = u.String()
	return &other
}

// privateOutbox is one on a server that the test may stop.
func privateOutbox(t *testing.T, opts pgserver.Options) (*outbox, *pgserver.Server) {
	t.Helper()
	opts.FsyncOff = true // servers are killed here, machines are not
	server := testkit.PrivatePostgres(t, opts)
	return newOutboxAt(t, server.DSN("postgres"), testkit.Kafka(t).Addr()), server
}

// reconnect gives the test a new connection after the server was gone.
func (o *outbox) reconnect() { o.db = testkit.Connect(o.t, o.dsn) }

// committed reads what the table has, in the order in which it was written.
func (o *outbox) committed() []event {
	o.t.Helper()
	rows, err := o.db.Query(o.t.Context(), `select event_id::text, aggregate_type, aggregate_id, (payload->>'n')::int from `+o.table+` order by seq`)
	if err != nil {
		o.t.Fatal(err)
	}
	var events []event
	for rows.Next() {
		var e event
		if err := rows.Scan(&e.id, &e.aggregateType, &e.aggregateID, &e.n); err != nil {
			o.t.Fatal(err)
		}
		events = append(events, e)
	}
	if err := rows.Err(); err != nil {
		o.t.Fatal(err)
	}
	return events
}

// traffic writes events without end, in transactions of different sizes,
// whatever becomes of the server. What it could not write is not written again:
// the table tells what was committed.
type traffic struct {
	stopped atomic.Bool
	done    sync.WaitGroup
}

func (o *outbox) startTraffic(aggregateType string) *traffic {
	w := &traffic{}
	w.done.Go(func() {
		for n := 0; !w.stopped.Load(); {
			n = o.write(w, aggregateType, n)
		}
	})
	o.t.Cleanup(w.stop)
	return w
}

// write uses one connection until it breaks, and returns the next n.
func (o *outbox) write(w *traffic, aggregateType string, n int) int {
	// Not the test's context: what is under way must end before the table is read.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, o.dsn)
	if err != nil {
		return n
	}
	defer conn.Close(ctx)
	for err == nil && !w.stopped.Load() {
		size := n%3 + 1
		_, err = conn.Exec(ctx, `insert into `+o.table+` (event_id, aggregate_type, aggregate_id, event_type, payload, occurred_at)
			select gen_random_uuid(), $1, (n % 7)::text, 'Created', jsonb_build_object('n', n), now() from generate_series($2::int, $3::int) n`,
			aggregateType, n, n+size-1)
		n += size
		if err == nil {
			_, err = conn.Exec(ctx, `select pg_sleep(0.002)`)
		}
	}
	return n
}

// stop returns when nothing more is written.
func (w *traffic) stop() {
	w.stopped.Store(true)
	w.done.Wait()
}

// checkTraffic waits for everything committed and returns the number of repeats.
func (o *outbox) checkTraffic(aggregateType string) (repeats int) {
	o.t.Helper()
	events := o.committed()
	if len(events) == 0 {
		o.t.Fatal("nothing was written")
	}
	o.awaitCount(aggregateType, len(events))
	o.awaitConfirmed()
	return check(o.t, o.read(aggregateType), events)
}

// readyz asks /readyz.
func (r *relay) readyz(query string) (code int, body struct {
	Ready     bool
	State     string
	Reason    string
	HolderPID int32 `json:"holder_pid"`
}) {
	r.t.Helper()
	code, data, err := r.get("/readyz" + query)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := json.Unmarshal(data, &body); err != nil {
		r.t.Fatalf("%s: %v", data, err)
	}
	return code, body
}

// wantExit waits for the end of the relay with that code, and demands that its
// last words are two lines with these in them.
func (r *relay) wantExit(code int, words, hint string) {
	r.t.Helper()
	if got := r.wait(); got != code {
		r.t.Errorf("exit code %d, want %d", got, code)
	}
	r.mu.Lock()
	last := r.log[max(len(r.log)-2, 0):]
	r.mu.Unlock()
	if len(last) < 2 || !strings.HasPrefix(last[0], "error: ") || !strings.Contains(last[0], words) ||
		!strings.HasPrefix(last[1], "hint: ") || !strings.Contains(last[1], hint) {
		r.t.Errorf("last lines are %q, want an error with %q and a hint with %q", last, words, hint)
	}
}

func (o *outbox) confirmed() string {
	o.t.Helper()
	return query[string](o, `select confirmed_flush_lsn::text from pg_replication_slots where slot_name = $1`, o.slot)
}

// execAfter runs a statement when the test's context has ended.
func execAfter(t *testing.T, dsn, sql string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Errorf("%s: %v", sql, err)
	}
}
