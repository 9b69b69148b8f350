package checkpoint_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/checkpoint"
)

// naive is the definition of the low-water mark, computed from scratch.
type naive struct {
	start pglogrepl.LSN
	txs   []*naiveTx // every transaction ever, in commit order
	// idle positions, each with the number of transactions received before it
	idle []struct {
		after int
		lsn   pglogrepl.LSN
	}
}

type naiveTx struct {
	id      uint32
	end     pglogrepl.LSN
	pending int
	sealed  bool
	commit  time.Time
}

func (n *naive) mark() pglogrepl.LSN {
	mark := n.start
	settled := 0
	for _, tx := range n.txs {
		if !tx.sealed || tx.pending > 0 {
			break
		}
		mark = max(mark, tx.end)
		settled++
	}
	for _, i := range n.idle {
		if i.after <= settled {
			mark = max(mark, i.lsn)
		}
	}
	return mark
}

// TestI1MarkIsContiguous compares the tracker with the definition over random
// streams and random ack orders.
func TestI1MarkIsContiguous(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		lsn := pglogrepl.LSN(1000)
		tr := checkpoint.NewTracker(lsn)
		model := &naive{start: lsn}
		var open *naiveTx
		for step := range 400 {
			switch k := rnd.IntN(10); {
			case k < 2 && open == nil:
				open = &naiveTx{commit: time.Unix(int64(step), 0)}
				open.id = tr.Begin(0, open.commit)
				model.txs = append(model.txs, open)
			case k < 4 && open != nil:
				tr.Add(open.id)
				open.pending++
			case k == 4 && open != nil:
				lsn += pglogrepl.LSN(1 + rnd.IntN(50))
				open.end, open.sealed = lsn, true
				tr.Seal(open.id, lsn)
				open = nil
			case k == 5 && open == nil:
				at := lsn + pglogrepl.LSN(rnd.IntN(20))
				if rnd.IntN(4) == 0 {
					at = lsn - pglogrepl.LSN(rnd.IntN(10)) // servers repeat old positions
				}
				lsn = max(lsn, at)
				tr.Idle(at)
				model.idle = append(model.idle, struct {
					after int
					lsn   pglogrepl.LSN
				}{len(model.txs), at})
			default:
				var live []*naiveTx
				for _, tx := range model.txs {
					if tx.pending > 0 {
						live = append(live, tx)
					}
				}
				if len(live) == 0 {
					continue
				}
				tx := live[rnd.IntN(len(live))]
				n := 1 + rnd.IntN(tx.pending)
				before := tr.Mark()
				tx.pending -= n
				commit, moved := tr.Done(tx.id, n)
				if !commit.Equal(tx.commit) {
					t.Fatalf("seed %d: commit time %v, want %v", seed, commit, tx.commit)
				}
				if moved != (tr.Mark() != before) {
					t.Fatalf("seed %d: moved=%v but the mark went %v -> %v", seed, moved, before, tr.Mark())
				}
			}
			if got, want := tr.Mark(), model.mark(); got != want {
				t.Fatalf("seed %d step %d: mark %v, want %v", seed, step, got, want)
			}
		}
	}
}

func TestI4KeepaliveWaitsForWhatCameBefore(t *testing.T) {
	t.Parallel()
	tr := checkpoint.NewTracker(100)
	if !tr.Idle(150) || tr.Mark() != 150 {
		t.Fatalf("idle outbox: mark %v, want 150", tr.Mark())
	}
	tx := tr.Begin(0, time.Time{})
	tr.Add(tx)
	if tr.Idle(160); tr.Mark() != 150 {
		t.Fatalf("a position inside an open transaction moved the mark to %v", tr.Mark())
	}
	tr.Seal(tx, 200)
	if tr.Idle(300); tr.Mark() != 150 {
		t.Fatalf("mark %v passed a pending event", tr.Mark())
	}
	if tr.Done(tx, 1); tr.Mark() != 300 {
		t.Fatalf("mark %v, want the remembered keepalive 300", tr.Mark())
	}
}

func TestI5MarkNeverGoesBack(t *testing.T) {
	t.Parallel()
	tr := checkpoint.NewTracker(500)
	tr.Idle(400)
	tx := tr.Begin(0, time.Time{})
	tr.Seal(tx, 450) // a transaction that the server sent again after a crash
	if tr.Mark() != 500 {
		t.Fatalf("mark %v, want 500", tr.Mark())
	}
}

// TestI7SettledTransactionsTakeNoMemory: one stuck transaction, a million
// settled ones behind it.
func TestI7SettledTransactionsTakeNoMemory(t *testing.T) {
	t.Parallel()
	tr := checkpoint.NewTracker(1)
	stuck := tr.Begin(0, time.Unix(1, 0))
	tr.Add(stuck)
	tr.Seal(stuck, 10)
	var highest uint32
	for i := range 1_000_000 {
		tx := tr.Begin(0, time.Unix(2, 0))
		highest = max(highest, tx)
		tr.Add(tx)
		tr.Seal(tx, pglogrepl.LSN(20+i))
		tr.Done(tx, 1)
	}
	if highest > 4 {
		t.Fatalf("%d entries in use behind one stuck transaction", highest)
	}
	if n, events, oldest := tr.Pending(); n != 1 || events != 1 || oldest.Unix() != 1 {
		t.Fatalf("pending %d transactions, %d events, oldest %v", n, events, oldest)
	}
	if tr.Done(stuck, 1); tr.Mark() != 1_000_019 {
		t.Fatalf("mark %v, want the end of the last settled transaction", tr.Mark())
	}
}

func BenchmarkTracker(b *testing.B) {
	tr := checkpoint.NewTracker(1)
	b.ReportAllocs()
	for i := range b.N {
		tx := tr.Begin(0, time.Time{})
		tr.Add(tx)
		tr.Seal(tx, pglogrepl.LSN(i))
		tr.Done(tx, 1)
	}
}
