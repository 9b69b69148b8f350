package sim

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// world is one run of a plan, inside a bubble.
type world struct {
	plan     *plan
	began    time.Time
	cluster  *cluster
	postgres *postgres
	proven   int // transactions that were found in Kafka; guarded by both servers' mutexes
	tasks    sync.WaitGroup

	mu       sync.Mutex
	trace    []entry
	failures []failure
	running  map[string]*instance // by place: "a", "b"
	wanted   map[string]bool
	all      []*instance
	over     chan struct{}
}

// entry of the history.
type entry struct {
	at        time.Duration
	who, text string
}

// failure is a broken invariant.
type failure struct {
	rule, text string
	event      string // empty: it is about none
}

func (f failure) String() string { return f.rule + ": " + f.text }

func (w *world) log(who, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.mu.Lock()
	w.trace = append(w.trace, entry{time.Since(w.began), who, text})
	w.mu.Unlock()
}

func (w *world) fail(rule, format string, args ...any) { w.failEvent(rule, "", format, args...) }

func (w *world) failEvent(rule, event, format string, args ...any) {
	f := failure{rule, fmt.Sprintf(format, args...), event}
	w.log("judge", "%s", f)
	w.mu.Lock()
	w.failures = append(w.failures, f)
	w.mu.Unlock()
}

func (w *world) spawn(f func()) {
	w.tasks.Add(1)
	go func() {
		defer w.tasks.Done()
		f()
	}()
}

// run plays a plan and judges it. It must be called inside a bubble.
func run(p *plan) *world {
	w := &world{plan: p, began: time.Now(), running: map[string]*instance{}, wanted: map[string]bool{}, over: make(chan struct{})}
	w.cluster = newCluster(w, p.Brokers)
	w.cluster.maxBatch, w.cluster.create = p.MaxBatch, p.Partitions
	w.cluster.denied.transactionalID, w.cluster.denied.fetch = p.NoFence, p.NoTail
	w.postgres = newPostgres(w)
	w.postgres.noTables, w.postgres.forgetful = p.NoTables, p.Forgetful
	for i, topic := range p.Topics {
		if i%2 == 0 { // the others are made on demand
			w.cluster.with(func() { w.cluster.grow(topic, p.Partitions) })
		}
	}
	w.want("a", true)
	w.write()
	var faults sync.WaitGroup
	for _, s := range p.Steps {
		faults.Add(1)
		w.spawn(func() {
			defer faults.Done()
			time.Sleep(s.At)
			w.log("schedule", "%v", s)
			w.play(s)
		})
	}
	faults.Wait()
	if n := len(p.Transactions); n > 0 {
		if rest := p.Transactions[n-1].At + time.Second - time.Since(w.began); rest > 0 {
			time.Sleep(rest)
		}
	}
	w.log("schedule", "faults are over")
	w.settle()
	w.finish()
	w.judge()
	return w
}

// write commits the plan's transactions at their times, later when the server
// takes none.
func (w *world) write() {
	w.spawn(func() {
		for i := range w.plan.Transactions {
			t := &w.plan.Transactions[i]
			if wait := t.At - time.Since(w.began); wait > 0 {
				time.Sleep(wait)
			}
			for !w.postgres.write(t) {
				select {
				case <-time.After(200 * time.Millisecond):
				case <-w.over:
					return
				}
			}
		}
	})
}

// want keeps a process running at a place, as an orchestrator does, or not.
func (w *world) want(place string, on bool) {
	w.mu.Lock()
	w.wanted[place] = on
	_, runs := w.running[place]
	w.mu.Unlock()
	if on && !runs {
		w.launch(place)
	}
}

func (w *world) launch(place string) {
	w.mu.Lock()
	if !w.wanted[place] || w.running[place] != nil {
		w.mu.Unlock()
		return
	}
	name := fmt.Sprintf("%s%d", place, len(w.all))
	w.all = append(w.all, nil)
	at := len(w.all) - 1
	w.mu.Unlock()
	i := w.start(name)
	w.mu.Lock()
	w.all[at] = i
	w.running[place] = i
	w.mu.Unlock()
	w.spawn(func() {
		<-i.ended
		time.Sleep(300 * time.Millisecond)
		w.mu.Lock()
		if w.running[place] == i {
			delete(w.running, place)
		}
		w.mu.Unlock()
		select {
		case <-w.over:
		default:
			w.launch(place)
		}
	})
}

// abandon leaves a process to itself and starts another in its place.
func (w *world) abandon(place string) {
	w.mu.Lock()
	delete(w.running, place)
	w.mu.Unlock()
	w.launch(place)
}

// at is the process at a place; nil when none runs.
func (w *world) at(place string) *instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running[place]
}

// live processes, also abandoned ones.
func (w *world) live() []*instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.all), func(i *instance) bool { return i == nil || i.isDead() })
}

// patience is how long a healthy system may take to deliver what is left:
// permanent failures are tried again once a minute.
const patience = 5 * time.Minute

// settle waits until everything is delivered and confirmed.
func (w *world) settle() {
	w.want("a", true)
	w.want("b", false)
	if i := w.at("b"); i != nil {
		i.stop()
	}
	w.await("everything delivered and confirmed", patience, func() string {
		return w.missing()
	})
	// I4: what others write is confirmed, too.
	w.postgres.foreign(1 << 20)
	var end = w.postgres.position()
	w.await("the idle outbox confirmed", time.Minute, func() string {
		w.postgres.mu.Lock()
		defer w.postgres.mu.Unlock()
		if w.postgres.confirmed < end {
			return fmt.Sprintf("I4: the slot stays at %v, the WAL was at %v", w.postgres.confirmed, end)
		}
		return ""
	})
}

// missing says what is not delivered or not confirmed.
func (w *world) missing() string {
	w.postgres.mu.Lock()
	defer w.postgres.mu.Unlock()
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	if want := w.committedTransactions(); len(w.postgres.wal) < want {
		return fmt.Sprintf("%d of %d transactions are committed", len(w.postgres.wal), want)
	}
	for _, t := range w.postgres.wal {
		for i := range t.events {
			if !w.cluster.has(t.events[i].ID) {
				return "lost: " + t.events[i].ID + " is not in Kafka"
			}
		}
	}
	if n := len(w.postgres.wal); n > 0 && w.postgres.confirmed < w.postgres.wal[n-1].end {
		return fmt.Sprintf("the slot stays at %v, the last transaction ends at %v", w.postgres.confirmed, w.postgres.wal[n-1].end)
	}
	return ""
}

func (w *world) committedTransactions() (n int) {
	for i := range w.plan.Transactions {
		if !w.plan.Transactions[i].Aborted {
			n++
		}
	}
	return n
}

func (w *world) await(what string, most time.Duration, open func() string) {
	began := time.Now()
	for {
		left := open()
		if left == "" {
			return
		}
		if time.Since(began) > most {
			for _, i := range w.live() {
				s := i.relay.Snapshot()
				w.log(i.name, "state %v reason %q: %s", s.State, s.Reason, s.Detail)
			}
			w.fail("lost", "not in %v: %s: %s", most, what, left)
			return
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// finish stops the relay in good order, lets another one look for something to
// do, and ends everything.
func (w *world) finish() {
	w.want("a", false)
	clean := w.at("a")
	if clean != nil {
		clean.stop()
		select {
		case <-clean.ended:
		case <-time.After(time.Minute):
			w.fail("stop", "%s does not stop", clean.name)
		}
	}
	for w.at("a") != nil {
		time.Sleep(100 * time.Millisecond)
	}
	w.want("a", true)
	time.Sleep(5 * time.Second)
	close(w.over)
	w.want("a", false)
	for _, i := range w.live() {
		i.killed()
	}
	w.mu.Lock()
	all := slices.Clone(w.all)
	w.mu.Unlock()
	for _, i := range all {
		<-i.ended
	}
	w.cluster.closeAll()
	w.tasks.Wait()
}
