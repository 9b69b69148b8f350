package checkpoint

import (
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pglogrepl"
)

// Tracker is the low-water mark over transactions in commit order. Methods are
// safe for concurrent use: one goroutine feeds Begin, Add, Seal and Idle in
// stream order, others call Done in any order.
//
// It is a list of the transactions that have pending events. A settled one
// leaves the list and gives its end position to its predecessor, which may then
// be passed to that point at once; if it is the head, the mark moves there.
type Tracker struct {
	mu      sync.Mutex
	mark    pglogrepl.LSN
	slots   []entry // entry 0 is the list's anchor; Tx values are indexes
	free    []uint32
	live    int
	pending int
}

type entry struct {
	prev, next uint32
	commit     pglogrepl.LSN
	end        pglogrepl.LSN // where the mark goes when this entry is settled
	commitTime time.Time
	pending    int
	sealed     bool // the commit was seen: no more events will be added
	used       bool
}

// NewTracker starts at mark, normally the slot's confirmed_flush_lsn.
func NewTracker(mark pglogrepl.LSN) *Tracker {
	return &Tracker{mark: mark, slots: make([]entry, 1, 64)}
}

// Begin adds a transaction, by its commit LSN and time, behind all others and
// returns its name. The name is
// reused after the transaction is settled.
func (t *Tracker) Begin(commit pglogrepl.LSN, commitTime time.Time) (tx uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		tx = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		tx = uint32(len(t.slots))
		t.slots = append(t.slots, entry{})
	}
	last := t.slots[0].prev
	t.slots[tx] = entry{prev: last, commit: commit, commitTime: commitTime, used: true}
	t.slots[last].next = tx
	t.slots[0].prev = tx
	t.live++
	return tx
}

// Add counts one more event of tx, before it is handed to the sink.
func (t *Tracker) Add(tx uint32) {
	t.mu.Lock()
	t.at(tx).pending++
	t.pending++
	t.mu.Unlock()
}

// Seal says that tx is complete and ends at end, the position behind its
// commit record. It reports whether the mark moved.
func (t *Tracker) Seal(tx uint32, end pglogrepl.LSN) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.at(tx)
	e.sealed = true
	e.end = max(e.end, end)
	return t.settle(tx)
}

// Done says that n events of tx are settled. It returns the transaction's
// commit time and whether the mark moved.
func (t *Tracker) Done(tx uint32, n int) (commitTime time.Time, moved bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.at(tx)
	if n > e.pending {
		panic(fmt.Sprintf("checkpoint: %d events settled of %d pending", n, e.pending))
	}
	e.pending -= n
	t.pending -= n
	commitTime = e.commitTime
	return commitTime, t.settle(tx)
}

// Idle says that everything received so far lies below lsn and that no
// transaction is open: the end of a transaction without events, or the position
// of a keepalive between transactions. It reports whether the mark moved.
func (t *Tracker) Idle(lsn pglogrepl.LSN) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.slots[0].prev
	if last == 0 {
		return t.advance(lsn)
	}
	// Whoever is last was received before lsn: the mark may go to lsn once it
	// and everything before it is settled.
	if e := &t.slots[last]; e.sealed {
		e.end = max(e.end, lsn)
	}
	return false
}

// Mark is the low-water mark: nothing is pending at or below it.
func (t *Tracker) Mark() pglogrepl.LSN {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mark
}

// Pending is the number of transactions and of events that are not settled,
// and the commit time of the oldest of them (zero when there is none).
func (t *Tracker) Pending() (transactions, events int, oldest time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if head := t.slots[0].next; head != 0 {
		oldest = t.slots[head].commitTime
	}
	return t.live, t.pending, oldest
}

// CommitLSN of a transaction that has pending events.
func (t *Tracker) CommitLSN(tx uint32) (lsn pglogrepl.LSN, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tx == 0 || tx >= uint32(len(t.slots)) || !t.slots[tx].used {
		return 0, false
	}
	return t.slots[tx].commit, true
}

func (t *Tracker) at(tx uint32) *entry {
	if tx == 0 || tx >= uint32(len(t.slots)) || !t.slots[tx].used {
		panic(fmt.Sprintf("checkpoint: unknown transaction %d", tx))
	}
	return &t.slots[tx]
}

// settle takes tx out of the list if nothing of it is missing.
func (t *Tracker) settle(tx uint32) (moved bool) {
	e := &t.slots[tx]
	if !e.sealed || e.pending > 0 {
		return false
	}
	if e.prev == 0 {
		moved = t.advance(e.end)
	} else {
		// The predecessor is pending, so the mark cannot pass e before it. Its
		// end may only grow: positions grow with the stream.
		p := &t.slots[e.prev]
		p.end = max(p.end, e.end)
	}
	t.slots[e.prev].next = e.next
	t.slots[e.next].prev = e.prev
	*e = entry{}
	t.free = append(t.free, tx)
	t.live--
	return moved
}

func (t *Tracker) advance(lsn pglogrepl.LSN) bool {
	if lsn <= t.mark {
		return false
	}
	t.mark = lsn
	return true
}
