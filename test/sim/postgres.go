package sim

import (
	"cmp"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/checkpoint"
	"github.com/walpost/walpost/slot"
)

const (
	systemID = "7000"
	// walSenderTimeout is when the server gives a silent client up.
	walSenderTimeout = 10 * time.Second
	walStart         = pglogrepl.LSN(1000)
)

// postgres is the server: WAL, one slot, and the checkpoint tables. WAL and
// tables are durable when they are written; the slot's position is not, and a
// crash takes it back to when it was last saved.
type postgres struct {
	world *world
	mu    sync.Mutex

	down     int // faults that keep it down
	stopping bool
	wal      []*committed
	end      pglogrepl.LSN

	confirmed, saved pglogrepl.LSN
	active           *session
	tables           *checkpoint.Checkpoint // nil: empty
	epoch            int64                  // of the tables' owner
	noTables         bool                   // the tables do not exist
	forgetful        bool                   // a clean restart takes the slot back, too (up to 16)
	changed          chan struct{}
	instances        []*instance
}

func newPostgres(w *world) *postgres {
	return &postgres{world: w, end: walStart, confirmed: walStart, saved: walStart, changed: make(chan struct{})}
}

func (pg *postgres) notify() {
	close(pg.changed)
	pg.changed = make(chan struct{})
}

func (pg *postgres) with(f func()) { pg.mu.Lock(); f(); pg.notify(); pg.mu.Unlock() }

// write commits a transaction, or leaves only its WAL. It reports false when
// the server takes none.
func (pg *postgres) write(t *transaction) bool {
	pg.mu.Lock()
	defer pg.mu.Unlock()
	if pg.down > 0 || pg.stopping {
		return false
	}
	pg.end += pglogrepl.LSN(t.Foreign)
	if t.Aborted {
		pg.end += pglogrepl.LSN(40*len(t.Events)) + 24
		pg.notify()
		return true
	}
	c := newCommitted(pg.end, t, time.Now())
	pg.wal = append(pg.wal, c)
	pg.end = c.end
	for i := range c.events {
		pg.world.log("postgres", "commit %s at %v ending %v", c.events[i].ID, c.commit, c.end)
	}
	pg.notify()
	return true
}

// foreign moves the WAL's end.
func (pg *postgres) foreign(bytes int) {
	pg.with(func() {
		if pg.down == 0 && !pg.stopping {
			pg.end += pglogrepl.LSN(bytes)
		}
	})
}

// crash ends all sessions at once and takes the slot back.
func (pg *postgres) crash() {
	pg.with(func() {
		pg.world.log("postgres", "crash: slot back from %v to %v", pg.confirmed, pg.saved)
		pg.down++
		pg.stopping = false
		pg.confirmed = pg.saved
		pg.drop(errReset)
	})
}

// stop is a fast shutdown: the walsender sends what there is and waits until the
// client has reported it. That must not take long, whatever Kafka does.
func (pg *postgres) stop() {
	pg.with(func() { pg.stopping = true })
	pg.world.log("postgres", "fast shutdown")
	began := time.Now()
	pg.mu.Lock()
	for _, i := range pg.instances {
		if f := i.shutdown; f != nil && !i.isDead() && !i.postgres.isHeld() {
			pg.world.spawn(f)
		}
	}
	for pg.active != nil && !pg.active.reported() && pg.stopping {
		s := pg.active
		changed := pg.changed
		pg.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(100 * time.Millisecond):
		}
		pg.mu.Lock()
		if s.silent() {
			began = time.Now() // the server's timeout is for that
		}
		if took := time.Since(began); took > 3*time.Second && pg.active == s {
			pg.world.fail("R8", "a fast shutdown has waited %v for the relay", took)
			break
		}
	}
	if !pg.stopping { // it crashed meanwhile
		pg.mu.Unlock()
		return
	}
	pg.down++
	pg.stopping = false
	pg.drop(io.ErrUnexpectedEOF)
	if pg.forgetful {
		pg.confirmed = pg.saved
	} else {
		pg.saved = pg.confirmed
	}
	pg.world.log("postgres", "down after %v, slot at %v", time.Since(began), pg.confirmed)
	pg.notify()
	pg.mu.Unlock()
}

func (pg *postgres) start() { pg.with(func() { pg.down-- }) }

// save makes the slot's position durable, as the server does now and then.
func (pg *postgres) save() { pg.with(func() { pg.saved = pg.confirmed }) }

var errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

// drop ends the walsender.
func (pg *postgres) drop(err error) {
	if s := pg.active; s != nil {
		pg.active = nil
		s.err = err
	}
}

// terminate is pg_terminate_backend, or a connection that is cut.
func (pg *postgres) terminate() {
	pg.with(func() {
		pg.world.log("postgres", "walsender ended")
		pg.drop(errReset)
	})
}

// open is START_REPLICATION with what slot.Open does around it.
func (pg *postgres) open(who *instance, known, remembered slot.History) (*session, error) {
	pg.mu.Lock()
	defer pg.mu.Unlock()
	if pg.down > 0 || pg.stopping {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	if pg.active != nil {
		return nil, &slot.Error{Kind: slot.ErrInUse, Text: "slot is active for " + pg.active.who.name}
	}
	start := max(pg.confirmed, known.LSN)
	if known.LSN > pg.end || known.SystemID != "" && known.SystemID != systemID {
		pg.world.fail("R6", "%s asks for %v, the WAL ends at %v", who.name, known.LSN, pg.end)
	}
	if remembered.SystemID == systemID && remembered.LSN > start {
		if remembered.LSN > pg.end {
			pg.world.fail("R6", "%s remembers %v, the WAL ends at %v", who.name, remembered.LSN, pg.end)
		}
		start = remembered.LSN
	}
	s := &session{pg: pg, who: who, start: start, sent: start, confirmed: start, flushed: start, walEnd: pg.end, done: make(chan struct{}), heard: time.Now()}
	for s.next < len(pg.wal) && pg.wal[s.next].commit < start {
		s.next++
	}
	pg.active = s
	who.sent = max(who.sent, start)
	pg.check("start", who, start)
	pg.world.spawn(s.beat)
	pg.world.log("postgres", "%s streams from %v (slot %v known %v remembered %v)", who.name, start, pg.confirmed, known.LSN, remembered.LSN)
	return s, nil
}

// check is invariant I1: whatever commits below lsn is in Kafka, where nothing
// can lose it; the server would never send it again.
func (pg *postgres) check(what string, who *instance, lsn pglogrepl.LSN) {
	w := pg.world
	if at, found := slices.BinarySearchFunc(pg.wal, lsn, func(c *committed, lsn pglogrepl.LSN) int { return cmp.Compare(c.commit, lsn) }); found {
		w.fail("R1", "%s: %s of %v, the start of a commit record: %d events come again for ever", who.name, what, lsn, len(pg.wal[at].events))
	}
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	for ; w.proven < len(pg.wal) && pg.wal[w.proven].commit < lsn; w.proven++ {
		for i := range pg.wal[w.proven].events {
			if id := pg.wal[w.proven].events[i].ID; !w.cluster.has(id) {
				w.failEvent("I1", id, "%s: %s of %v although %s, committed at %v, is not in Kafka", who.name, what, lsn, id, pg.wal[w.proven].commit)
				return
			}
		}
	}
}
