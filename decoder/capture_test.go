//go:build capture

package decoder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// captureSQL is run statement by statement in a new database; then its WAL is
// read. Statements are parted by lines that hold only "--".
const captureSQL = `
create type mood as enum ('sad', 'ok')
--
create domain positive as integer check (value > 0)
--
create table outbox_events (event_id uuid primary key, aggregate_type text not null, aggregate_id text not null,
  event_type text, schema_version integer not null default 1, payload jsonb, occurred_at timestamptz, tenant_id text)
--
create table types (id bigint primary key, i2 smallint, i4 integer, i8 bigint, f8 double precision, n numeric(12,4), b boolean,
  t text, v varchar(20), c char(4), y bytea, u uuid, j json, jb jsonb, d date, ti time, ts timestamp, tz timestamptz, iv interval,
  a integer[], ip inet, m mood, p positive, bits bit(4), dropped text, gen integer generated always as (i2 * 2) stored)
--
alter table types drop column dropped
--
create table toasted (id integer primary key, n integer, big text)
--
alter table toasted alter column big set storage external
--
create table full_identity (id integer, v text)
--
alter table full_identity replica identity full
--
create table part_leaf (id integer, day date, v text) partition by range (day)
--
create table part_leaf_1 partition of part_leaf for values from ('2026-01-01') to ('2026-02-01')
--
create table part_leaf_2 (v text, day date not null, id integer)
--
alter table part_leaf attach partition part_leaf_2 for values from ('2026-02-01') to ('2026-03-01')
--
create table part_root (id integer, day date, v text) partition by range (day)
--
create table part_root_1 partition of part_root for values from ('2026-01-01') to ('2026-02-01')
--
create table part_root_2 (v text, day date not null, id integer)
--
alter table part_root attach partition part_root_2 for values from ('2026-02-01') to ('2026-03-01')
--
create publication capture for table outbox_events, types, toasted, full_identity, part_leaf
--
create publication capture_root for table part_root with (publish_via_partition_root = true)
--
select pg_replication_origin_create('elsewhere')
--
select pg_create_logical_replication_slot('walpost_capture', 'pgoutput')
--
insert into outbox_events values ('01942f5e-0000-7000-8000-000000000001', 'order', 'o-1', 'order_created', 1, '{"n": 1, "name": "Zoë 🚚 東京"}', '2026-12-02 05:14:00.123456+00', 'acme')
--
insert into outbox_events select format('01942f5e-0000-7000-8000-0000000001%s', lpad(i::text, 2, '0'))::uuid, 'order', 'o-' || i % 3, 'order_paid', 1,
  jsonb_build_object('i', i), '2026-12-02 05:14:00+00', null from generate_series(1, 5) i
--
insert into types (id, i2, i4, i8, f8, n, b, t, v, c, y, u, j, jb, d, ti, ts, tz, iv, a, ip, m, p, bits) values
  (1, -32768, 2147483647, -9223372036854775808, 0.1, 12345678.9, true, E'tab\tnewline\nquote''', 'ü', 'ab', '\x00ff5c', '01942f5e-0000-7000-8000-000000000002',
   '{"b":1,  "a":[ ]}', '{"b":1,  "a":[ ]}', '2026-12-02', '23:59:59.999999', '2026-12-02 05:14:00', '2026-12-02 05:14:00+05:30', '1 year 2 days 03:04:05',
   '{1,NULL,3}', '10.0.0.0/8', 'ok', 7, '1010')
--
insert into types (id, f8, d, ts, tz, t) values (2, 'NaN', 'infinity', '0044-03-15 12:00:00 BC', '-infinity', '')
--
insert into types (id) values (3)
--
begin; savepoint a; insert into outbox_events values ('01942f5e-0000-7000-8000-000000000201', 'order', 'o-1', 'rolled_back'); rollback to a;
  insert into outbox_events values ('01942f5e-0000-7000-8000-000000000202', 'order', 'o-1', 'kept'); savepoint b;
  insert into outbox_events values ('01942f5e-0000-7000-8000-000000000203', 'order', 'o-1', 'released'); release b; commit
--
begin; insert into outbox_events values ('01942f5e-0000-7000-8000-000000000301', 'order', 'o-1', 'aborted'); rollback
--
insert into toasted values (1, 1, rpad('', 3000, 'abcdefghij'))
--
update toasted set n = 2 where id = 1
--
update toasted set id = 2 where id = 1
--
delete from toasted where id = 2
--
insert into full_identity values (1, 'a'), (2, null)
--
update full_identity set v = 'b' where id = 1
--
delete from full_identity where id = 2
--
insert into part_leaf values (1, '2026-01-15', 'a'), (2, '2026-02-15', 'b'), (3, '2026-01-16', 'c')
--
insert into part_root values (1, '2026-01-15', 'a'), (2, '2026-02-15', 'b'), (3, '2026-01-16', 'c')
--
select pg_logical_emit_message(false, 'walpost', 'alone')
--
begin; insert into outbox_events values ('01942f5e-0000-7000-8000-000000000401', 'order', 'o-1', 'before'); select pg_logical_emit_message(true, 'walpost', 'inside ünïcode');
  insert into outbox_events values ('01942f5e-0000-7000-8000-000000000402', 'order', 'o-1', 'after'); commit
--
select pg_logical_emit_message(true, '', '')
--
begin; select pg_logical_emit_message(false, 'walpost', 'of a rolled-back transaction'); rollback
--
begin; insert into outbox_events values ('01942f5e-0000-7000-8000-000000000501', 'order', 'o-2', 'old shape');
  alter table outbox_events add column traceparent text default '00-aa-bb-01';
  insert into outbox_events values ('01942f5e-0000-7000-8000-000000000502', 'order', 'o-2', 'added');
  alter table outbox_events rename column tenant_id to tenant;
  insert into outbox_events values ('01942f5e-0000-7000-8000-000000000503', 'order', 'o-2', 'renamed');
  alter table outbox_events alter column schema_version type text;
  insert into outbox_events values ('01942f5e-0000-7000-8000-000000000504', 'order', 'o-2', 'retyped');
  alter table outbox_events drop column traceparent;
  insert into outbox_events values ('01942f5e-0000-7000-8000-000000000505', 'order', 'o-2', 'dropped'); commit
--
select pg_replication_origin_session_setup('elsewhere')
--
begin; select pg_replication_origin_xact_setup('0/ABCDEF', '2026-12-01 00:00:00+00'); insert into outbox_events values ('01942f5e-0000-7000-8000-000000000601', 'order', 'o-1', 'replicated'); commit
--
select pg_replication_origin_session_reset()
--
begin; insert into outbox_events values ('01942f5e-0000-7000-8000-000000000701', 'order', 'o-1', 'deleted at once'); delete from outbox_events where event_id = '01942f5e-0000-7000-8000-000000000701'; commit
--
copy outbox_events (event_id, aggregate_type, aggregate_id, event_type, payload) from stdin
--
truncate toasted, full_identity restart identity cascade
`

const captureCopy = `01942f5e-0000-7000-8000-000000000801	order	o-1	copied	{"i":1}
01942f5e-0000-7000-8000-000000000802	order	o-2	copied	\N
01942f5e-0000-7000-8000-000000000803	order	o-3	copied	{"i":3}
`

// TestCapture is a tool, not a test, and is only built with the tag capture: it
// writes testdata/wal/pgNN.bin from the server of WALPOST_TEST_DSN, a
// superuser's, with wal_level=logical. It makes a database of its own and drops
// it again. Run it once per major version, then let the tests render the files:
//
//	WALPOST_TEST_DSN=… go test -tags capture ./decoder -run TestCapture
//	go test ./decoder -run TestServers -update
func TestCapture(t *testing.T) {
	dsn := os.Getenv("WALPOST_TEST_DSN")
	if dsn == "" {
		t.Fatal("set WALPOST_TEST_DSN to the server to capture from")
	}
	ctx := context.Background()
	admin := connect(t, dsn, "", false)
	exec(t, admin, "drop database if exists walpost_capture")
	exec(t, admin, "create database walpost_capture")
	t.Cleanup(func() { exec(t, admin, "drop database walpost_capture") })
	t.Cleanup(func() { exec(t, admin, "select pg_replication_origin_drop('elsewhere')") })

	db := connect(t, dsn, "walpost_capture", false)
	t.Cleanup(func() {
		exec(t, db, "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = 'walpost_capture'")
		_ = db.Close(ctx)
	})
	for _, sql := range strings.Split(captureSQL, "\n--\n") {
		if strings.HasPrefix(sql, "copy ") {
			if _, err := db.CopyFrom(ctx, strings.NewReader(captureCopy), sql); err != nil {
				t.Fatal(err)
			}
			continue
		}
		exec(t, db, sql)
	}
	rows := exec(t, db, "select pg_current_wal_lsn(), current_setting('server_version_num')::int / 10000")
	end, err := pglogrepl.ParseLSN(string(rows[0][0]))
	if err != nil {
		t.Fatal(err)
	}

	var file []byte
	repl := connect(t, dsn, "walpost_capture", true)
	for _, w := range stream(t, repl, end) {
		file = appendWAL(file, w)
	}
	if err := repl.Close(ctx); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join("testdata", "wal", fmt.Sprintf("pg%s.bin", rows[0][1]))
	if err := os.WriteFile(name, file, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d bytes", name, len(file))
}

func connect(t *testing.T, dsn, database string, replication bool) *pgconn.PgConn {
	t.Helper()
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if database != "" {
		cfg.Database = database
	}
	if replication {
		cfg.RuntimeParams["replication"] = "database"
	}
	// As the relay pins them: a value's text must not depend on the server's settings.
	cfg.RuntimeParams["datestyle"] = "ISO"
	cfg.RuntimeParams["timezone"] = "UTC"
	cfg.RuntimeParams["bytea_output"] = "hex"
	cfg.RuntimeParams["extra_float_digits"] = "3"
	cfg.RuntimeParams["intervalstyle"] = "postgres"
	conn, err := pgconn.ConnectConfig(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// exec runs statements and gives the rows of the last one.
func exec(t *testing.T, conn *pgconn.PgConn, sql string) [][][]byte {
	t.Helper()
	results, err := conn.Exec(context.Background(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return results[len(results)-1].Rows
}

// stream reads everything that was committed before end.
func stream(t *testing.T, conn *pgconn.PgConn, end pglogrepl.LSN) []walMessage {
	t.Helper()
	ctx := context.Background()
	err := pglogrepl.StartReplication(ctx, conn, "walpost_capture", 0, pglogrepl.StartReplicationOptions{
		PluginArgs: []string{"proto_version '1'", "publication_names 'capture,capture_root'", "messages 'true'"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out []walMessage
	for {
		raw, err := conn.ReceiveMessage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cd, ok := raw.(*pgproto3.CopyData)
		if !ok {
			t.Fatalf("unexpected message %#v", raw)
		}
		switch cd.Data[0] {
		case pglogrepl.PrimaryKeepaliveMessageByteID:
			ka, err := pglogrepl.ParsePrimaryKeepaliveMessage(cd.Data[1:])
			if err != nil {
				t.Fatal(err)
			}
			if ka.ServerWALEnd >= end {
				return out
			}
			status := pglogrepl.StandbyStatusUpdate{WALWritePosition: ka.ServerWALEnd, ReplyRequested: true}
			if err := pglogrepl.SendStandbyStatusUpdate(ctx, conn, status); err != nil {
				t.Fatal(err)
			}
		case pglogrepl.XLogDataByteID:
			x, err := pglogrepl.ParseXLogData(cd.Data[1:])
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, walMessage{x.WALStart, append([]byte(nil), x.WALData...)})
		}
	}
}
