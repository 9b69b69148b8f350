package outboxtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/outbox"
	"github.com/walpost/walpost/outbox/outboxtest"
)

func TestRequire(t *testing.T) {
	t.Parallel()
	db := open(t, outbox.SchemaOptions{})
	w := writer(t, outbox.WriterOptions{})
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	outboxtest.RequireNothingWritten(t, tx)
	placed := &outbox.Event{
		AggregateType: "order", AggregateID: "42", Version: 1, Type: "OrderPlaced", TenantID: "acme",
		Payload: map[string]any{"total": 10, "lines": []int{1, 2}}, Headers: map[string]string{"source": "shop"},
	}
	paid := &outbox.Event{AggregateType: "order", AggregateID: "42", Version: 2, Type: "OrderPaid", SchemaVersion: 3, Payload: json.RawMessage(`{"by":"card"}`)}
	if err := w.Write(t.Context(), tx, placed, paid); err != nil {
		t.Fatal(err)
	}

	got := outboxtest.RequireWritten(t, tx,
		outboxtest.Want{Type: "OrderPlaced", Version: 1, TenantID: "acme", Payload: []byte(` {"lines": [1,2], "total": 10} `), Headers: map[string]string{"source": "shop"}},
		outboxtest.Want{ID: paid.ID, SchemaVersion: 3, Payload: map[string]string{"by": "card"}})
	if len(got) != 2 || got[0].ID != placed.ID || got[1].ID != paid.ID || !got[0].OccurredAt.Equal(placed.OccurredAt) {
		t.Errorf("got %+v", got)
	}
	outboxtest.RequireNothingWritten(t, tx, outboxtest.Want{Type: "OrderLost"}, outboxtest.Want{AggregateID: "41"})
	outboxtest.RequireNothingWritten(t, db) // it is not committed

	for part, f := range map[string]func(testing.TB){
		`no event with type OrderLost`: func(tb testing.TB) { outboxtest.RequireWritten(tb, tx, outboxtest.Want{Type: "OrderLost"}) },
		`behind event 1 of 2`: func(tb testing.TB) {
			outboxtest.RequireWritten(tb, tx, outboxtest.Want{Type: "OrderPaid"}, outboxtest.Want{Type: "OrderPlaced"})
		},
		`the payload is {"by": "card"}, not {"by":"cash"}`: func(tb testing.TB) {
			outboxtest.RequireWritten(tb, tx, outboxtest.Want{Type: "OrderPaid", Payload: map[string]string{"by": "cash"}})
		},
		`the header source is "shop", not "till"`: func(tb testing.TB) {
			outboxtest.RequireWritten(tb, tx, outboxtest.Want{Headers: map[string]string{"source": "till"}, Version: 1})
		},
		`should not be: order/42 version 1 of tenant acme: OrderPlaced`: func(tb testing.TB) { outboxtest.RequireNothingWritten(tb, tx) },
		`version 2: OrderPaid`: func(tb testing.TB) { outboxtest.RequireNothingWritten(tb, tx, outboxtest.Want{Version: 2}) },
		`wants nothing`:        func(tb testing.TB) { outboxtest.RequireWritten(tb, tx) },
		`cannot be marshalled`: func(tb testing.TB) { outboxtest.RequireWritten(tb, tx, outboxtest.Want{Payload: func() {}}) },
		`the outbox is empty`:  func(tb testing.TB) { outboxtest.RequireWritten(tb, db, outboxtest.Want{Version: 2}) },
		`read the outbox`:      func(tb testing.TB) { outboxtest.Table("nowhere").RequireNothingWritten(tb, db) },
		`quotes do not match`:  func(tb testing.TB) { outboxtest.Table(`"no`).RequireNothingWritten(tb, db) },
	} {
		wantFailure(t, part, f)
	}
}

// TestMessages: what a consumer receives, byte by byte, for each payload type.
func TestMessages(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{"jsonb": `{"a": "ä"}`, "json": `{"a":"ä"}`, "text": `{"a":"ä"}`, "bytea": `{"a":"ä"}`} {
		t.Run(payload, func(t *testing.T) {
			t.Parallel()
			db := open(t, outbox.SchemaOptions{Table: "my_events", Payload: payload, Parts: outbox.Writing})
			w := writer(t, outbox.WriterOptions{Table: "my_events", Payload: payload})
			at := time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)
			full := &outbox.Event{
				AggregateType: "order", AggregateID: "42", Version: 7, Type: "OrderPlaced", SchemaVersion: 2, TenantID: "acme", OccurredAt: at,
				Payload: json.RawMessage(`{"a":"ä"}`), Headers: map[string]string{"source": "shop", "empty": ""},
			}
			least := &outbox.Event{AggregateType: "order", AggregateID: "43", Type: "OrderLost", Payload: []byte("{}")}
			write(t, db, w, full, least)
			got := outboxtest.Table("my_events").Messages(t, db)
			if len(got) != 2 {
				t.Fatalf("%d messages, want 2", len(got))
			}
			var names []string
			for _, h := range got[0].Headers {
				names = append(names, h.Key)
			}
			if diff := cmp.Diff([]string{"id", "aggregate_type", "event_type", "schema_version", "aggregate_version", "occurred_at", "tenant_id", "empty", "source"}, names); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
			got[0].Headers = nil
			if diff := cmp.Diff(outbox.Message{
				ID: full.ID, AggregateType: "order", AggregateID: "42", Version: 7, Type: "OrderPlaced", SchemaVersion: 2, OccurredAt: at, TenantID: "acme",
				Record: outbox.Record{Topic: "outbox.event.order", Key: []byte("42"), Value: []byte(want), Time: at},
			}, got[0]); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			if m := got[1]; m.ID != least.ID || m.Version != 0 || m.SchemaVersion != 1 || m.Offset != 1 || string(m.Value) != "{}" {
				t.Errorf("the second one is %+v", m)
			}
		})
	}
}

// TestOpen: each test has a schema of its own, nothing of which is left.
func TestOpen(t *testing.T) {
	t.Parallel()
	var schema string
	watch := open(t, outbox.SchemaOptions{})
	t.Run("inner", func(t *testing.T) {
		db := open(t, outbox.SchemaOptions{UniqueVersions: true})
		schema = db.Schema
		w := writer(t, outbox.WriterOptions{})
		e := outbox.Event{AggregateType: "order", AggregateID: "1", Version: 1, Type: "x", Payload: []byte("{}")}
		again := e
		write(t, db, w, &e)
		err := outbox.RunTx(t.Context(), db, w, func(_ pgx.Tx, b *outbox.Buffer) error { b.Add(&again); return nil })
		if !errors.Is(err, outbox.ErrVersionTaken) {
			t.Errorf("%v, want ErrVersionTaken: the options were not used", err)
		}
		conn, err := pgx.Connect(t.Context(), db.DSN)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		outboxtest.RequireWritten(t, conn, outboxtest.Want{AggregateID: "1"})
		outboxtest.RequireNothingWritten(t, watch)
	})
	var left int
	if err := watch.QueryRow(t.Context(), `select (select count(*) from pg_namespace where nspname = $1)
		+ (select count(*) from walpost.outbox_schema where object like $1 || '.%')`, schema).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d things are left of %s (%v)", left, schema, err)
	}
	wantFailure(t, "outboxtest", func(tb testing.TB) { outboxtest.Open(tb, outboxtest.Options{DSN: "nonsense://"}) })
}

func TestDB(t *testing.T) {
	t.Setenv(outboxtest.Variable, "")
	wantFailure(t, outboxtest.Variable+" is not set", func(tb testing.TB) { outboxtest.DB(tb) })
	// The keyword form of a connection string.
	config, err := pgx.ParseConfig(open(t, outbox.SchemaOptions{}).DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(outboxtest.Variable, strings.Join([]string{"host=" + config.Host, "port=" + strings.TrimSpace(portOf(config)), "user=" + config.User, "dbname=postgres"}, " "))
	db := outboxtest.DB(t)
	conn, err := pgx.Connect(t.Context(), db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	outboxtest.RequireNothingWritten(t, conn)
}

func portOf(c *pgx.ConnConfig) string {
	b, _ := json.Marshal(c.Port)
	return string(b)
}
