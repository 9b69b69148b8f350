package outboxtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/outbox"
	"github.com/walpost/walpost/outbox/outboxtest"
)

// TestO6StormAppliesOnce: one side effect per event, whatever the policies.
func TestO6StormAppliesOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options     outbox.ConsumerOptions
		unversioned bool
		isolation   pgx.TxIsoLevel
	}{
		"park":            {},
		"first is one":    {options: outbox.ConsumerOptions{FirstVersion: outbox.FirstOne}},
		"by version":      {options: outbox.ConsumerOptions{Dedup: outbox.ByVersion}},
		"defer":           {options: outbox.ConsumerOptions{Versions: outbox.DeferGaps, BackoffMin: time.Millisecond, BackoffMax: 20 * time.Millisecond}},
		"reject":          {options: outbox.ConsumerOptions{Versions: outbox.RejectGaps}},
		"crash guard":     {options: outbox.ConsumerOptions{CrashGuard: true}},
		"no versions":     {unversioned: true},
		"repeatable read": {isolation: pgx.RepeatableRead},
		"serializable":    {isolation: pgx.Serializable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, outbox.SchemaOptions{})
			h, check := ledger(t, db)
			events := moves(t, db, 3, 4, !c.unversioned)
			outboxtest.Storm(t, consumer(t, outbox.BeginWith(db, pgx.TxOptions{IsoLevel: c.isolation}), c.options), h, events, check(len(events)))
		})
	}
}

// TestStormTwoConsumers: consumers that share a database do not shadow each other.
func TestStormTwoConsumers(t *testing.T) {
	t.Parallel()
	db := open(t, outbox.SchemaOptions{})
	h, check := ledger(t, db)
	events := moves(t, db, 2, 3, true)
	outboxtest.Storm(t, consumer(t, db, outbox.ConsumerOptions{}), h, events, check(len(events)))
	if err := db.Exec(t.Context(), "truncate ledger"); err != nil {
		t.Fatal(err)
	}
	outboxtest.Storm(t, consumer(t, db, outbox.ConsumerOptions{Name: "shipping"}), h, events, check(len(events)))
}

// TestStormFindsFaults: the storm is worth something only if what is wrong fails
// in it.
func TestStormFindsFaults(t *testing.T) {
	t.Parallel()
	db := open(t, outbox.SchemaOptions{})
	right, _ := ledger(t, db)
	events := moves(t, db, 2, 4, true)
	nothing := func() {}

	t.Run("work outside of the transaction", func(t *testing.T) {
		outside := func(ctx context.Context, _ pgx.Tx, m outbox.Message) error {
			return db.Exec(ctx, `insert into ledger (account, event_id, version) values ($1, $2::uuid, $3)`, m.AggregateID, m.ID.String(), m.Version)
		}
		rows := 0
		outboxtest.Storm(t, consumer(t, db, outbox.ConsumerOptions{Name: "outside"}), outside, events, func() {
			if err := db.QueryRow(t.Context(), "select count(*) from ledger").Scan(&rows); err != nil {
				t.Fatal(err)
			}
		})
		if rows <= len(events) {
			t.Errorf("%d rows for %d events: the check has nothing to find", rows, len(events))
		}
	})
	t.Run("a handler that fails", func(t *testing.T) {
		wantFailure(t, "out of stock", func(tb testing.TB) {
			outboxtest.Storm(tb, consumer(t, db, outbox.ConsumerOptions{Name: "fails"}), func(context.Context, pgx.Tx, outbox.Message) error {
				return outbox.Permanent(errors.New("out of stock"))
			}, events, nothing)
		})
	})
	t.Run("a missing version", func(t *testing.T) {
		var holed []outbox.Message
		for _, m := range events {
			if m.Version != 2 {
				holed = append(holed, m)
			}
		}
		for _, policy := range []outbox.VersionPolicy{outbox.ParkGaps, outbox.RejectGaps} {
			name := map[outbox.VersionPolicy]string{outbox.ParkGaps: "holed", outbox.RejectGaps: "holed and strict"}[policy]
			wantFailure(t, "version", func(tb testing.TB) {
				outboxtest.Storm(tb, consumer(t, db, outbox.ConsumerOptions{Name: name, Versions: policy}), right, holed, nothing)
			})
		}
	})
	t.Run("known before", func(t *testing.T) {
		c := consumer(t, db, outbox.ConsumerOptions{Name: "before"})
		if _, err := c.Process(t.Context(), events[0], right); err != nil {
			t.Fatal(err)
		}
		wantFailure(t, "passed over as known", func(tb testing.TB) { outboxtest.Storm(tb, c, right, events, nothing) })
	})
	t.Run("one connection", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), db.DSN)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		one := outbox.BeginnerFunc(func(ctx context.Context) (pgx.Tx, error) { return conn.Begin(ctx) })
		wantFailure(t, "needs a pool", func(tb testing.TB) {
			outboxtest.Storm(tb, consumer(t, one, outbox.ConsumerOptions{Name: "one"}), right, events[:1], nothing)
		})
	})
	t.Run("nothing to do", func(t *testing.T) {
		wantFailure(t, "needs a consumer", func(tb testing.TB) {
			outboxtest.Storm(tb, consumer(t, db, outbox.ConsumerOptions{Name: "none"}), right, nil, nothing)
		})
	})
}
