package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/walpost/walpost/internal/testkit"
)

// TestDDL: each change of the table takes effect with the first row behind it,
// and not before, also for rows that are read later.
func TestDDL(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		o := bareDebezium(t, testkit.Postgres(t, major).NewDB(t))
		o.singleTopic("order")
		type step struct {
			name, ddl, columns, values string
			want                       string // value and headers
		}
		steps := []step{
			{"start", "", "", "", `{ "n":1 }`},
			{"optional column", `alter table out add tenant text default 'none'`, "tenant", "'acme'", `{ "n":1 } tenant=acme`},
			{"column in front of others", `alter table out add traceparent text`, "tenant, traceparent", "'acme', 'tp'", `{ "n":1 } traceparent=tp tenant=acme`},
			{"renamed", `alter table out rename traceparent to tracestate`, "tenant, tracestate", "'acme', 'ts'", `{ "n":1 } tracestate=ts tenant=acme`},
			{"unknown column", `alter table out add secret text, add generated int generated always as (1) stored`, "secret", "'x'", `{ "n":1 } tenant=none`},
			{"dropped", `alter table out drop tenant`, "tracestate", "'ts'", `{ "n":1 } tracestate=ts`},
			{"rewritten", `alter table out alter payload type jsonb`, "", "", `{"n": 1}`},
			{"rewritten to text", `alter table out alter payload type text`, "", "", `{ "n":1 }`},
			{"rewritten to bytea", `alter table out alter payload type bytea using convert_to(payload, 'UTF8')`, "", "", `{ "n":1 }`},
			{"wider key", `alter table out alter aggregateid type varchar(100), alter payload type json using convert_from(payload, 'UTF8')::json`, "", "", `{ "n":1 }`},
			{"full", `vacuum full out`, "", "", `{ "n":1 }`},
		}
		write := func(s step) {
			t.Helper()
			if s.ddl != "" {
				o.exec(s.ddl)
			}
			columns, values := "", ""
			if s.columns != "" {
				columns, values = ", "+s.columns, ", "+s.values
			}
			o.exec(`insert into out (aggregatetype, aggregateid, type, payload` + columns + `) values ('order', '1', 'Made', '{ "n":1 }'` + values + `)`)
		}
		check := func(steps []step, from int) {
			t.Helper()
			records := o.read("order")
			if len(records) != from+len(steps) {
				t.Fatalf("%d records, want %d", len(records), from+len(steps))
			}
			for i, s := range steps {
				rec := records[from+i]
				got := strings.Join(append([]string{content(rec.Value)}, headers(rec)[3:]...), " ")
				if diff := cmp.Diff(s.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", s.name, diff)
				}
			}
		}
		r := o.start()
		for i, s := range steps {
			write(s)
			r.awaitPublished(uint64(i + 1))
		}
		check(steps, 0)
		r.stop()

		// All of it again, read afterwards: the catalog is then another one.
		again := []step{
			{"start again", "", "", "", `{ "n":1 }`},
			{"added", `alter table out add tenant text`, "tenant", "'acme'", `{ "n":1 } tenant=acme`},
			{"rewritten again", `alter table out alter payload type jsonb`, "tenant", "'acme'", `{"n": 1} tenant=acme`},
			{"renamed away", `alter table out rename tenant to other`, "other", "'acme'", `{"n": 1}`},
		}
		for _, s := range again {
			write(s)
		}
		// The same inside one transaction.
		tx, err := o.db.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range []string{
			`insert into out (aggregatetype, aggregateid, type, payload, other) values ('order', '1', 'Made', '{"n": 2}', 'x')`,
			`alter table out rename other to tenant`,
			`insert into out (aggregatetype, aggregateid, type, payload, tenant) values ('order', '1', 'Made', '{"n": 3}', 'y')`,
		} {
			if _, err := tx.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		again = append(again, step{name: "before, in a transaction", want: `{"n": 2}`}, step{name: "behind, in a transaction", want: `{"n": 3} tenant=y`})
		r = o.start()
		r.awaitPublished(uint64(len(again)))
		check(again, len(steps))
		r.stop()
	})
}

// TestRequiredColumnDropped: without a column that every event needs nothing
// goes on, the status names table, column and LSN, and nothing is confirmed.
func TestRequiredColumnDropped(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		o := bareDebezium(t, testkit.Postgres(t, major).NewDB(t))
		o.singleTopic("order")
		r := o.start()
		o.debezium(o.db, "out", "a", 1)
		r.awaitPublished(1)
		o.awaitConfirmed()
		o.exec(`alter table out rename aggregateid to customer`)
		o.exec(`insert into out (aggregatetype, customer, payload) values ('order', 'a', '{"n": 2}')`)
		s := r.awaitReason("mapping")
		if s.Detail == nil || !strings.Contains(*s.Detail, "public.out") || !strings.Contains(*s.Detail, "aggregateid") {
			t.Errorf("detail is %q, want table and column", content(text(s.Detail)))
		}
		if s.Detail == nil || !strings.Contains(*s.Detail, "0/") {
			t.Errorf("detail is %q, want the LSN", content(text(s.Detail)))
		}
		if s.Hint == nil {
			t.Error("no hint")
		}
		held := o.confirmed()
		o.exec(`create table noise as select 1`)
		// A restart changes nothing: it is not set up any more, and says so.
		r.signal(15)
		r.wait()
		r = o.start()
		r.wantExit(2, "aggregateid", "map the columns")
		if now := o.confirmed(); now != held {
			t.Errorf("confirmed %s while holding at %s", now, held)
		}
		o.exec(`alter table out rename customer to aggregateid`)
		o.debezium(o.db, "out", "a", 3)
		r = o.start()
		r.awaitReason("mapping") // the row of that time still has no such column
		o.wantRecords("order", "a 1")
	})
}

func text(s *string) []byte {
	if s == nil {
		return nil
	}
	return []byte(*s)
}

// TestRejectedRow: a row that makes no event holds; it is named, what came before
// it is delivered and confirmed, and a stop is not held up.
func TestRejectedRow(t *testing.T) {
	t.Parallel()
	o := bareDebezium(t, testkit.Postgres(t, 18).NewDB(t))
	o.singleTopic("order")
	r := o.start()
	o.debezium(o.db, "out", "a", 1)
	o.exec(`insert into out values ('` + goldenID + `', 'order', null, 'Made', '{"n": 2}')`)
	o.debezium(o.db, "out", "a", 3)
	s := r.awaitReason("poison")
	if p := s.Poison; p == nil || p.EventID != goldenID || p.Table != "public.out" || !strings.HasPrefix(p.CommitLSN, "0/") ||
		!strings.Contains(p.Reason, "column aggregateid: NULL") {
		t.Errorf("poison is %+v", p)
	}
	r.awaitPublished(1)
	o.wantRecords("order", "a 1")
	r.stop() // and is not held up by it
	r = o.start()
	r.awaitReason("poison")
	if n := len(o.read("order")); n != 1 {
		t.Errorf("%d records, want 1: what was delivered is confirmed", n)
	}
}
