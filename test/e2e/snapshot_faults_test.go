package e2e

import (
	"strings"
	"testing"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/failpoint"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/pgserver"
)

// beforeSlot is an outbox with rows, a topic and no slot.
func beforeSlot(t *testing.T, dsn string, rows int) *outbox {
	t.Helper()
	o := bareOutbox(t, dsn, testkit.Kafka(t).Addr())
	o.createTopic("order")
	o.must("init", "--create-table", "--snapshot", "initial")
	if rows > 0 {
		o.insertMany("order", 1, rows, 97)
	}
	return o
}

func (o *outbox) slots() int {
	o.t.Helper()
	return query[int](o, "select count(*) from pg_replication_slots where slot_name = $1", o.slot)
}

func (r *relay) awaitStream() {
	r.t.Helper()
	r.await("the stream", func(s admin.Status) bool { return s.Slot.Streaming })
}

// TestSnapshotKilled: the relay is killed when everything is delivered and there
// is no slot, and when there is one and nothing else says so. Its successor knows
// what to do, and sends nothing twice.
func TestSnapshotKilled(t *testing.T) {
	t.Parallel()
	path := failpoints(t)
	for _, p := range failpoint.Points() {
		if p.Reach != failpoint.Snapshotting {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			o := beforeSlot(t, testkit.Postgres(t, kafkaMajor).NewDB(t), 500)
			r := o.startBinary(path, []string{failpoint.Env + "=" + p.Name + "=crash"}, "--snapshot", "initial")
			r.died(p.Name)
			o.insertMany("order", 501, 100, 97)
			r = o.start("--snapshot", "initial")
			r.awaitStream()
			o.insertMany("order", 601, 10, 97)
			o.awaitConfirmed()
			r.stop()
			o.noRepeats("order", 610)
		})
		t.Run(p.Name+" with a connector", func(t *testing.T) {
			t.Parallel()
			o := connectorOutbox(t, 500)
			connector, worker := o.connectorFiles(map[string]string{"snapshot.mode": "initial"})
			r := o.startCommand(path, nil, []string{failpoint.Env + "=" + p.Name + "=crash"}, "run", "--debezium", connector, "--worker", worker, "--admin-listen", "off")
			r.died(p.Name)
			o.debeziumRows(501, 100, 97)
			r = o.runDebezium(connector, worker)
			r.awaitStream()
			o.debeziumRows(601, 10, 97)
			o.awaitConfirmed()
			r.stop()
			o.noRepeats("order", 610)
		})
	}
}

// TestSnapshotServerGone: PostgreSQL is killed, and stopped, in the middle of the
// snapshot, and the network is cut. The same process takes another one.
func TestSnapshotServerGone(t *testing.T) {
	t.Parallel()
	const rows = 60_000
	server := testkit.PrivatePostgres(t, pgserver.Options{Major: kafkaMajor, FsyncOff: true})
	o := beforeSlot(t, server.DSN("postgres"), rows)
	via, p := o.viaProxy()
	r := via.start("--snapshot", "initial")
	ctx := testkit.Context(t)
	for i, gone := range []func() error{
		func() error { return server.Kill9(ctx) },
		func() error { p.Cut(); return nil },
		func() error { return server.Restart(ctx, pgserver.Fast) },
	} {
		o.awaitCount("order", (i+1)*rows/8)
		need(t, gone())
		need(t, server.StartAgain(ctx))
		r.awaitSaid("no replication stream")
	}
	r.awaitStream()
	o.reconnect()
	o.insertMany("order", rows+1, 100, 97)
	o.awaitConfirmed()
	r.stop()
	o.noRepeats("order", rows+100)
	if n := query[int](o, "select count(*) from pg_replication_slots where temporary and database = current_database()"); n != 0 {
		t.Errorf("%d temporary slots are left", n)
	}
}

// TestSnapshotTimeouts: whatever timeouts the role has, none ends the snapshot,
// which has to wait for Kafka here.
func TestSnapshotTimeouts(t *testing.T) {
	t.Parallel()
	for _, major := range testkit.Majors(t) {
		o := beforeSlot(t, testkit.Postgres(t, major).NewDB(t), 200)
		role := testkit.Unique("impatient")
		o.exec(`create role ` + role + ` login superuser`)
		t.Cleanup(func() { execAfter(t, o.dsn, `drop role `+role) })
		for _, name := range []string{"statement_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout", "transaction_timeout"} {
			if name != "transaction_timeout" || major >= 17 {
				o.exec(`alter role ` + role + ` set ` + name + ` = '700ms'`)
			}
		}
		as := o.asRole(role)
		as.exec(`insert into outbox_events (event_id, aggregate_type, aggregate_id, event_type, payload, occurred_at)
			values (gen_random_uuid(), 'late', 'a', 'Created', '{"n": 1}', now())`) // its topic is not there
		r := as.start("--snapshot", "initial")
		o.awaitCount("order", 200)
		testkit.Await(t, "longer than any timeout", func() bool {
			return query[bool](o, `select count(*) = 2 from pg_stat_activity a
				where application_name like 'walpost/' || $1 || '/%' and now() - state_change > '1500ms'
				  and (backend_type = 'walsender' and state = 'idle' or state = 'idle in transaction')`, o.slot)
		})
		o.createTopic("late")
		r.awaitStream()
		o.insertMany("order", 201, 10, 97)
		o.awaitConfirmed()
		r.stop()
		o.noRepeats("order", 210)
		if n := strings.Count(r.logText(), `"msg":"snapshot"`); n != 1 {
			t.Errorf("PostgreSQL %d: %d snapshots were taken", major, n)
		}
	}
}

// asRole returns the outbox whose relay is somebody else.
func (o *outbox) asRole(role string) *outbox {
	other := *o
	_, host, _ := strings.Cut(o.dsn, "@")
	other.dsn = "postgres://" + role + "@" + host
	return &other
}

// TestSnapshotRowSecurity: a policy that hides rows from the relay's role is an
// error, and not a snapshot without them. So is a table that it may not read.
func TestSnapshotRowSecurity(t *testing.T) {
	t.Parallel()
	o := beforeSlot(t, testkit.Postgres(t, kafkaMajor).NewDB(t), 10)
	role := testkit.Unique("partial")
	o.exec(`create role ` + role + ` login replication`)
	t.Cleanup(func() {
		execAfter(t, o.dsn, `drop owned by `+role+`; drop role `+role)
	})
	o.exec(`grant select, insert, update, delete on walpost.checkpoint, walpost.checkpoint_offset to ` + role)
	o.exec(`grant usage on schema walpost to ` + role)
	r := o.asRole(role).start("--snapshot", "initial")
	r.awaitReason("not_permitted")
	r.awaitSaid("grant select on \\\"public\\\".\\\"outbox_events\\\"")
	r.stop()
	o.exec(`grant select on outbox_events to ` + role)
	o.exec(`alter table outbox_events enable row level security`)
	r = o.asRole(role).start("--snapshot", "initial")
	r.awaitSaid("row-level security")
	if o.slots() != 0 || len(o.read("order")) != 0 {
		t.Error("something was published, or the slot made")
	}
	o.exec(`alter role ` + role + ` bypassrls`)
	r.awaitStream()
	o.awaitConfirmed()
	r.stop()
	o.noRepeats("order", 10)
}

// TestSnapshotFreeSlots: the second slot that a snapshot needs is looked for
// before anything is published.
func TestSnapshotFreeSlots(t *testing.T) {
	t.Parallel()
	server := testkit.PrivatePostgres(t, pgserver.Options{Major: 15, FsyncOff: true, Settings: map[string]string{"max_replication_slots": "2"}})
	o := beforeSlot(t, server.DSN("postgres"), 10)
	o.exec(`select pg_create_physical_replication_slot('other')`)
	o.start("--snapshot", "initial").wantExit(2, "1 of 2 are used", "raise max_replication_slots")
	if n := len(o.read("order")); n != 0 {
		t.Errorf("%d events were published", n)
	}
	o.exec(`select pg_drop_replication_slot('other')`)
	r := o.start("--snapshot", "initial")
	r.awaitStream()
	o.awaitConfirmed()
	r.stop()
	o.noRepeats("order", 10)
}

// TestSnapshotMissingSlot: a slot that walpost has published from is not made
// again in passing, as if nothing had been.
func TestSnapshotMissingSlot(t *testing.T) {
	t.Parallel()
	o := beforeSlot(t, testkit.Postgres(t, kafkaMajor).NewDB(t), 10)
	r := o.start("--snapshot", "initial")
	r.awaitStream()
	r.stop()
	o.exec(`select pg_drop_replication_slot($1)`, o.slot)
	o.insertMany("order", 11, 5, 97)
	o.start("--snapshot", "initial").wantExit(4, "does not exist, and walpost has published from it up to", "delete from walpost.checkpoint")
	if o.slots() != 0 {
		t.Error("the slot was made again")
	}
	o.exec(`delete from walpost.checkpoint where slot = $1`, o.slot) // as the hint says
	r = o.start("--snapshot", "initial")
	r.awaitStream()
	o.awaitConfirmed()
	r.stop()
	if repeats := checkNumbers(t, o.read("order"), 15); repeats > 10 {
		t.Errorf("%d repeats", repeats)
	}
}

// TestSnapshotPoison: at a row that cannot be published the snapshot waits, until
// it is told to stop; when the row is right, another one finds what is there.
func TestSnapshotPoison(t *testing.T) {
	t.Parallel()
	o := bareDebezium(t, testkit.Postgres(t, kafkaMajor).NewDB(t))
	o.exec(`select pg_drop_replication_slot($1)`, o.slot)
	o.createTopic("order")
	o.exec(`create table ordered as select gen_random_uuid() id, 'order' aggregatetype, n::text aggregateid, 'Created' type, json_build_object('n', n) payload
		from generate_series(1, 100) n`)
	o.exec(`insert into out select * from ordered`)
	o.exec(`update out set aggregatetype = null where aggregateid = '50'`)
	r := o.start("--snapshot", "initial")
	r.await("the poison row", func(s admin.Status) bool { return s.State == "holding" && value(s.Reason) == "poison" })
	if o.slots() != 0 {
		t.Error("there is a slot, and not everything is published")
	}
	r.stop()
	o.exec(`update out set aggregatetype = 'order' where aggregatetype is null`)
	r = o.start("--snapshot", "initial")
	r.awaitStream()
	o.awaitConfirmed()
	r.stop()
	o.noRepeats("order", 100)
}

// TestSnapshotTables: tables of every shape are read whole, and once.
func TestSnapshotTables(t *testing.T) {
	t.Parallel()
	const columns = `(id uuid default gen_random_uuid(), aggregatetype text, aggregateid text, type text, payload json`
	for name, test := range map[string]struct {
		tables  string
		rows    string
		include string
		events  int
	}{
		"no primary key": {
			`create table out ` + columns + `)`, `insert into out select gen_random_uuid(), 'order', n::text, 'x', json_build_object('n', n) from generate_series(1, 300) n`,
			"public.out", 300,
		},
		"composite key, odd names, a generated and a dropped column": {
			`create table out ` + columns + `, "A b" int default 1, gone int, len int generated always as (length(aggregateid)) stored, primary key ("A b", id)); alter table out drop gone`,
			`insert into out (id, aggregatetype, aggregateid, type, payload) select gen_random_uuid(), 'order', n::text, 'x', json_build_object('n', n) from generate_series(1, 300) n`,
			"public.out", 300,
		},
		"partitions and their roots": {
			`create table out ` + columns + `, n int) partition by range (n);
			 create table out_1 partition of out for values from (0) to (100);
			 create table out_2 partition of out for values from (100) to (1000) partition by range (n);
			 create table out_2a partition of out_2 for values from (100) to (200);
			 create table out_2b partition of out_2 default`,
			`insert into out select gen_random_uuid(), 'order', n::text, 'x', json_build_object('n', n), n from generate_series(1, 300) n`,
			"public.out.*", 300,
		},
		"some partitions": {
			`create table out ` + columns + `, n int) partition by range (n);
			 create table out_1 partition of out for values from (0) to (101);
			 create table out_2 partition of out default`,
			`insert into out select gen_random_uuid(), 'order', n::text, 'x', json_build_object('n', n), n from generate_series(1, 300) n`,
			"public.out_1", 100,
		},
		"a parent and not its children": {
			`create table out ` + columns + `); create table child () inherits (out)`,
			`insert into out select gen_random_uuid(), 'order', n::text, 'x', json_build_object('n', n) from generate_series(1, 300) n;
			 insert into child select gen_random_uuid(), 'order', n::text, 'x', json_build_object('n', n) from generate_series(1, 50) n`,
			"public.out", 300,
		},
		"large rows": {
			`create table out ` + columns + `)`,
			`insert into out select gen_random_uuid(), 'order', n::text, 'x', json_build_object('n', n, 'pad', repeat(md5(n::text), 25000)) from generate_series(1, 40) n`,
			"public.out", 40,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := bareOutbox(t, testkit.Postgres(t, kafkaMajor).NewDB(t), testkit.Kafka(t).Addr())
			o.table = test.include
			o.createTopic("order")
			testkit.Exec(t, o.dsn, test.tables, test.rows)
			connector, worker := o.connectorFiles(map[string]string{"snapshot.mode": "initial", "publication.autocreate.mode": "filtered"})
			r := o.runDebezium(connector, worker)
			r.awaitStream()
			o.awaitConfirmed()
			r.stop()
			o.noRepeats("order", test.events)
		})
	}
}

// TestSnapshotChanges: rows that are deleted, changed and truncated while the
// snapshot is read are in it as they were.
func TestSnapshotChanges(t *testing.T) {
	t.Parallel()
	o := bareDebezium(t, testkit.Postgres(t, kafkaMajor).NewDB(t))
	o.exec(`select pg_drop_replication_slot($1)`, o.slot)
	o.createTopic("order")
	o.exec(`insert into out select gen_random_uuid(), 'order', n::text, 'Created', json_build_object('n', n, 'pad', repeat('x', 500)) from generate_series(1, 30000) n`)
	r := o.start("--snapshot", "initial")
	o.awaitCount("order", 100)
	o.exec(`delete from out where (payload->>'n')::int % 2 = 0`)
	o.exec(`update out set payload = '{"n": 1}'`)
	o.exec(`truncate out`)
	r.awaitStream()
	o.awaitConfirmed()
	r.stop()
	o.noRepeats("order", 30_000)
}
