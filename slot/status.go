package slot

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/failpoint"
)

// statusLoop sends status updates: on a timer, soon after the confirmable
// position moved, and whenever the server asks.
func (s *Stream) statusLoop() {
	defer close(s.done)
	timer := time.NewTimer(s.opt.StatusInterval)
	defer timer.Stop()
	var last time.Time
	for {
		asked := false
		select {
		case <-s.stop:
			return
		case <-timer.C:
		case <-s.asked:
			asked = true
		case <-s.moved:
			if wait := s.opt.ConfirmInterval - time.Since(last); wait > 0 {
				timer.Reset(wait)
				continue
			}
		}
		if err := s.sendStatus(asked); err != nil {
			// The reader finds out too; it has the better error.
			s.log.Debug("status update not sent", zap.Error(err))
			_ = s.conn.Conn().Close()
			return
		}
		last = time.Now()
		timer.Reset(s.opt.StatusInterval)
	}
}

// sendStatus tells the server what is received and what it may forget.
//
// When the server asks and there is something that cannot be confirmed yet, a
// second update follows: write is the position received, flush and apply are
// zero. It confirms nothing. But a server that shuts down waits until flush, or
// write if flush is zero, has reached what it sent (walsender.c, WalSndDone): an
// older flush position would hold up a fast shutdown for as long as we answer.
func (s *Stream) sendStatus(asked bool) error {
	if err := failpoint.Fail("slot.before-status"); err != nil {
		return err
	}
	s.writing.Lock() // before the positions are read, so that they are sent in order
	defer s.writing.Unlock()
	s.mu.Lock()
	write, flush := s.received, s.confirmed
	// A server that hears from us has no reason to speak on an idle database;
	// asked for a reply, it shows that it is there.
	silent := time.Since(s.lastSeen) > s.opt.StatusInterval
	s.mu.Unlock()
	if s.opt.Unmoved {
		flush = s.slotAt
	}
	if err := s.write(statusUpdate(write, flush, silent)); err != nil {
		return err
	}
	if err := failpoint.Fail("slot.after-status"); err != nil {
		return err
	}
	s.mu.Lock()
	s.flushed = max(s.flushed, flush)
	s.mu.Unlock()
	if asked && flush < write {
		return s.write(statusUpdate(write, 0, false))
	}
	return nil
}

// statusUpdate encodes a standby status update in a CopyData message: the
// protocol's 34 bytes behind the 5 of the message header. The client library's
// function cannot be used: it replaces a zero flush position by the write
// position, which would confirm what is not delivered.
func statusUpdate(write, flush pglogrepl.LSN, reply bool) []byte {
	const body = 1 + 8 + 8 + 8 + 8 + 1
	b := make([]byte, 0, 5+body)
	b = append(b, 'd')
	b = binary.BigEndian.AppendUint32(b, 4+body)
	b = append(b, 'r')
	b = binary.BigEndian.AppendUint64(b, uint64(write))
	b = binary.BigEndian.AppendUint64(b, uint64(flush))
	b = binary.BigEndian.AppendUint64(b, uint64(flush)) // apply
	b = binary.BigEndian.AppendUint64(b, uint64(time.Now().UnixMicro()-pgEpoch))
	if reply {
		return append(b, 1)
	}
	return append(b, 0)
}

// write sends one message; the caller holds writing.
func (s *Stream) write(b []byte) error {
	if _, err := s.conn.Conn().Write(b); err != nil {
		return fmt.Errorf("write to replication connection: %w", err)
	}
	return nil
}

// copyDone ends the copy from our side.
func (s *Stream) copyDone() error {
	b, err := (&pgproto3.CopyDone{}).Encode(nil)
	if err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.write(b)
}
