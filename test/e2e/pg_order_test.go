package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/testkit"
)

// TestTransactionShapes: commit order across transactions, statement order
// inside, and nothing of what was rolled back, for each way to write rows.
func TestTransactionShapes(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		o := bareDebezium(t, testkit.Postgres(t, major).NewDB(t))
		o.singleTopic("order")
		r := o.start()
		other := testkit.Connect(t, o.dsn)
		run := func(q querier, statements ...string) {
			t.Helper()
			for _, sql := range statements {
				if _, err := q.Exec(t.Context(), sql); err != nil {
					t.Fatalf("%s: %v", sql, err)
				}
			}
		}
		begin := func(c *pgx.Conn) pgx.Tx {
			t.Helper()
			tx, err := c.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return tx
		}
		commit := func(tx pgx.Tx) {
			t.Helper()
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		steps := []struct {
			name string
			do   func()
			want []string
		}{
			{"several rows", func() { o.debezium(o.db, "out", "rows", 1, 2, 3, 4) },
				[]string{"rows 1", "rows 2", "rows 3", "rows 4"}},
			{"interleaved", func() {
				late, early := begin(o.db), begin(other)
				o.debezium(late, "out", "late", 1)
				o.debezium(early, "out", "early", 1)
				o.debezium(late, "out", "late", 2)
				o.debezium(early, "out", "early", 2)
				commit(early)
				o.debezium(late, "out", "late", 3)
				commit(late)
			}, []string{"early 1", "early 2", "late 1", "late 2", "late 3"}},
			{"rolled back", func() {
				tx := begin(o.db)
				o.debezium(tx, "out", "lost", 1)
				if err := tx.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
			}, nil},
			{"savepoints", func() {
				tx := begin(o.db)
				o.debezium(tx, "out", "save", 1)
				run(tx, "savepoint a")
				o.debezium(tx, "out", "save", 2)
				run(tx, "savepoint b")
				o.debezium(tx, "out", "save", 3)
				run(tx, "rollback to b")
				o.debezium(tx, "out", "save", 4)
				run(tx, "release b", "savepoint c", "savepoint d")
				o.debezium(tx, "out", "save", 5)
				run(tx, "release d", "rollback to c")
				o.debezium(tx, "out", "save", 6)
				commit(tx)
				tx = begin(o.db)
				run(tx, "savepoint e")
				o.debezium(tx, "out", "save", 7)
				run(tx, "rollback to e")
				commit(tx)
			}, []string{"save 1", "save 2", "save 4", "save 6"}},
			{"exception block", func() {
				run(o.db, `do $$ begin
					insert into out (aggregatetype, aggregateid, payload) values ('order', 'block', '{"n": 1}');
					begin
						insert into out (aggregatetype, aggregateid, payload) values ('order', 'block', '{"n": 2}');
						raise exception 'no';
					exception when raise_exception then
						insert into out (aggregatetype, aggregateid, payload) values ('order', 'block', '{"n": 3}');
					end;
				end $$`)
			}, []string{"block 1", "block 3"}},
			{"prepared", func() {
				tx := begin(o.db)
				o.debezium(tx, "out", "prepared", 1)
				run(tx, "prepare transaction '"+o.slot+"_a'")
				_ = tx.Rollback(t.Context())
				tx = begin(o.db)
				o.debezium(tx, "out", "prepared", 2)
				run(tx, "prepare transaction '"+o.slot+"_b'")
				_ = tx.Rollback(t.Context())
				o.debezium(other, "out", "meanwhile", 1)
				run(o.db, "rollback prepared '"+o.slot+"_b'", "commit prepared '"+o.slot+"_a'")
			}, []string{"meanwhile 1", "prepared 1"}},
			{"inserted and deleted", func() {
				tx := begin(o.db)
				o.debezium(tx, "out", "gone", 1, 2)
				run(tx, "delete from out where aggregateid = 'gone'")
				o.debezium(tx, "out", "gone", 3)
				commit(tx)
			}, []string{"gone 1", "gone 2", "gone 3"}},
			{"conflict", func() {
				const id = "'00000000-0000-4000-8000-000000000001'"
				run(o.db, `insert into out values (`+id+`, 'order', 'conflict', 'Created', '{"n": 1}')`,
					`insert into out values (`+id+`, 'order', 'conflict', 'Created', '{"n": 2}') on conflict do nothing`,
					`insert into out values (`+id+`, 'order', 'conflict', 'Created', '{"n": 3}') on conflict (id) do update set payload = excluded.payload`)
			}, []string{"conflict 1"}},
		}
		var want []string
		for _, s := range steps {
			s.do()
			want = append(want, s.want...)
			r.awaitPublished(uint64(len(want)))
			o.awaitConfirmed()
			if diff := cmp.Diff(want, labels(t, o.read("order"))); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", s.name, diff)
			}
		}
		r.stop()
	})
}

// TestCopy: rows of one COPY share LSNs, and fill several WAL records.
func TestCopy(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		o := newOutbox(t, major)
		o.singleTopic("order")
		var events []event
		var rows [][]any
		for n := range 3000 {
			e := newEvent("order", itoa(n%11), n)
			events = append(events, e)
			rows = append(rows, []any{e.id, e.aggregateType, e.aggregateID, "Created", e.payload(), "2020-01-02 03:04:05+00"})
		}
		copied, err := o.db.CopyFrom(t.Context(), pgx.Identifier{"public", "outbox_events"},
			[]string{"event_id", "aggregate_type", "aggregate_id", "event_type", "payload", "occurred_at"}, &textRows{rows: rows})
		if err != nil || copied != 3000 {
			t.Fatalf("%d rows copied, %v", copied, err)
		}
		o.insert(newEvent("order", "last", 1))
		r := o.start()
		r.awaitPublished(3001)
		r.stop()
		records := o.read("order")
		if len(records) != 3001 || string(records[3000].Key) != "last" {
			t.Fatalf("%d records, want 3000 of the copy and then one", len(records))
		}
		if repeats := check(t, records[:3000], events); repeats != 0 {
			t.Errorf("%d repeats", repeats)
		}
		for i := range 3000 {
			if id, _ := records[i].Header("id"); string(id) != events[i].id {
				t.Fatalf("record %d is event %s, want %s", i, id, events[i].id)
			}
		}
	})
}

// textRows feeds COPY with values that the driver converts.
type textRows struct {
	rows [][]any
	at   int
}

func (r *textRows) Next() bool { r.at++; return r.at <= len(r.rows) }

func (r *textRows) Values() ([]any, error) { return r.rows[r.at-1], nil }

func (r *textRows) Err() error { return nil }

// TestMessagesAreIgnored: logical messages of other programs are no events, and
// hold nothing back.
func TestMessagesAreIgnored(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		o := bareDebezium(t, testkit.Postgres(t, major).NewDB(t))
		o.singleTopic("order")
		r := o.start()
		o.exec(`select pg_logical_emit_message(true, 'outbox', '{"n": 1}'), pg_logical_emit_message(false, 'x', 'y')`)
		tx, err := o.db.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o.debezium(tx, "out", "a", 1)
		if _, err := tx.Exec(t.Context(), `select pg_logical_emit_message(true, 'x', 'y'), pg_logical_emit_message(false, 'x', 'y')`); err != nil {
			t.Fatal(err)
		}
		o.debezium(tx, "out", "a", 2)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		o.exec(`select pg_logical_emit_message(true, 'x', 'y')`)
		r.awaitPublished(2)
		o.awaitConfirmed()
		o.wantRecords("order", "a 1", "a 2")
	})
}

// TestRepeatedStops: a stop in the middle of traffic confirms what it has
// delivered; the next process repeats nothing.
func TestRepeatedStops(t *testing.T) {
	t.Parallel()
	o := newOutbox(t, 15)
	o.createTopic("order")
	w := o.startTraffic("order")
	for range 5 {
		r := o.start()
		r.awaitPublished(20)
		r.stop()
	}
	w.stop()
	o.start()
	if repeats := o.checkTraffic("order"); repeats != 0 {
		t.Errorf("%d repeats after clean stops", repeats)
	}
}
