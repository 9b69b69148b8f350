package relay

import (
	"encoding/binary"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/route"
	"github.com/walpost/walpost/sink"
)

// messages is a Translator that publishes logical messages.
type messages struct{ route.Translator }

func (messages) Message(c *decoder.Change, rec *sink.Record) (bool, error) {
	rec.Topic, rec.Key, rec.Headers = "messages", nil, nil
	rec.Value = append(rec.Value[:0], c.Message.Content...)
	return true, nil
}

// logical is what pg_logical_emit_message(false, …) writes.
func logical(lsn pglogrepl.LSN, content string) []byte {
	b := binary.BigEndian.AppendUint64([]byte{'M', 0}, uint64(lsn))
	b = append(b, "outbox\x00"...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(content)))
	return append(b, content...)
}

// message appends a message outside a transaction, and gives its position.
func (s *server) message(content string) pglogrepl.LSN {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lsn += 10
	s.add(s.lsn, logical(s.lsn, content))
	s.notify()
	return s.lsn
}

// TestSoftStopTakesNoMessageIn: a message outside a transaction has no Begin, and
// must end intake all the same.
func TestSoftStopTakesNoMessageIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.relay.opt.Translator = messages{b.relay.opt.Translator}
	b.start()
	b.message("before")
	_, end := b.commit(row{"1", "a", "one"})
	b.awaitRecords(2)
	b.stop(nil)
	b.await("draining", func() bool { return b.relay.Snapshot().State == Draining })
	seen := b.relay.pump.turns.Load()
	late := b.message("after")
	b.keepalive(0)
	b.await("the message", func() bool { return b.relay.pump.turns.Load() >= seen+2 })
	b.kafka.ack(0)
	b.kafka.ack(1)
	if err := b.result(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if got := b.kafka.values(); !slices.Equal(got, []string{"before", "one"}) {
		t.Errorf("submitted %q", got)
	}
	if got := b.confirmed(); got != end || got >= late {
		t.Errorf("confirmed %v, want %v and not the message at %v", got, end, late)
	}
}

// TestDrainWaitsForTheMessageUnderWay: one that was taken in before the stop is
// delivered before the end.
func TestDrainWaitsForTheMessageUnderWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.relay.opt.Translator = messages{b.relay.opt.Translator}
	b.kafka.full = make(chan struct{}) // the second record waits
	b.start()
	b.message("one")
	b.awaitRecords(1)
	at := b.message("two")
	b.await("the second message", func() bool { return b.relay.pump.open.Load() && b.relay.pump.blocked.Load() })
	b.kafka.ack(0)
	b.stop(nil)
	b.await("draining", func() bool { return b.relay.Snapshot().State == Draining })
	close(b.kafka.full)
	b.awaitRecords(2)
	b.kafka.ack(1)
	if err := b.result(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if got := b.confirmed(); got != at {
		t.Errorf("confirmed %v, want the second message's %v", got, at)
	}
}

// sizes notes what is told of transactions.
type sizes struct {
	noMetrics
	mu   sync.Mutex
	seen []int
}

func (s *sizes) TransactionEvents(n int) {
	s.mu.Lock()
	s.seen = append(s.seen, n)
	s.mu.Unlock()
}

func deletion(oid uint32) []byte {
	b := binary.BigEndian.AppendUint32([]byte{'D'}, oid)
	b = append(b, 'K')
	b = binary.BigEndian.AppendUint16(b, uint16(len(columns)))
	for range columns {
		b = append(b, 'n')
	}
	return b
}

// TestTransactionEventsAreTheSubmittedOnes: an outbox row that is deleted in the
// transaction that wrote it counts once, also when the connection broke in the
// middle.
func TestTransactionEventsAreTheSubmittedOnes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	metrics := &sizes{}
	b.relay.opt.Metrics = metrics
	b.kafka.auto = true
	b.start()
	const commit, end = 500, 508
	b.mu.Lock()
	for _, data := range [][]byte{
		beginMessage(commit), relationMessage(),
		insertMessage(row{"1", "a", "one"}), deletion(relationOID),
		insertMessage(row{"2", "a", "two"}), deletion(relationOID),
	} {
		b.add(end, data)
	}
	b.lsn = end
	b.notify()
	b.mu.Unlock()
	b.awaitRecords(2)
	b.cut()
	b.await("second session", func() bool { return b.sessions() == 2 })
	b.mu.Lock()
	b.add(end, insertMessage(row{"3", "a", "three"}))
	b.add(end, commitMessage(commit, end))
	b.notify()
	b.mu.Unlock()
	b.awaitConfirmed(end)
	_, last := b.commit(row{"4", "a", "four"})
	b.awaitConfirmed(last)
	metrics.mu.Lock()
	defer metrics.mu.Unlock()
	if !slices.Equal(metrics.seen, []int{3, 1}) {
		t.Errorf("transactions of %d events, want 3 and 1", metrics.seen)
	}
}
