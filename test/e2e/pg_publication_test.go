package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/testkit"
)

// TestPublicationBroken: when rows may be missing from the stream without a
// word, the relay holds within a poll interval, says why, and confirms nothing
// from then on, also if what was dropped is there again.
func TestPublicationBroken(t *testing.T) {
	t.Parallel()
	faults := []struct {
		name, sql, reason, detail string
	}{
		{"dropped", `drop publication PUB`, "publication", "exist"},
		{"made anew", `drop publication PUB; create publication PUB for table out with (publish = 'insert')`, "publication", "was dropped and made anew"},
		{"table taken out", `alter publication PUB drop table out`, "publication", "table public.out is not in publication"},
		{"taken out and put back", `alter publication PUB drop table out; alter publication PUB add table out`, "publication", "was taken out of publication"},
		{"inserts off", `alter publication PUB set (publish = 'delete')`, "publication", "does not publish inserts"},
		{"table made anew", `drop table out; create table out (id uuid primary key default gen_random_uuid(), aggregatetype text, aggregateid text, type text, payload json); alter publication PUB add table out`, "table", "was dropped and made anew"},
		{"table gone", `drop table out`, "table", "does not exist"},
	}
	onMajors(t, func(t *testing.T, major int) {
		for _, f := range faults {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				o := bareDebezium(t, testkit.Postgres(t, major).NewDB(t))
				o.singleTopic("order")
				var flags []string
				if major != 18 || f.name != "dropped" { // there the default is proven
					flags = append(flags, "--poll-interval", "1s")
				}
				r := o.start(flags...)
				o.debezium(o.db, "out", "a", 1)
				r.awaitPublished(1)
				r.await("a first look", func(s admin.Status) bool { return s.PublicationOK != nil && *s.PublicationOK })
				o.awaitConfirmed()
				for _, sql := range strings.Split(strings.ReplaceAll(f.sql, "PUB", o.slot), "; ") {
					o.exec(sql)
				}
				if f.name != "table gone" {
					o.debezium(o.db, "out", "a", 2)
				}
				testkit.AwaitWithin(t, 15*time.Second, "readyz with reason "+f.reason, func() bool {
					code, body := r.readyz("")
					return code == 503 && body.Reason == f.reason && body.State == "holding"
				})
				s, _ := r.status()
				if !strings.Contains(content(text(s.Detail)), f.detail) || s.Hint == nil {
					t.Errorf("detail %q, hint %q; want %q and a hint", content(text(s.Detail)), content(text(s.Hint)), f.detail)
				}
				r.await("publication_ok false", func(s admin.Status) bool { return !s.Ready && !*s.PublicationOK })
				held := o.confirmed()
				o.exec(`create table noise as select generate_series(1, 1000)`)
				since := time.Now()
				looks := 0
				r.await("two more looks", func(s admin.Status) bool {
					if s.PolledAt != nil && s.PolledAt.After(since) {
						since, looks = *s.PolledAt, looks+1
					}
					return looks >= 2
				})
				if now := o.confirmed(); now != held {
					t.Errorf("confirmed %s while holding at %s", now, held)
				}
				if code, body := r.readyz("?standby=ok"); code != 503 {
					t.Errorf("readyz of a standby: %d %+v", code, body)
				}
				r.stop()
			})
		}
	})
}

// TestWidePublication: a publication that an administrator made wider than the
// outbox, and for all operations. What is not an insert into the outbox is
// counted and ignored, and holds nothing back.
func TestWidePublication(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		o := bareOutbox(t, testkit.Postgres(t, major).NewDB(t), testkit.Kafka(t).Addr())
		o.table = "public.out"
		o.debeziumTable("out", "json")
		o.exec(`create table noise (id int primary key, x text)`)
		o.exec(`create publication ` + o.slot + ` for table out, noise`)
		o.exec(`select pg_create_logical_replication_slot('` + o.slot + `', 'pgoutput')`)
		if _, stderr, code := o.run("init"); code != 4 || !strings.Contains(stderr, "publishes insert, update, delete, truncate") {
			t.Errorf("init with a wide publication: exit %d\n%s", code, stderr)
		}
		o.singleTopic("order")
		r := o.start()
		r.awaitReady()
		o.exec(`do $$ begin for n in 1..1000 loop insert into noise values (n, 'x'); commit; end loop; end $$`)
		testkit.AwaitWithin(t, 15*time.Second, "confirmation of noise", func() bool {
			return query[bool](o, `select confirmed_flush_lsn > pg_current_wal_insert_lsn() - 100000 from pg_replication_slots where slot_name = $1`, o.slot)
		})
		o.awaitConfirmed()
		o.debezium(o.db, "out", "a", 1, 2)
		o.exec(`update out set payload = '{"n": 9}'`)
		o.exec(`update out set id = gen_random_uuid()`)
		o.exec(`delete from out where aggregateid = 'a'`)
		o.exec(`truncate out, noise cascade`)
		o.debezium(o.db, "out", "a", 3)
		r.awaitPublished(3)
		o.awaitConfirmed()
		o.wantRecords("order", "a 1", "a 2", "a 3")
		s, _ := r.status()
		// Four updates, two deletes, one truncate.
		if s.Ignored["not_insert"] != 7 || s.Ignored["other_table"] != 1000 || s.Received != 3 {
			t.Errorf("ignored %v, received %d", s.Ignored, s.Received)
		}
		if s, _ := r.status(); !s.Ready {
			t.Errorf("not ready: %s", content(text(s.Detail)))
		}
		_, metrics, err := r.get("/metrics")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			fmt.Sprintf(`walpost_events_ignored_total{reason="not_insert",slot="%s"} 7`, o.slot),
			fmt.Sprintf(`walpost_events_ignored_total{reason="other_table",slot="%s"} 1000`, o.slot),
			fmt.Sprintf(`walpost_events_published_total{slot="%s",topic="%s"} 3`, o.slot, o.topic("order")),
		} {
			if !strings.Contains(string(metrics), want+"\n") {
				t.Errorf("no line %s", want)
			}
		}
	})
}

// TestAllTablesPublication: every table of the database, now and later.
func TestAllTablesPublication(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		o := bareOutbox(t, testkit.Postgres(t, major).NewDB(t), testkit.Kafka(t).Addr())
		o.table = "public.out"
		o.debeziumTable("out", "json")
		o.exec(`create publication ` + o.slot + ` for all tables`)
		o.exec(`select pg_create_logical_replication_slot('` + o.slot + `', 'pgoutput')`)
		o.singleTopic("order")
		r := o.start()
		o.debezium(o.db, "out", "a", 1)
		o.exec(`create table later as select generate_series(1, 10) as n`)
		o.exec(`insert into later values (11)`)
		o.debezium(o.db, "out", "a", 2)
		r.awaitPublished(2)
		o.awaitConfirmed()
		o.wantRecords("order", "a 1", "a 2")
	})
}

// TestQuietOutbox: other tables' WAL is not held back by an outbox into which
// nothing is written.
func TestQuietOutbox(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		o := newOutbox(t, major)
		r := o.start()
		r.awaitReady()
		o.exec(`create table noise (x text)`)
		before := query[string](o, `select pg_current_wal_insert_lsn()::text`)
		for range 10 {
			o.exec(`insert into noise select repeat('x', 1000) from generate_series(1, 10000)`)
			o.exec(`truncate noise`)
		}
		if written := query[int64](o, `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), $1::pg_lsn)::bigint`, before); written < 100<<20 {
			t.Fatalf("%d bytes of WAL, want 100 MB", written)
		}
		testkit.AwaitWithin(t, 10*time.Second, "less than 1 MB of lag", func() bool {
			return query[int64](o, `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), confirmed_flush_lsn)::bigint from pg_replication_slots where slot_name = $1`, o.slot) < 1<<20
		})
		if s, _ := r.status(); !s.Ready || s.Published.Events != 0 {
			t.Errorf("ready %v, %d events published", s.Ready, s.Published.Events)
		}
	})
}
