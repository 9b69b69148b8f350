package sim

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/slot"
)

// session is a walsender and the slot.Stream at its other end: relay.Stream.
type session struct {
	pg  *postgres
	who *instance

	// Guarded by the server's mutex.
	start     pglogrepl.LSN
	walEnd    pglogrepl.LSN
	next      int // transaction in the WAL
	at        int // message in it
	sent      pglogrepl.LSN
	old       bool          // a keepalive with an older position goes first
	confirmed pglogrepl.LSN // by the relay
	flushed   pglogrepl.LSN // told to the server
	sending   bool
	heard     time.Time
	err       error // why it ended
	closing   bool
	idle      time.Time

	done chan struct{}
	once sync.Once
}

func (s *session) finish() { s.once.Do(func() { close(s.done) }) }

// Receive is slot.Stream's. Messages cross a connection that can be held.
func (s *session) Receive() (slot.Message, error) {
	m, err := s.receive()
	if err != nil {
		s.finish()
	}
	return m, err
}

func (s *session) receive() (slot.Message, error) {
	for {
		s.pg.mu.Lock()
		changed := s.pg.changed
		if s.closing {
			s.pg.mu.Unlock()
			return slot.Message{}, slot.ErrClosed
		}
		if !s.who.postgres.isHeld() {
			if s.err != nil || s.pg.active != s {
				err := s.err
				s.pg.mu.Unlock()
				if err == nil {
					err = errReset
				}
				return slot.Message{}, err
			}
			m, ok := s.message()
			s.who.sent = max(s.who.sent, s.sent)
			if ok {
				s.heard = time.Now()
				s.pg.mu.Unlock()
				return m, nil
			}
		}
		s.pg.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(walSenderTimeout / 2):
		}
	}
}

// message is what the walsender sends next.
func (s *session) message() (slot.Message, bool) {
	now := time.Now()
	keepalive := func(lsn pglogrepl.LSN) (slot.Message, bool) {
		s.idle = now
		return slot.Message{Keepalive: true, ServerWALEnd: lsn, ServerTime: now}, true
	}
	if s.next < len(s.pg.wal) {
		t := s.pg.wal[s.next]
		if s.at > 0 && s.at%16 == 0 && !s.old {
			s.old = true // while it decodes a large one it shows that it lives
			return keepalive(t.commit - pglogrepl.LSN(len(t.messages)-s.at))
		}
		s.old = false
		m := t.messages[s.at]
		if s.at++; s.at == len(t.messages) {
			s.next, s.at = s.next+1, 0
			s.sent = max(s.sent, t.end)
		}
		return slot.Message{WALStart: m.lsn, ServerWALEnd: t.end, ServerTime: now, Data: append([]byte(nil), m.data...)}, true
	}
	if s.sent < s.pg.end {
		if !s.old && s.next > 0 {
			s.old = true // the first of a pair carries the position before
			return keepalive(s.pg.wal[s.next-1].commit)
		}
		s.old, s.sent = false, s.pg.end
		return keepalive(s.pg.end)
	}
	if now.Sub(s.idle) >= walSenderTimeout/2 {
		return keepalive(s.sent)
	}
	return slot.Message{}, false
}

// reported says whether the client has what was sent: it answers at once with
// its write position when it confirms less (see slot.Stream).
func (s *session) reported() bool {
	return s.next == len(s.pg.wal) && s.sent >= s.pg.end && !s.who.postgres.isHeld()
}

// silent says that the client cannot be heard; the server's timeout is for that.
func (s *session) silent() bool { return s.who.postgres.isHeld() || s.who.isDead() }

// Confirm is slot.Stream's.
func (s *session) Confirm(lsn pglogrepl.LSN) {
	s.pg.mu.Lock()
	defer s.pg.mu.Unlock()
	if s.who.isDead() || lsn <= s.confirmed {
		return // an older position is ignored
	}
	if lsn > s.who.sent {
		s.pg.world.fail("I4", "%s confirms %v, beyond %v which is all that it was sent", s.who.name, lsn, s.who.sent)
	}
	s.pg.check("confirmation", s.who, lsn)
	s.confirmed = lsn
	if s.sending {
		return
	}
	s.sending = true
	s.pg.world.spawn(func() {
		time.Sleep(100 * time.Millisecond) // slot.StreamOptions.ConfirmInterval
		s.report()
	})
}

// report sends a status update.
func (s *session) report() {
	if s.who.postgres.reach(context.Background()) == nil {
		s.pg.with(func() { s.flush() })
	}
}

// beat reports at intervals, whether anything moved or not.
func (s *session) beat() {
	for {
		select {
		case <-s.done:
			return
		case <-time.After(walSenderTimeout / 3):
			s.report()
		}
	}
}

// flush is a status update that arrives.
func (s *session) flush() {
	s.sending = false
	if s.pg.active != s || s.pg.down > 0 || s.who.isDead() {
		return
	}
	s.flushed = s.confirmed
	if s.confirmed > s.pg.confirmed {
		s.pg.confirmed = s.confirmed
		s.pg.world.log("postgres", "slot at %v, by %s", s.confirmed, s.who.name)
	}
}

// Close is slot.Stream's: a last status update, and an end in good order.
func (s *session) Close(ctx context.Context) error {
	if err := s.who.postgres.reach(ctx); err != nil {
		return err
	}
	time.Sleep(latency)
	var err error
	s.pg.with(func() {
		if s.pg.active != s {
			err = errReset
			return
		}
		s.flush()
		s.closing = true
		s.pg.active = nil
	})
	return err
}

// Abort is slot.Stream's.
func (s *session) Abort() {
	s.pg.with(func() {
		s.closing = true
		if s.pg.active == s && !s.who.postgres.isHeld() {
			s.pg.active = nil
		}
	})
	s.finish()
}

// Positions is slot.Stream's.
func (s *session) Positions() (received, flushed pglogrepl.LSN, seen time.Time) {
	s.pg.mu.Lock()
	defer s.pg.mu.Unlock()
	return s.sent, s.flushed, s.heard
}

// History is slot.Stream's.
func (s *session) History() slot.History {
	return slot.History{SystemID: systemID, Timeline: 1, LSN: s.start}
}

// WALEnd is slot.Stream's.
func (s *session) WALEnd() pglogrepl.LSN { return s.walEnd }

// Published is slot.Stream's.
func (s *session) Published() *slot.Published {
	return &slot.Published{Tables: []slot.PublishedTable{{Table: slot.Table{Schema: "public", Name: "outbox_events"}, OID: relationOID}}}
}

// Done is slot.Stream's.
func (s *session) Done() <-chan struct{} { return s.done }

// monitor is relay.Monitor; it knows the one table that there is.
type monitor struct{}

func (monitor) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
func (monitor) Expect(*slot.Published)   {}
func (monitor) Latest() slot.Observation { return slot.Observation{} }
func (monitor) Root(context.Context, uint32) (root slot.Table, published, ok bool, err error) {
	return slot.Table{}, false, false, nil
}
