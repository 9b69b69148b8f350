package relay

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/internal/event"
	"github.com/walpost/walpost/internal/route"
	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

// server is a scripted PostgreSQL: a log of transactions that any number of
// sessions read, and a recorder of what they confirm.
type server struct {
	known    slot.History // as the last session was opened with
	t        *testing.T
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change
	log      []slot.Message
	ends     []pglogrepl.LSN // of log: the end of the transaction that a message belongs to
	slotAt   pglogrepl.LSN
	openErr  error
	opened   int
	streams  []*stream
	lsn      pglogrepl.LSN
	systemID string
}

func newServer(t *testing.T) *server {
	return &server{t: t, changed: make(chan struct{}), slotAt: 100, lsn: 100, systemID: "7000"}
}

func (s *server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// row is an outbox row.
type row struct{ id, aggregate, payload string }

// commit appends a transaction and returns its commit and end LSN.
func (s *server) commit(rows ...row) (commit, end pglogrepl.LSN) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.append(rows, true)
}

// begin appends a transaction whose commit has not arrived.
func (s *server) begin(rows ...row) (finish func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, end := s.append(rows, false)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.add(end, commitMessage(end-8, end))
		s.notify()
	}
}

func (s *server) append(rows []row, complete bool) (commit, end pglogrepl.LSN) {
	commit = s.lsn + pglogrepl.LSN(10*len(rows)) + 10
	end = commit + 8
	s.lsn = end
	s.add(end, beginMessage(commit))
	s.add(end, relationMessage())
	for _, r := range rows {
		s.add(end, insertMessage(r))
	}
	if complete {
		s.add(end, commitMessage(commit, end))
	}
	s.notify()
	return commit, end
}

func (s *server) add(end pglogrepl.LSN, data []byte) {
	s.log = append(s.log, slot.Message{WALStart: end, ServerWALEnd: end, ServerTime: time.Now(), Data: data})
	s.ends = append(s.ends, end)
}

// raw appends any message.
func (s *server) raw(data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lsn++
	s.add(s.lsn, data)
	s.notify()
}

// keepalive appends a keepalive at lsn, or at the end of the log.
func (s *server) keepalive(lsn pglogrepl.LSN) pglogrepl.LSN {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lsn == 0 {
		s.lsn += 5
		lsn = s.lsn
	}
	s.log = append(s.log, slot.Message{Keepalive: true, ServerWALEnd: lsn, ServerTime: time.Now()})
	s.ends = append(s.ends, lsn)
	s.notify()
	return lsn
}

func (s *server) open(_ context.Context, known slot.History, _ func() (slot.History, error), _ *slot.Published) (Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	s.known = known
	defer s.notify()
	if s.openErr != nil {
		return nil, s.openErr
	}
	start := max(s.slotAt, known.LSN)
	st := &stream{server: s, start: start, confirmed: start, stop: make(chan struct{}), end: make(chan struct{})}
	for st.next < len(s.log) && s.ends[st.next] <= start {
		st.next++
	}
	s.streams = append(s.streams, st)
	return st, nil
}

// cut ends the newest session, as a lost connection would.
func (s *server) cut() {
	s.mu.Lock()
	st := s.streams[len(s.streams)-1]
	s.mu.Unlock()
	st.Abort()
}

// refuse lets the server answer so when a stream is opened; nil ends that.
func (s *server) refuse(err error) {
	s.mu.Lock()
	s.openErr = err
	s.mu.Unlock()
}

// sessions counts the calls of open.
func (s *server) sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// confirmed is the slot's position.
func (s *server) confirmed() pglogrepl.LSN {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slotAt
}

// await waits until ok, looking again whenever something happens.
func (s *server) await(what string, ok func() bool) {
	s.t.Helper()
	timeout := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-timeout:
			s.t.Fatalf("timed out: %s", what)
		}
	}
}

type stream struct {
	server    *server
	start     pglogrepl.LSN
	next      int
	confirmed pglogrepl.LSN
	once      sync.Once
	stop      chan struct{}
	closed    bool
	seen      sync.Once
	end       chan struct{} // closed when Receive has seen the end after Close
}

func (st *stream) Receive() (slot.Message, error) {
	for {
		st.server.mu.Lock()
		if st.next < len(st.server.log) && !st.closed {
			m := st.server.log[st.next]
			st.next++
			st.server.mu.Unlock()
			return m, nil
		}
		changed := st.server.changed
		st.server.mu.Unlock()
		select {
		case <-st.stop:
			if st.closed {
				st.seen.Do(func() { close(st.end) })
				return slot.Message{}, slot.ErrClosed
			}
			return slot.Message{}, io.ErrUnexpectedEOF
		case <-changed:
		}
	}
}

func (st *stream) Confirm(lsn pglogrepl.LSN) {
	st.server.mu.Lock()
	defer st.server.mu.Unlock()
	if lsn < st.confirmed {
		st.server.t.Errorf("I5: confirmed %v after %v", lsn, st.confirmed)
	}
	st.confirmed = lsn
	st.server.slotAt = max(st.server.slotAt, lsn)
	st.server.notify()
}

func (st *stream) Positions() (received, flushed pglogrepl.LSN, seen time.Time) {
	st.server.mu.Lock()
	defer st.server.mu.Unlock()
	return st.server.lsn, st.confirmed, time.Now()
}

func (st *stream) History() slot.History {
	return slot.History{SystemID: st.server.systemID, Timeline: 1, LSN: st.start}
}

func (st *stream) WALEnd() pglogrepl.LSN { return st.start }

func (st *stream) Published() *slot.Published { return &slot.Published{} }

// Close waits for the server's answer, as the real one does: somebody must read it.
func (st *stream) Close(ctx context.Context) error {
	st.server.mu.Lock()
	st.closed = true
	st.server.mu.Unlock()
	st.Abort()
	select {
	case <-st.end:
		return nil
	case <-ctx.Done():
		st.server.t.Error("a stop waits for an answer of the server that nobody reads")
		return context.Cause(ctx)
	}
}

func (st *stream) Abort() { st.once.Do(func() { close(st.stop) }) }

func (st *stream) Done() <-chan struct{} { return st.stop }

// kafka is a sink that acks only what the test lets go.
type kafka struct {
	acked   func([]sink.Ack)
	mu      sync.Mutex
	records []sink.Record
	auto    bool
	status  sink.Status
	full    chan struct{} // when set, the second Submit waits for it
}

func (k *kafka) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (k *kafka) Submit(ctx context.Context, r *sink.Record) error {
	k.mu.Lock()
	if full := k.full; full != nil && len(k.records) > 0 {
		k.mu.Unlock()
		select {
		case <-full:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		k.mu.Lock()
	}
	c := *r
	c.Key, c.Value = append([]byte(nil), r.Key...), append([]byte(nil), r.Value...)
	k.records = append(k.records, c)
	auto := k.auto
	k.mu.Unlock()
	if auto {
		k.acked([]sink.Ack{{Tx: r.Tag.Tx, N: 1, Topic: r.Topic}})
	}
	return nil
}

func (k *kafka) Status() sink.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.status
	s.LastContact = time.Now()
	return s
}

// ack lets record i go.
func (k *kafka) ack(i int) {
	k.mu.Lock()
	tag := k.records[i].Tag
	k.mu.Unlock()
	k.acked([]sink.Ack{{Tx: tag.Tx, N: 1, Topic: "t"}})
}

func (k *kafka) values() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var v []string
	for _, r := range k.records {
		v = append(v, string(r.Value))
	}
	return v
}

type monitor struct {
	broken   func(error)
	shutdown func()
	roots    map[uint32]string
	former   map[uint32]bool // no longer published
}

func (m *monitor) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
func (m *monitor) Expect(*slot.Published)   {}
func (m *monitor) Latest() slot.Observation { return slot.Observation{} }
func (m *monitor) Root(_ context.Context, oid uint32) (root slot.Table, published, ok bool, err error) {
	name, ok := m.roots[oid]
	return slot.Table{Schema: "public", Name: name}, !m.former[oid], ok, nil
}

type noMetrics struct{}

func (noMetrics) EventReceived(int)                      {}
func (noMetrics) EventIgnored(string, int)               {}
func (noMetrics) EventsAcked(string, int, time.Duration) {}
func (noMetrics) TransactionEvents(int)                  {}
func (noMetrics) StreamConnect(string)                   {}
func (noMetrics) StreamDisconnect(string)                {}
func (noMetrics) DecodeError(string)                     {}

// bench is a relay between the fakes.
type bench struct {
	*server
	kafka   *kafka
	monitor *monitor
	relay   *Relay
	stop    context.CancelCauseFunc
	kill    context.CancelFunc
	ended   chan error
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{server: newServer(t), kafka: &kafka{}, monitor: &monitor{}, ended: make(chan error, 1)}
	mapper, err := event.NewMapper([]event.Table{{Schema: "public", Table: "outbox_events"}})
	if err != nil {
		t.Fatal(err)
	}
	router, err := route.New(route.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.relay, err = New(Options{
		SlotName: "walpost",
		Open:     b.server.open,
		NewSink: func(acked func([]sink.Ack)) (sink.Sink, error) {
			b.kafka.acked = acked
			return b.kafka, nil
		},
		NewMonitor: func(broken func(error), shutdown func()) Monitor {
			b.monitor.broken, b.monitor.shutdown = broken, shutdown
			return b.monitor
		},
		Translator: route.NewRows(mapper, router), Metrics: noMetrics{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// start runs the relay until the test ends.
func (b *bench) start() {
	intake, stop := context.WithCancelCause(context.Background())
	hard, kill := context.WithCancel(context.Background())
	b.stop, b.kill = stop, kill
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.ended <- b.relay.Run(intake, hard)
	}()
	b.t.Cleanup(func() {
		kill()
		stop(nil)
		<-done
	})
}

func (b *bench) result() error {
	b.t.Helper()
	select {
	case err := <-b.ended:
		return err
	case <-time.After(30 * time.Second):
		b.t.Fatal("the relay does not end")
		return nil
	}
}

func (b *bench) awaitRecords(n int) {
	b.t.Helper()
	b.await(fmt.Sprintf("%d records", n), func() bool { return len(b.kafka.values()) >= n })
}

func (b *bench) awaitConfirmed(lsn pglogrepl.LSN) {
	b.t.Helper()
	b.await(fmt.Sprintf("confirmation of %v", lsn), func() bool { return b.confirmed() >= lsn })
}

// The messages of protocol version 1.

func beginMessage(commit pglogrepl.LSN) []byte {
	b := binary.BigEndian.AppendUint64([]byte{'B'}, uint64(commit))
	b = binary.BigEndian.AppendUint64(b, uint64(time.Now().UnixMicro()-946684800000000))
	return binary.BigEndian.AppendUint32(b, uint32(commit))
}

func commitMessage(commit, end pglogrepl.LSN) []byte {
	b := binary.BigEndian.AppendUint64([]byte{'C', 0}, uint64(commit))
	b = binary.BigEndian.AppendUint64(b, uint64(end))
	return binary.BigEndian.AppendUint64(b, uint64(time.Now().UnixMicro()-946684800000000))
}

var columns = []string{"event_id", "aggregate_type", "aggregate_id", "event_type", "payload"}

const relationOID = 16384

func relationMessage() []byte { return relation(relationOID, "outbox_events") }

func relation(oid uint32, table string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{'R'}, oid)
	b = append(b, "public\x00"+table+"\x00d"...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(columns)))
	for _, c := range columns {
		b = append(b, 0)
		b = append(b, c+"\x00"...)
		b = binary.BigEndian.AppendUint32(b, 25)
		b = binary.BigEndian.AppendUint32(b, 0xffffffff)
	}
	return b
}

func insertMessage(r row) []byte { return insert(relationOID, r) }

func insert(oid uint32, r row) []byte {
	b := binary.BigEndian.AppendUint32([]byte{'I'}, oid)
	b = append(b, 'N')
	values := []string{r.id, "order", r.aggregate, "Created", r.payload}
	b = binary.BigEndian.AppendUint16(b, uint16(len(values)))
	for _, v := range values {
		b = append(b, 't')
		b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
		b = append(b, v...)
	}
	return b
}
