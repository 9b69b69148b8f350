package outbox_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/outbox"
)

// db is the database of the examples; a service has a *pgxpool.Pool.
var db *pgx.Conn

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func ExampleMigrate() {
	ctx := context.Background()
	report, err := outbox.Migrate(ctx, db, outbox.MigrateOptions{DryRun: true})
	check(err)
	for _, step := range report.Steps {
		fmt.Println(step.State, step.Object)
	}
	_, err = outbox.Migrate(ctx, db, outbox.MigrateOptions{})
	check(err)
	// Prints:
	// created walpost.append_only
	// created public.outbox_events
	// created walpost.aggregate_versions
	// created public.processed_events
}

func ExampleSQL() {
	sql, err := outbox.SQL(outbox.SchemaOptions{Parts: outbox.Table, Table: "sales.outbox", Payload: "json"})
	check(err)
	first, _, _ := strings.Cut(sql, "\n")
	fmt.Println(first)
	// Prints:
	// create table "sales"."outbox" (
}

func ExampleStatements() {
	list, err := outbox.Statements(outbox.SchemaOptions{Parts: outbox.Guard})
	check(err)
	fmt.Println(list[0])
	// Prints:
	// create schema walpost
}

func ExampleFS() {
	files, err := outbox.FS(outbox.SchemaOptions{Parts: outbox.Consumption})
	check(err)
	f, err := files.Open("00001_walpost_consumer.up.sql") // goose.SetBaseFS(files)
	check(err)
	fmt.Println(f.Close())
	// Prints:
	// <nil>
}

func ExampleRunTx() {
	ctx := context.Background()
	writer, err := outbox.NewWriter(outbox.WriterOptions{RequireVersion: true})
	check(err)
	err = outbox.RunTx(ctx, db, writer, func(tx pgx.Tx, events *outbox.Buffer) error {
		var version int64
		err := tx.QueryRow(ctx, `insert into orders (id, version) values ('o-1', 1) returning version`).Scan(&version)
		events.Add(&outbox.Event{
			AggregateType: "order", AggregateID: "o-1", Version: version, Type: "OrderPlaced",
			Payload: map[string]any{"total": "12.50"},
		})
		return err
	})
	fmt.Println(err)
	// Prints:
	// <nil>
}

func ExampleWriter_Write() {
	ctx := context.Background()
	writer, err := outbox.NewWriter(outbox.WriterOptions{})
	check(err)
	tx, err := db.Begin(ctx)
	check(err)
	defer func() { _ = tx.Rollback(ctx) }()
	// Change the aggregate first, then write the event.
	_, err = tx.Exec(ctx, `update orders set version = 2 where id = 'o-1'`)
	check(err)
	check(writer.Write(ctx, tx, &outbox.Event{AggregateType: "order", AggregateID: "o-1", Version: 2, Type: "OrderPaid", Payload: struct{}{}}))
	fmt.Println(tx.Commit(ctx))
	// Prints:
	// <nil>
}

func ExampleWriter_WriteSQL() {
	writer, err := outbox.NewWriter(outbox.WriterOptions{})
	check(err)
	var tx outbox.Execer // a *sql.Tx, from db.BeginTx(ctx, nil)
	err = writer.WriteSQL(context.Background(), tx, &outbox.Event{AggregateType: "order", AggregateID: "o-1", Version: 3, Type: "OrderSent", Payload: struct{}{}})
	fmt.Println(err)
	// Prints:
	// write events: nil is no transaction: an event that commits by itself can be there without its change
}

func ExampleWriter_Copy() {
	ctx := context.Background()
	writer, err := outbox.NewWriter(outbox.WriterOptions{})
	check(err)
	tx, err := db.Begin(ctx)
	check(err)
	defer func() { _ = tx.Rollback(ctx) }()
	var imported iter.Seq[*outbox.Event] = func(yield func(*outbox.Event) bool) {
		for i := range 10_000 {
			if !yield(&outbox.Event{AggregateType: "price", AggregateID: fmt.Sprint(i), Version: 1, Type: "PriceSet", Payload: struct{}{}}) {
				return
			}
		}
	}
	n, err := writer.Copy(ctx, tx, imported)
	check(err)
	fmt.Println(n, tx.Commit(ctx))
	// Prints:
	// 10000 <nil>
}

func ExampleNextVersions() {
	ctx := context.Background()
	writer, err := outbox.NewWriter(outbox.WriterOptions{})
	check(err)
	check(outbox.RunTx(ctx, db, writer, func(tx pgx.Tx, events *outbox.Buffer) error {
		first, err := outbox.NextVersions(ctx, tx, "basket", "b-1", 2)
		for i, what := range []string{"ItemAdded", "CouponUsed"} {
			events.Add(&outbox.Event{AggregateType: "basket", AggregateID: "b-1", Version: first + int64(i), Type: what, Payload: struct{}{}})
		}
		fmt.Println(first)
		return err
	}))
	// Prints:
	// 1
}

func ExampleDeriveID() {
	requested := time.UnixMilli(1770000000123) // in the request, and the same when it is repeated
	fmt.Println(outbox.DeriveID(requested, "key of the request"))
	// Prints:
	// 019c1c38-a47b-8aae-b455-dda7ae98c480
}

func ExampleBeginWith() {
	ctx := context.Background()
	writer, err := outbox.NewWriter(outbox.WriterOptions{})
	check(err)
	serializable := outbox.BeginWith(db, pgx.TxOptions{IsoLevel: pgx.Serializable})
	check(outbox.RunTx(ctx, serializable, writer, func(tx pgx.Tx, _ *outbox.Buffer) error {
		var level string
		err := tx.QueryRow(ctx, `show transaction_isolation`).Scan(&level)
		fmt.Println(level)
		return err
	}))
	// Prints:
	// serializable
}

// delivered is what a Kafka client would give.
func delivered(version string) outbox.Message {
	headers := [][2]string{
		{"id", uuid.Must(uuid.NewV7()).String()}, {"aggregate_type", "order"}, {"event_type", "OrderMoved"}, {"aggregate_version", version},
	}
	m, err := outbox.Parse(outbox.Record{Topic: "outbox.event.order", Key: []byte("o-1"), Value: []byte(`{}`)}, func(yield func(string, []byte) bool) {
		for _, h := range headers {
			if !yield(h[0], []byte(h[1])) {
				return
			}
		}
	})
	check(err)
	return m
}

func invoice(ctx context.Context, tx pgx.Tx, m outbox.Message) error {
	_, err := tx.Exec(ctx, `insert into invoices (order_id, version) values ($1, $2)`, m.AggregateID, m.Version)
	return err
}

func ExampleParse() {
	m := delivered("3")
	fmt.Println(m.AggregateType, m.AggregateID, m.Version, m.Type)
	// Prints:
	// order o-1 3 OrderMoved
}

func ExampleConsumer_Process() {
	ctx := context.Background()
	consumer, err := outbox.NewConsumer(db, outbox.ConsumerOptions{Name: "billing"})
	check(err)
	first, second, third := delivered("1"), delivered("2"), delivered("3")
	for _, m := range []outbox.Message{first, first, third, second, third} {
		result, err := consumer.Process(ctx, m, invoice)
		check(err) // otherwise commit the offset
		fmt.Println(m.Version, result.Outcome, result.Reason)
	}
	// Prints:
	// 1 applied
	// 1 duplicate
	// 3 parked gap
	// 2 applied
	// 3 duplicate
}

func ExampleConsumer_ProcessTx() {
	ctx := context.Background()
	consumer, err := outbox.NewConsumer(db, outbox.ConsumerOptions{Name: "mail"})
	check(err)
	tx, err := db.Begin(ctx)
	check(err)
	defer func() { _ = tx.Rollback(ctx) }()
	result, err := consumer.ProcessTx(ctx, tx, delivered("1"), invoice)
	check(err)
	fmt.Println(result.Outcome, tx.Commit(ctx))
	// Prints:
	// applied <nil>
}

func ExampleConsumer_ProcessBatch() {
	consumer, err := outbox.NewConsumer(db, outbox.ConsumerOptions{Name: "search"})
	check(err)
	results, err := consumer.ProcessBatch(context.Background(), []outbox.Message{delivered("1"), delivered("2")}, invoice)
	fmt.Println(len(results), err) // so many offsets may be committed
	// Prints:
	// 2 <nil>
}

func ExampleConsumer_Resume() {
	ctx := context.Background()
	consumer, err := outbox.NewConsumer(db, outbox.ConsumerOptions{Name: "stock"})
	check(err)
	_, err = consumer.Process(ctx, delivered("1"), func(context.Context, pgx.Tx, outbox.Message) error {
		return outbox.Permanent(fmt.Errorf("unknown article"))
	})
	check(err)
	parked, err := consumer.Parked(ctx, outbox.ParkedFilter{Reasons: []outbox.Reason{outbox.Failed}})
	check(err)
	fmt.Println(parked[0].Message.AggregateID, parked[0].Err)
	report, err := consumer.Resume(ctx, invoice, outbox.ParkedFilter{AggregateType: "order", AggregateID: "o-1"})
	fmt.Println(report.Applied, err)
	// Prints:
	// o-1 unknown article
	// 1 <nil>
}

func ExampleConsumer_Discard() {
	ctx := context.Background()
	consumer, err := outbox.NewConsumer(db, outbox.ConsumerOptions{Name: "audit", MaxAttempts: 1})
	check(err)
	m := delivered("1")
	_, err = consumer.Process(ctx, m, func(context.Context, pgx.Tx, outbox.Message) error { return io.ErrUnexpectedEOF })
	check(err)
	fmt.Println(consumer.Discard(ctx, m.ID, "sent by mistake"))
	// Prints:
	// <nil>
}

func ExampleConsumer_Sweep() {
	consumer, err := outbox.NewConsumer(db, outbox.ConsumerOptions{Name: "billing", Floor: 30 * 24 * time.Hour})
	check(err)
	report, err := consumer.Sweep(context.Background(), outbox.SweepPolicy{Processed: 60 * 24 * time.Hour, Resolved: 30 * 24 * time.Hour}, true)
	fmt.Println(report.Processed, err)
	// Prints:
	// 0 <nil>
}

func ExampleConsumer_Stats() {
	consumer, err := outbox.NewConsumer(db, outbox.ConsumerOptions{Name: "billing"})
	check(err)
	stats, err := consumer.Stats(context.Background())
	fmt.Println(stats.Parked[outbox.Gap], err)
	// Prints:
	// 0 <nil>
}

// TestExamples runs the examples on a database and compares what they print with
// their comments. They share it, and the standard output, so they run in order.
func TestExamples(t *testing.T) {
	dsn := testkit.Postgres(t, 0).NewDB(t)
	testkit.Exec(t, dsn, "create table orders (id text primary key, version bigint)", "create table invoices (order_id text, version bigint)")
	db = testkit.Connect(t, dsn)
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	run := []string{}
	for _, e := range []struct {
		name string
		f    func()
	}{
		{"Migrate", ExampleMigrate}, {"SQL", ExampleSQL}, {"Statements", ExampleStatements}, {"FS", ExampleFS},
		{"RunTx", ExampleRunTx}, {"Writer_Write", ExampleWriter_Write}, {"Writer_WriteSQL", ExampleWriter_WriteSQL},
		{"Writer_Copy", ExampleWriter_Copy}, {"NextVersions", ExampleNextVersions}, {"DeriveID", ExampleDeriveID},
		{"BeginWith", ExampleBeginWith}, {"Parse", ExampleParse}, {"Consumer_Process", ExampleConsumer_Process},
		{"Consumer_ProcessTx", ExampleConsumer_ProcessTx}, {"Consumer_ProcessBatch", ExampleConsumer_ProcessBatch},
		{"Consumer_Resume", ExampleConsumer_Resume}, {"Consumer_Discard", ExampleConsumer_Discard},
		{"Consumer_Sweep", ExampleConsumer_Sweep}, {"Consumer_Stats", ExampleConsumer_Stats},
	} {
		run = append(run, e.name)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout = w
		e.f()
		os.Stdout = stdout
		w.Close()
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(string(source), "func Example"+e.name+"() {\n")
		body, _, _ = strings.Cut(body, "\n}\n")
		_, want, _ := strings.Cut(body, "// Prints:\n")
		trim := func(s string) (lines []string) {
			for line := range strings.Lines(s) {
				lines = append(lines, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "//")))
			}
			return lines
		}
		if got, want := trim(string(b)), trim(want); !slices.Equal(got, want) {
			t.Errorf("%s prints %q, want %q", e.name, got, want)
		}
	}
	if got := strings.Count(string(source), "\nfunc Example"); got != len(run) {
		t.Errorf("%d examples, %d of them run", got, len(run))
	}
}
