package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var (
	flagSeed      = flag.Uint64("sim.seed", 0, "the first seed; with a single schedule its history is printed")
	flagSchedules = flag.Int("sim.schedules", 0, "how many seeds from the first on; 0: as many as the tests take")
	flagSay       = flag.Bool("sim.say", false, "print every seed before it is played: a panic or a hang does not say which it was")
	flagShrink    = flag.Bool("sim.shrink", true, "cut a failing schedule down")
)

// bubble runs a plan in virtual time.
func bubble(t *testing.T, p *plan) (w *world) {
	if *flagSay {
		fmt.Fprintln(os.Stderr, "seed", p.Seed)
	}
	synctest.Test(t, func(*testing.T) { w = run(p) })
	return w
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	n := 1000
	if raceEnabled {
		n = 60
	}
	if testing.Short() {
		n = 50
	}
	if *flagSchedules > 0 {
		n = *flagSchedules
	}
	var next, failed atomic.Int64
	var workers sync.WaitGroup
	began := time.Now()
	var virtual, events atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for {
				i := next.Add(1) - 1
				if i >= int64(n) || failed.Load() > 4 {
					return
				}
				p := draw(*flagSeed + uint64(i))
				w := bubble(t, p)
				virtual.Add(int64(w.trace[len(w.trace)-1].at))
				events.Add(int64(len(w.cluster.copies)))
				if len(w.failures) > 0 {
					failed.Add(1)
					report(t, p, w)
				} else if n == 1 && testing.Verbose() {
					t.Logf("%s", w.history(failure{}))
				}
			}
		}()
	}
	workers.Wait()
	t.Logf("%d schedules, %d events, %v of virtual time in %v", next.Load(), events.Load(), time.Duration(virtual.Load()), time.Since(began))
}

// report prints what is wrong, the smallest schedule that shows it, and the
// history of the event.
func report(t *testing.T, p *plan, w *world) {
	t.Helper()
	first := w.failures[0]
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d broken; again with: go test ./test/sim -run TestSchedules -sim.seed %d -sim.schedules 1\n", p.Seed, len(w.failures), p.Seed)
	for i, f := range w.failures {
		if i < 5 {
			fmt.Fprintf(&b, "  %s\n", f)
		}
	}
	if *flagShrink {
		last := w
		smallest := shrink(p, first.rule, func(q *plan) []failure {
			x := bubble(t, q)
			for _, f := range x.failures {
				if f.rule == first.rule {
					last = x
					break
				}
			}
			return x.failures
		}, 3)
		p, w = smallest, last
		for _, f := range w.failures {
			if f.rule == first.rule {
				first = f
				break
			}
		}
	}
	fmt.Fprintf(&b, "plan: %d brokers, %d partitions, topics %v, max batch %d, limit %d, batches of %d, forgetful=%v, no store=%v tables=%v fence=%v tail=%v\n",
		p.Brokers, p.Partitions, p.Topics, p.MaxBatch, p.LimitBytes, p.BatchBytes, p.Forgetful, p.NoStore, p.NoTables, p.NoFence, p.NoTail)
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "  %v\n", s)
	}
	for i := range p.Transactions {
		tx := &p.Transactions[i]
		fmt.Fprintf(&b, "  at %v: %d events, aborted=%v foreign=%d\n", tx.At, len(tx.Events), tx.Aborted, tx.Foreign)
	}
	fmt.Fprintf(&b, "%s\n%s", first, w.history(first))
	t.Error(b.String())
}
