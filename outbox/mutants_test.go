package outbox

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The broken consumers.
var (
	offsetFirst = variant{name: "commits the offset before the effect", deliver: func(_ *bench, c *Consumer, ctx context.Context, m Message, h Handler) error {
		_, _ = c.Process(ctx, m, h)
		return nil
	}}
	noOnConflict = variant{name: "no ON CONFLICT DO NOTHING", options: func(o *ConsumerOptions) { o.Versions = IgnoreVersions }, change: func(c *Consumer) {
		c.sql.claimID = strings.Replace(c.sql.claimID, "do nothing", "do update set processed_at = now()", 1)
	}}
	ownTransaction = variant{name: "dedup row in its own transaction", deliver: func(b *bench, c *Consumer, ctx context.Context, m Message, h Handler) error {
		var got bool
		if err := b.in(func(tx pgx.Tx) error {
			var none bool
			return tx.QueryRow(ctx, c.sql.claimID, c.opt.Name, m.ID.String()).Scan(&got, &none, &none)
		}); err != nil || !got {
			return err
		}
		return b.in(func(tx pgx.Tx) error { return h(ctx, tx, m) })
	}}
	firstIsOne   = variant{name: "first version assumed to be 1", options: func(o *ConsumerOptions) { o.FirstVersion = FirstOne }}
	ignoresOrder = variant{name: "versions are not looked at", options: func(o *ConsumerOptions) { o.Versions = IgnoreVersions }}
	neverDrains  = variant{name: "what waited is forgotten", change: func(c *Consumer) { c.sql.look = strings.Replace(c.sql.look, "reason <> 'too_old'", "false", 1) }}
	noFloor      = variant{name: "no floor", change: func(c *Consumer) {
		c.sql.look = strings.Replace(c.sql.look, "'-infinity') <", "'-infinity') + interval '999 years' <", 1)
	}}
	skipsTheHead = variant{name: "retries the last first", change: func(c *Consumer) {
		fill := c.sql.fill
		c.sql.fill = func(s string) string {
			return strings.Replace(fill(s), "nulls first, seq limit", "nulls first, seq desc limit", 1)
		}
	}}
	guesses = variant{name: "what is not known is taken for a duplicate", change: func(c *Consumer) {
		c.sql.peek = strings.Replace(c.sql.peek, "exists", "not exists", 1)
	}}
	normalizesJSON = variant{name: "parks the value as JSON", change: func(c *Consumer) {
		c.sql.park = strings.Replace(c.sql.park, "$17,", "convert_to(convert_from($17, 'UTF8')::jsonb::text, 'UTF8'),", 1)
	}}
)

// O12: each of the checks above fails when its guarantee is broken.
func TestO12BrokenConsumersAreNoticed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check   invariant
		mutants []variant
	}{
		"O3":        {invariantO3, []variant{normalizesJSON}},
		"O6":        {invariantO6, []variant{noOnConflict, guesses}},
		"O6 killed": {invariantO6Killed, []variant{offsetFirst, ownTransaction, noOnConflict}},
		"O7":        {invariantO7, []variant{firstIsOne, ignoresOrder, neverDrains}},
		"O8":        {invariantO8, []variant{offsetFirst}},
		"O10":       {invariantO10, []variant{noFloor}},
		"O11":       {invariantO11, []variant{skipsTheHead}},
	} {
		for _, mutant := range c.mutants {
			t.Run(name+": "+mutant.name, func(t *testing.T) {
				t.Parallel()
				err := c.check(setup(t), mutant)
				if err == nil {
					t.Fatal("not noticed")
				}
				t.Log(err)
			})
		}
	}
}

// The same in every isolation level, and in the modes that poolers need.
func TestIsolationLevelsAndModes(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		for name, check := range map[string]invariant{"O6": invariantO6, "O7": invariantO7, "O11": invariantO11} {
			t.Run(string(level)+" "+name, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				b.pool.opts.IsoLevel = level
				if err := check(b, variant{}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	for name, check := range map[string]invariant{
		"O6": invariantO6, "O6 killed": invariantO6Killed, "O7": invariantO7, "O8": invariantO8, "O10": invariantO10, "O11": invariantO11,
	} {
		t.Run("begun by a call "+name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.pool.begins = true
			if err := check(b, variant{}); err != nil {
				t.Error(err)
			}
		})
	}
	for name, mode := range map[string]pgx.QueryExecMode{"exec": pgx.QueryExecModeExec, "simple protocol": pgx.QueryExecModeSimpleProtocol} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, check := range []invariant{invariantO3, invariantO7, invariantO10, invariantO11} {
				b := setup(t)
				b.pool.mode = mode
				if err := check(b, variant{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
