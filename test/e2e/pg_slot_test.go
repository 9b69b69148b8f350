package e2e

import (
	"strings"
	"testing"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/pgserver"
)

// TestSlotMissing: a slot that is not there is never made again in silence,
// whether it was dropped before the start or under the relay's hands.
func TestSlotMissing(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		o := newOutbox(t, major)
		o.createTopic("order")
		r := o.start()
		o.insertMany("order", 1, 5, 1)
		r.awaitPublished(5)
		testkit.Await(t, "the slot to be dropped", func() bool {
			_, err := o.db.Exec(t.Context(), `select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1 and active`, o.slot)
			if err == nil {
				_, err = o.db.Exec(t.Context(), `select pg_drop_replication_slot('`+o.slot+`')`)
			}
			return err == nil
		})
		words, hint := `slot "`+o.slot+`" does not exist`, "events since then are not in Kafka"
		r.wantExit(4, words, hint)
		o.insertMany("order", 6, 5, 1)
		o.start().wantExit(4, words, hint)
		if n := query[int](o, `select count(*) from pg_replication_slots where slot_name = $1`, o.slot); n != 0 {
			t.Error("the slot was made again")
		}
		if repeats := checkNumbers(t, o.read("order"), 5); repeats != 0 {
			t.Errorf("%d repeats", repeats)
		}
		if _, stderr, code := o.run("status", "--admin-listen", "off"); code != 3 || !strings.Contains(stderr, words) {
			t.Errorf("status: exit %d\n%s", code, stderr)
		}
	})
}

// TestSlotLost: the server took the WAL that the slot needed, while the relay
// was away and while it waited for Kafka.
func TestSlotLost(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		for _, running := range []bool{false, true} {
			name := map[bool]string{false: "away", true: "waiting for Kafka"}[running]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				o, _ := privateOutbox(t, pgserver.Options{Major: major, Settings: map[string]string{"max_slot_wal_keep_size": "1MB"}})
				o.createTopic("order")
				var r *relay
				if running {
					r = o.viaBrokers(stalledKafka(t).Addr()).start("--in-flight-bytes", "1MiB")
					// More than the network holds: the walsender waits for us, and cannot
					// even end when the checkpointer tells it to, for as long as we
					// neither read nor go.
					o.insertMany("order", 1, 100_000, 7)
					testkit.Await(t, "a walsender that waits", func() bool {
						return query[bool](o, `select exists (select from pg_stat_activity where backend_type = 'walsender' and wait_event = 'WalSenderWriteData')`)
					})
				}
				before := o.confirmed()
				o.exec(`create table noise (x text)`)
				testkit.Await(t, "a lost slot", func() bool {
					for range 3 {
						o.exec(`insert into noise select repeat('x', 1000) from generate_series(1, 100)`)
						o.exec(`select pg_switch_wal()`)
					}
					o.exec(`checkpoint`)
					return query[string](o, `select wal_status from pg_replication_slots`) == "lost"
				})
				if !running {
					r = o.start()
				}
				r.wantExit(4, "is lost", "publish the events since then from the table")
				if !strings.Contains(r.logText(), "events committed after "+before) {
					t.Errorf("the last position %s is not named", before)
				}
				if after := o.confirmed(); after != before {
					t.Errorf("the slot went from %s to %s", before, after)
				}
				if _, stderr, code := o.run("status", "--admin-listen", "off"); code != 3 || !strings.Contains(stderr, "is lost") {
					t.Errorf("status: exit %d\n%s", code, stderr)
				}
			})
		}
	})
}

// TestUnfitSlot: slots that are not the relay's, each told apart.
func TestUnfitSlot(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		tests := []struct{ name, sql, words, hint string }{
			{"two_phase", `select pg_create_logical_replication_slot($1, 'pgoutput', false, true)`, "decodes prepared transactions (two_phase)", "choose another name with --slot"},
			{"plugin", `select pg_create_logical_replication_slot($1, 'test_decoding')`, `uses plugin "test_decoding", not pgoutput`, "choose another name with --slot"},
			{"physical", `select pg_create_physical_replication_slot($1)`, "is a physical slot", "choose another name with --slot"},
		}
		for _, tt := range tests {
			o := bareOutbox(t, testkit.Postgres(t, major).NewDB(t), testkit.Kafka(t).Addr())
			o.table = "public.out"
			o.debeziumTable("out", "json")
			o.exec(`create publication ` + o.slot + ` for table out with (publish = 'insert')`)
			o.exec(tt.sql, o.slot)
			t.Cleanup(func() {
				execAfter(t, testkit.Postgres(t, major).DSN("postgres"), `select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = '`+o.slot+`'`)
			})
			o.start().wantExit(4, tt.words, tt.hint)
			if _, stderr, code := o.run("init"); code != 4 || !strings.Contains(stderr, tt.words) {
				t.Errorf("init: exit %d\n%s", code, stderr)
			}
			if n := query[int](o, `select count(*) from pg_replication_slots where slot_name = $1`, o.slot); n != 1 {
				t.Errorf("%s: %d slots", tt.name, n)
			}
		}
		one, other := bareDebezium(t, testkit.Postgres(t, major).NewDB(t)), bareDebezium(t, testkit.Postgres(t, major).NewDB(t))
		other.exec(`create publication ` + one.slot + ` for table out with (publish = 'insert')`)
		other.slot = one.slot
		other.start().wantExit(4, "belongs to database", "name the slot's database in --dsn")
	})
}
