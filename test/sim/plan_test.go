package sim

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSameSeedSamePlan also keeps a seed that somebody wrote down good for
// another machine.
func TestSameSeedSamePlan(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		if diff := cmp.Diff(draw(seed), draw(seed)); diff != "" {
			t.Fatalf("seed %d (-once +again):\n%s", seed, diff)
		}
	}
}

// TestEveryFaultIsDrawn within the seeds that CI runs.
func TestEveryFaultIsDrawn(t *testing.T) {
	t.Parallel()
	drawn := map[string]int{}
	var unprotected int
	for seed := range uint64(500) {
		p := draw(seed)
		for _, s := range p.Steps {
			drawn[s.Kind]++
		}
		if !p.protected() {
			unprotected++
		}
	}
	for _, k := range kinds {
		if drawn[k.name] < 10 {
			t.Errorf("%s is drawn %d times", k.name, drawn[k.name])
		}
	}
	if unprotected < 50 || unprotected > 250 {
		t.Errorf("%d of 500 plans are without a protection", unprotected)
	}
}

func TestShrink(t *testing.T) {
	t.Parallel()
	p := draw(3)
	for i := range 20 {
		p.Steps = append(p.Steps, step{At: time.Duration(i), Kind: "cut"})
	}
	p.Steps = append(p.Steps, step{Kind: "kill", N: 77})
	needed := p.Transactions[len(p.Transactions)/2].At
	got := shrink(p, "lost", func(q *plan) []failure {
		if !slices.ContainsFunc(q.Steps, func(s step) bool { return s.N == 77 }) {
			return nil
		}
		if !slices.ContainsFunc(q.Transactions, func(x transaction) bool { return x.At == needed }) {
			return []failure{{rule: "order"}}
		}
		return []failure{{rule: "lost"}}
	}, 1)
	if len(got.Steps) != 1 || got.Steps[0].N != 77 || len(got.Transactions) > 2 {
		t.Errorf("left over: %d steps, %d transactions", len(got.Steps), len(got.Transactions))
	}
}

// TestJudge breaks what the judge looks at, behind its back.
func TestJudge(t *testing.T) {
	t.Parallel()
	p := &plan{Brokers: 1, Partitions: 1, Topics: []string{"t"}, LimitBytes: 1 << 20, BatchBytes: 1000}
	for i := range 4 {
		p.Transactions = append(p.Transactions, transaction{
			At: time.Duration(i) * time.Second, Events: []row{{ID: string(rune('a' + i)), Topic: "t", Aggregate: "k", Payload: 1}},
		})
	}
	for _, test := range []struct {
		rule string
		harm func(*world)
	}{
		{"", func(*world) {}},
		{"lost", func(w *world) { delete(w.cluster.copies, "b") }},
		{"duplicate", func(w *world) { w.cluster.copies["b"] = append(w.cluster.copies["b"], w.cluster.copies["b"][0]) }},
		{"order", func(w *world) { w.cluster.copies["b"][0].order = 99 }},
		{"I8", func(w *world) { w.cluster.copies["b"][0].value = "?" }},
		{"uncommitted", func(w *world) { w.cluster.copies["z"] = w.cluster.copies["b"] }},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := run(p)
				if len(w.failures) > 0 {
					t.Fatal(w.failures)
				}
				test.harm(w)
				w.judge()
				switch {
				case test.rule == "" && len(w.failures) > 0, test.rule != "" && len(w.failures) == 0:
					t.Errorf("found %v", w.failures)
				case test.rule != "" && w.failures[0].rule != test.rule:
					t.Errorf("found %v, want %s", w.failures, test.rule)
				}
			})
		})
	}
}
