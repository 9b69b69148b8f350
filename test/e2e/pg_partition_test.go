package e2e

import (
	"fmt"
	"testing"

	"github.com/walpost/walpost/internal/testkit"
)

// TestPartitionedOutbox: in both ways to publish partitions, with partitions of
// another column order, new ones while it runs, and ones that go before their
// rows are read.
func TestPartitionedOutbox(t *testing.T) {
	t.Parallel()
	onMajors(t, func(t *testing.T, major int) {
		for _, viaRoot := range []bool{true, false} {
			t.Run(fmt.Sprintf("root %v", viaRoot), func(t *testing.T) {
				t.Parallel()
				o := bareOutbox(t, testkit.Postgres(t, major).NewDB(t), testkit.Kafka(t).Addr())
				o.table = "public.out"
				o.exec(`create table out (id uuid default gen_random_uuid(), aggregatetype text, aggregateid text, type text, payload json, day int default 1) partition by range (day)`)
				o.exec(`create table out_1 partition of out for values from (1) to (2)`)
				o.exec(`create table other (day int, payload json, gone int, type text, aggregateid text, aggregatetype text, id uuid default gen_random_uuid())`)
				o.exec(`alter table other drop gone`)
				o.exec(`alter table out attach partition other for values from (2) to (3)`)
				o.must("init")
				if !viaRoot {
					o.exec(`alter publication ` + o.slot + ` set (publish_via_partition_root = false)`)
				}
				o.singleTopic("order")
				write := func(day, n int) {
					t.Helper()
					o.exec(`insert into out (aggregatetype, aggregateid, type, payload, day) values ('order', $1, 'Made', json_build_object('n', $2::int), $3)`, itoa(day), n, day)
				}
				r := o.start()
				write(1, 1)
				write(2, 2)
				r.awaitPublished(2)
				o.exec(`create table out_3 partition of out for values from (3) to (4) partition by range (day)`)
				o.exec(`create table out_3a partition of out_3 for values from (3) to (4)`)
				write(3, 3)
				o.exec(`insert into out_1 (aggregatetype, aggregateid, type, payload) values ('order', 'direct', 'Made', '{"n": 4}')`)
				r.awaitPublished(4)
				o.exec(`alter table out detach partition out_1`)
				write(2, 5)
				r.awaitPublished(5)
				o.awaitConfirmed()
				if s, _ := r.status(); !s.Ready {
					t.Errorf("not ready: %s", content(text(s.Detail)))
				}
				r.stop()

				write(2, 6)
				write(3, 7)
				o.exec(`create table out_4 partition of out for values from (4) to (5)`)
				write(4, 8)
				o.exec(`alter table out detach partition other`) // before its row is read
				o.exec(`drop table out_4`)
				o.exec(`drop table out_3`)
				o.exec(`create table out_5 partition of out for values from (5) to (6)`)
				write(5, 9)
				r = o.start()
				want := []string{"01 1", "02 2", "03 3", "direct 4", "02 5", "02 6", "03 7", "04 8", "05 9"}
				r.awaitPublished(4)
				o.wantRecords("order", want...)
				o.awaitConfirmed()
				r.stop()
			})
		}
	})
}
