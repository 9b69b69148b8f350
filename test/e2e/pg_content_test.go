package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/topic"
)

// headers are those of a record as text, in order; null is "<null>".
func headers(r topic.Record) []string {
	var list []string
	for _, h := range r.Headers {
		value := string(h.Value)
		if h.Value == nil {
			value = "<null>"
		}
		list = append(list, h.Key+"="+value)
	}
	return list
}

// content is a value as text; null is "<null>".
func content(b []byte) string {
	if b == nil {
		return "<null>"
	}
	return string(b)
}

const goldenID = "0190d5b8-1c2d-7e3f-8a4b-5c6d7e8f9a0b"

// TestRecordOfTheOwnTable: every byte of a record of the table that init makes,
// all its columns set, text of many scripts in each.
func TestRecordOfTheOwnTable(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		o := newOutbox(t, major)
		testkit.CreateTopic(t, o.brokers, o.prefix+".all", 1)
		r := o.start("--topic", o.prefix+".all")
		tx, err := o.db.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `insert into outbox_events (event_id, aggregate_type, aggregate_id, aggregate_version, event_type, schema_version,
			payload, occurred_at, created_at, tenant_id, traceparent, tracestate, headers) values ('`+goldenID+`', 'größe', '注文-ß-🦀', 9007199254740993, 'Erzeugt ✓', 3,
			'{"b": "ü\u0041🦀", "aa": 123456789012345678901234567890.10, "a": [1, {}]}', '2020-01-02 03:04:05.678901+02', '2020-01-01', 'мир', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', 'x=Ω',
			'{"zwei": "2 ü", "drei": null, "n": 1.50, "o": {"k": [true]}}')`); err != nil {
			t.Fatal(err)
		}
		// The record's time must be that of the commit, not of the insert.
		testkit.Await(t, "some time in the transaction", func() bool {
			var later bool
			return tx.QueryRow(t.Context(), `select clock_timestamp() > now() + '20ms'`).Scan(&later) == nil && later
		})
		var before time.Time
		if err := tx.QueryRow(t.Context(), `select clock_timestamp()`).Scan(&before); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := query[time.Time](o, `select clock_timestamp()`)
		r.awaitPublished(1)
		records := testkit.ReadAll(t, o.brokers, o.prefix+".all")
		if len(records) != 1 {
			t.Fatalf("%d records, want 1", len(records))
		}
		rec := records[0]
		if string(rec.Key) != "注文-ß-🦀" {
			t.Errorf("key is %q", rec.Key)
		}
		if want := `{"a": [1, {}], "b": "üA🦀", "aa": 123456789012345678901234567890.10}`; string(rec.Value) != want {
			t.Errorf("value is\n%s, want\n%s", rec.Value, want)
		}
		if diff := cmp.Diff([]string{
			"id=" + goldenID, "aggregate_type=größe", "event_type=Erzeugt ✓", "schema_version=3", "aggregate_version=9007199254740993",
			"occurred_at=2020-01-02 01:04:05.678901+00", "traceparent=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate=x=Ω",
			"tenant_id=мир", "n=1.50", `o={"k": [true]}`, "drei=<null>", "zwei=2 ü",
		}, headers(rec)); diff != "" {
			t.Errorf("headers (-want +got):\n%s", diff)
		}
		if rec.Time.Before(before.Truncate(time.Millisecond)) || rec.Time.After(after) {
			t.Errorf("time is %v, want that of the commit, between %v and %v", rec.Time, before, after)
		}
	})
}

// TestOptionalColumns: a column that is NULL gives no header.
func TestOptionalColumns(t *testing.T) {
	t.Parallel()
	o := newOutbox(t, 18)
	o.singleTopic("order")
	o.start()
	o.exec(`insert into outbox_events (event_id, aggregate_type, aggregate_id, event_type, payload, occurred_at, tracestate)
		values ('` + goldenID + `', 'order', '1', '', '5', '2020-01-02 03:04:05+00', '')`)
	o.awaitCount("order", 1)
	rec := o.read("order")[0]
	if diff := cmp.Diff([]string{
		"id=" + goldenID, "aggregate_type=order", "event_type=", "schema_version=1", "occurred_at=2020-01-02 03:04:05+00", "tracestate=",
	}, headers(rec)); diff != "" || string(rec.Value) != "5" {
		t.Errorf("value %q, headers (-want +got):\n%s", rec.Value, diff)
	}
}

// TestPayloadTypes: the value is what PostgreSQL prints, byte by byte, for each
// type of the payload; bytea is its bytes, NULL is a tombstone. The tables have
// Debezium's columns, which need no configuration.
func TestPayloadTypes(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		const document = `{ "b":1.10,"a" : 123456789012345678901234567890,"a":2, "s":"\u00fc\n\"" }`
		tests := []struct{ name, typ, literal, want string }{
			{"p_json", "json", document, document},
			{"p_jsonb", "jsonb", document, `{"a": 2, "b": 1.10, "s": "ü\n\""}`},
			{"p_number", "jsonb", "1e20", "100000000000000000000"},
			{"p_text", "text", " two\nlines\t", " two\nlines\t"},
			{"p_empty", "text", "", ""},
			{"p_varchar", "varchar(20)", "größer als 🦀", "größer als 🦀"},
			{"p_bytea", "bytea", `\x00ff5c78`, "\x00\xff\\x"},
			{"p_bytes", "bytea", `\x`, ""},
			{"p_null", "jsonb", "null", "null"},
			{"p_nothing", "jsonb", "", "<null>"},
			{"p_no_text", "text", "", "<null>"},
			{"p_no_bytea", "bytea", "", "<null>"},
		}
		o := bareOutbox(t, testkit.Postgres(t, major).NewDB(t), testkit.Kafka(t).Addr())
		o.table = "public." + tests[0].name
		o.singleTopic("order")
		var more []string
		for i, tt := range tests {
			o.debeziumTable(tt.name, tt.typ)
			if i > 0 {
				more = append(more, "--table", "public."+tt.name)
			}
		}
		o.must(append([]string{"init"}, more...)...)
		r := o.start(more...)
		for i, tt := range tests {
			value := any(tt.literal)
			if tt.want == "<null>" {
				value = nil
			}
			o.exec(fmt.Sprintf(`insert into %s values ('00000000-0000-4000-8000-%012d', 'order', '%s', 'Made', $1::text::%s)`, tt.name, i, tt.name, tt.typ), value)
		}
		r.awaitPublished(uint64(len(tests)))
		records := o.read("order")
		if len(records) != len(tests) {
			t.Fatalf("%d records, want %d", len(records), len(tests))
		}
		for i, tt := range tests {
			rec := records[i]
			if string(rec.Key) != tt.name || content(rec.Value) != tt.want {
				t.Errorf("key %q has value %q, want %q", rec.Key, content(rec.Value), tt.want)
			}
			if diff := cmp.Diff([]string{fmt.Sprintf("id=00000000-0000-4000-8000-%012d", i), "aggregate_type=order", "event_type=Made"}, headers(rec)); diff != "" {
				t.Errorf("%s: headers (-want +got):\n%s", tt.name, diff)
			}
		}
	})
}

// mapping is a configuration of two tables of a foreign make.
const mapping = `
postgres:
  tables:
    - name: '"Sales"."Out.box"'
      columns: {id: "event uuid", aggregate_type: kind, aggregate_id: order_id, type: what, payload: body, timestamp: happened, partition: shard}
      headers:
        - Mandant
        - {column: trace, name: traceparent, required: true}
        - {column: price, name: x-price}
    - name: second
      columns: {id: no, aggregate_type: what, aggregate_id: "who", payload: "data", timestamp: millis}
`

// TestMappedTables: tables of any shape, named in a file, with headers, record
// time and partition from columns.
func TestMappedTables(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		o := bareOutbox(t, testkit.Postgres(t, major).NewDB(t), testkit.Kafka(t).Addr())
		o.table = ""
		file := filepath.Join(t.TempDir(), "walpost.yaml")
		if err := os.WriteFile(file, []byte(mapping), 0o600); err != nil {
			t.Fatal(err)
		}
		o.exec(`create schema "Sales"`)
		o.exec(`create table "Sales"."Out.box" (price numeric(10, 2), body text, what text, kind text, order_id bigint, shard int, "event uuid" uuid primary key,
			happened timestamptz, trace text not null, "Mandant" text, unused text, double numeric generated always as (price * 2) stored)`)
		o.exec(`create table second (no bigint primary key, what text, who text, data bytea, millis bigint, aggregatetype text)`)
		testkit.CreateTopic(t, o.brokers, o.topic("order"), 3)
		o.singleTopic("person")
		o.must("init", "--config", file)
		r := o.start("--config", file)
		o.exec(`insert into "Sales"."Out.box" (price, body, what, kind, order_id, shard, "event uuid", happened, trace, "Mandant", unused) values
			(1.50, 'eins', 'Made', 'order', 4711, 2, '` + goldenID + `', '2021-02-03 04:05:06.789999+05:30', 'tp', 'ä', 'x'),
			(null, 'zwei', null, 'order', 4711, 1, '00000000-0000-4000-8000-000000000002', null, '', null, 'x')`)
		o.exec(`insert into second values (7, 'person', 'Ω', '\x01ff', 1600000000123, 'not used')`)
		r.awaitPublished(3)
		type flat struct {
			Partition  int
			Key, Value string
			Headers    []string
		}
		var got []flat
		var times []time.Time
		for _, rec := range append(o.read("order"), o.read("person")...) {
			got = append(got, flat{rec.Partition, string(rec.Key), content(rec.Value), headers(rec)})
			times = append(times, rec.Time.UTC())
		}
		want := []flat{
			{1, "4711", "zwei", []string{"id=00000000-0000-4000-8000-000000000002", "aggregate_type=order", "traceparent="}},
			{2, "4711", "eins", []string{"id=" + goldenID, "aggregate_type=order", "event_type=Made", "Mandant=ä", "traceparent=tp", "x-price=1.50"}},
			{0, "Ω", "\x01\xff", []string{"id=7", "aggregate_type=person"}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("records (-want +got):\n%s", diff)
		}
		if want := time.Date(2021, 2, 2, 22, 35, 6, 789e6, time.UTC); !times[1].Equal(want) {
			t.Errorf("time is %v, want %v", times[1], want)
		}
		if want := time.UnixMilli(1600000000123).UTC(); !times[2].Equal(want) {
			t.Errorf("time is %v, want %v", times[2], want)
		}
		if now := query[time.Time](o, `select now()`); now.Sub(times[0]) > time.Hour || times[0].After(now) {
			t.Errorf("time without a value is %v, want that of the commit", times[0])
		}
	})
}

// TestRoleSettings: what an administrator sets for role and database changes no
// byte, and needs no right but REPLICATION.
func TestRoleSettings(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		o := bareOutbox(t, testkit.Postgres(t, major).NewDB(t), testkit.Kafka(t).Addr())
		o.table = ""
		file := filepath.Join(t.TempDir(), "walpost.yaml")
		if err := os.WriteFile(file, []byte("postgres: {tables: [{name: shop.out, headers: [at, f, span, raw, n]}]}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		o.exec(`create schema shop`)
		o.debeziumTable("shop.out", "bytea")
		o.exec(`alter table shop.out add at timestamptz, add f float8, add span interval, add raw bytea, add n numeric`)
		o.singleTopic("order")
		o.must("init", "--config", file)

		role := testkit.Unique("relay")
		database := query[string](o, `select current_database()`)
		o.exec(`create role ` + role + ` login replication`)
		t.Cleanup(func() { execAfter(t, testkit.Postgres(t, major).DSN("postgres"), `drop role `+role) })
		o.exec(`revoke all on schema public from public`)
		for _, who := range []string{"role " + role, "database " + database} {
			for _, setting := range []string{"datestyle = 'German, DMY'", "timezone = 'Asia/Kolkata'", "bytea_output = 'escape'", "extra_float_digits = -15",
				"intervalstyle = 'iso_8601'", "client_encoding = 'LATIN1'", "search_path = ''", "default_transaction_read_only = on", "statement_timeout = '300ms'"} {
				o.exec(`alter ` + who + ` set ` + setting)
			}
		}
		o.exec(`alter table shop.out enable row level security`)
		o.exec(`alter table shop.out force row level security`)
		least := *o
		least.dsn = testkit.Postgres(t, major).DSNAs(database, role, "")
		r := least.start("--config", file)
		o.exec(`insert into shop.out values ('` + goldenID + `', 'order', 'größe €', 'Made', '\x00ff5c', '2020-01-02 03:04:05+00', 0.1::float8 + 0.2, '1 day 02:03:04', '\x5cff', 1.10)`)
		r.awaitPublished(1)
		o.awaitConfirmed()
		rec := o.read("order")[0]
		if string(rec.Key) != "größe €" || string(rec.Value) != "\x00\xff\\" {
			t.Errorf("key %q, value %q", rec.Key, rec.Value)
		}
		if diff := cmp.Diff([]string{"id=" + goldenID, "aggregate_type=order", "event_type=Made", "at=2020-01-02 03:04:05+00",
			"f=0.30000000000000004", "span=1 day 02:03:04", `raw=\x5cff`, "n=1.10"}, headers(rec)); diff != "" {
			t.Errorf("headers (-want +got):\n%s", diff)
		}
		status, stderr, code := least.run("status", "-o", "json", "--admin-listen", "off", "--config", file)
		if code != 0 || !strings.Contains(status, `"healthy": true`) || stderr != "" {
			t.Errorf("status of the role: exit %d\n%s%s", code, status, stderr)
		}
		r.stop()
	})
}
