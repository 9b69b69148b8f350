package sim

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
)

// row is an outbox row of the schedule.
type row struct {
	ID        string
	Topic     string // the aggregate type
	Aggregate string
	Payload   int // bytes
}

// transaction of the schedule. At its time it commits; its rows were written
// before, among those of others, which shows in their LSNs alone.
type transaction struct {
	At      time.Duration
	Events  []row
	Aborted bool // it only leaves WAL behind
	Foreign int  // bytes of WAL of other tables before it
	Copy    bool // all rows share one LSN
	Early   bool // its rows were written before the last transaction committed
}

// committed is a transaction in the WAL.
type committed struct {
	commit, end pglogrepl.LSN
	at          time.Time
	events      []row
	messages    []message // begin, relation, rows, commit
}

type message struct {
	lsn  pglogrepl.LSN
	data []byte
}

// newCommitted lays a transaction out behind end.
func newCommitted(end pglogrepl.LSN, t *transaction, now time.Time) *committed {
	at := end + 8
	rows := at
	if t.Early && end > 400 {
		rows = end - 200 // interleaved with what has committed since
	}
	c := &committed{events: t.Events, at: now}
	c.commit = at + pglogrepl.LSN(40*len(t.Events)) + 8
	c.end = c.commit + 24
	micros := uint64(now.UnixMicro() - 946684800*1_000_000)
	b := binary.BigEndian.AppendUint64([]byte{'B'}, uint64(c.commit))
	b = binary.BigEndian.AppendUint64(b, micros)
	c.messages = append(c.messages, message{rows, binary.BigEndian.AppendUint32(b, uint32(c.commit))})
	if len(t.Events) > 0 {
		c.messages = append(c.messages, message{0, relationMessage})
	}
	for i := range t.Events {
		lsn := rows
		if !t.Copy {
			lsn += pglogrepl.LSN(40 * i)
		}
		c.messages = append(c.messages, message{lsn, insertMessage(&t.Events[i])})
	}
	b = binary.BigEndian.AppendUint64([]byte{'C', 0}, uint64(c.commit))
	b = binary.BigEndian.AppendUint64(b, uint64(c.end))
	c.messages = append(c.messages, message{c.commit, binary.BigEndian.AppendUint64(b, micros)})
	return c
}

const relationOID = 16384

var columns = []string{"event_id", "aggregate_type", "aggregate_id", "event_type", "payload"}

var relationMessage = func() []byte {
	b := binary.BigEndian.AppendUint32([]byte{'R'}, relationOID)
	b = append(b, "public\x00outbox_events\x00d"...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(columns)))
	for _, c := range columns {
		b = append(b, 0)
		b = append(b, c+"\x00"...)
		b = binary.BigEndian.AppendUint32(b, 25)
		b = binary.BigEndian.AppendUint32(b, 0xffffffff)
	}
	return b
}()

// payload is the same bytes whenever it is asked for.
func (e *row) payload() string { return fmt.Sprintf(`{"id":"%s","pad":"%0*d"}`, e.ID, e.Payload, 0) }

func insertMessage(e *row) []byte {
	b := binary.BigEndian.AppendUint32([]byte{'I'}, relationOID)
	b = append(b, 'N')
	values := []string{e.ID, e.Topic, e.Aggregate, "Changed", e.payload()}
	b = binary.BigEndian.AppendUint16(b, uint16(len(values)))
	for _, v := range values {
		b = append(b, 't')
		b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
		b = append(b, v...)
	}
	return b
}
