package slot

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/walpost/walpost/internal/poison"
)

// Receive returns the next message, valid until the next call. It blocks until
// there is one, or the stream has ended; then it returns an error for good.
func (s *Stream) Receive() (Message, error) {
	m, err := s.receive()
	if err != nil {
		s.ending.Do(func() { close(s.ended) })
	}
	return m, err
}

func (s *Stream) receive() (Message, error) {
	poison.Bytes(s.lent)
	s.lent = nil
	for {
		msg, err := s.conn.ReceiveMessage(context.Background())
		if err != nil {
			select {
			case <-s.stop:
				return Message{}, ErrClosed
			default:
			}
			return Message{}, s.typed(context.Background(), err)
		}
		switch msg := msg.(type) {
		case *pgproto3.CopyData:
			m, skip, err := s.copyData(msg.Data)
			if err != nil || !skip {
				return m, err
			}
		case *pgproto3.ErrorResponse:
			return Message{}, s.typed(context.Background(), pgconn.ErrorResponseToPgError(msg))
		case *pgproto3.NoticeResponse:
			// PostgreSQL 18 does not fail when the publication is not there at this
			// point of the WAL (pgoutput.c, LoadPublications); it warns, and leaves
			// the rows out. The text is in the server's language, and nothing else
			// that decoding says has this code: if another does, a stop is the
			// mistake that loses nothing.
			if msg.Code == "55000" {
				return Message{}, publicationGone(s.opt.Publication, msg.Code, errors.New(msg.Message))
			}
		case *pgproto3.ParameterStatus, *pgproto3.NotificationResponse:
		case *pgproto3.CopyDone, *pgproto3.CommandComplete, *pgproto3.ReadyForQuery:
			s.mu.Lock()
			closing := s.closing
			s.mu.Unlock()
			if closing {
				return Message{}, ErrClosed
			}
			return Message{}, errServerEnded
		default:
			return Message{}, &Error{Kind: ErrProtocol, Text: fmt.Sprintf("unexpected message %T in the replication stream", msg)}
		}
	}
}

// ErrClosed is what Receive returns after Close or Abort.
var ErrClosed = errors.New("replication stream closed")

// errServerEnded is how a fast shutdown looks from here.
var errServerEnded = errors.New("the server ended the replication stream")

// The streaming replication protocol: "XLogData (B)" and "Primary keepalive
// message (B)" of the PostgreSQL manual.
const (
	xlogDataHeader  = 1 + 8 + 8 + 8
	keepaliveLength = 1 + 8 + 8 + 1
)

func (s *Stream) copyData(data []byte) (m Message, skip bool, err error) {
	if len(data) == 0 {
		return m, false, &Error{Kind: ErrProtocol, Text: "empty replication message"}
	}
	switch data[0] {
	case 'w':
		if len(data) < xlogDataHeader {
			return m, false, &Error{Kind: ErrProtocol, Text: "short XLogData message"}
		}
		m.WALStart = pglogrepl.LSN(binary.BigEndian.Uint64(data[1:]))
		m.ServerWALEnd = pglogrepl.LSN(binary.BigEndian.Uint64(data[9:]))
		m.ServerTime = serverTime(data[17:])
		m.Data = data[xlogDataHeader:]
		s.lent = m.Data
		return m, s.saw(m.WALStart, false), nil
	case 'k':
		if len(data) != keepaliveLength {
			return m, false, &Error{Kind: ErrProtocol, Text: "keepalive message of wrong length"}
		}
		m.Keepalive = true
		m.ServerWALEnd = pglogrepl.LSN(binary.BigEndian.Uint64(data[1:]))
		m.ServerTime = serverTime(data[9:])
		return m, s.saw(m.ServerWALEnd, data[17] != 0), nil
	default:
		return m, false, &Error{Kind: ErrProtocol, Text: fmt.Sprintf("unknown replication message %q", data[0])}
	}
}

// saw notes a position of the server; it reports whether nobody wants the
// message because the stream is closing.
func (s *Stream) saw(lsn pglogrepl.LSN, reply bool) (skip bool) {
	s.mu.Lock()
	s.received = max(s.received, lsn)
	s.lastSeen = time.Now()
	skip = s.closing
	s.mu.Unlock()
	if reply {
		select {
		case s.asked <- struct{}{}:
		default:
		}
	}
	return skip
}

// microseconds between the Unix epoch and PostgreSQL's, 2000-01-01.
const pgEpoch = 946684800 * 1_000_000

func serverTime(b []byte) time.Time {
	return time.UnixMicro(int64(binary.BigEndian.Uint64(b)) + pgEpoch)
}
