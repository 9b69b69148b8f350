package decoder

import (
	"fmt"

	"github.com/jackc/pglogrepl"
)

// Decoder keeps what pgoutput says only once per connection: the relations, and
// the transaction that is open. It is not safe for concurrent use.
type Decoder struct {
	relations map[uint32]*Relation
	tx        Transaction
	open      bool // between Begin and Commit
	ordinal   uint32
	failed    *DecodeError

	// Reused by every call: a row costs no allocation.
	change   Change
	newTuple []Value
	oldTuple []Value
	truncate []*Relation
	prefix   string // of the last logical message
}

// New returns a decoder for the start of a replication stream.
func New() *Decoder {
	return &Decoder{relations: make(map[uint32]*Relation)}
}

// Reset forgets relations, transaction and error. On a new connection the server
// begins with a whole transaction and describes every relation again.
func (d *Decoder) Reset() {
	clear(d.relations)
	d.tx, d.open, d.ordinal, d.failed = Transaction{}, false, 0, nil
	d.change = Change{}
}

// InTransaction says whether a Begin is waiting for its Commit. A keepalive in
// between says nothing about what may be confirmed.
func (d *Decoder) InTransaction() bool { return d.open }

// Decode reads one message that started at lsn. The Change belongs to the
// decoder: it is valid until the next call, and its values point into data.
//
// An error is a *DecodeError, and final: every later call returns it again,
// until Reset. What follows a message that was not understood cannot be trusted.
func (d *Decoder) Decode(lsn pglogrepl.LSN, data []byte) (*Change, error) {
	if d.failed != nil {
		return nil, d.failed
	}
	c := &d.change
	*c = Change{LSN: lsn}
	if d.open {
		c.Transaction = &d.tx
	}
	r := reader{data: data}
	kind := r.uint8("the message type")
	if r.ok() {
		d.parse(c, &r, kind)
		r.end()
	}
	if !r.ok() {
		if lsn == 0 && c.Transaction != nil {
			lsn = c.Transaction.CommitLSN
		}
		d.failed = &DecodeError{LSN: lsn, Type: kind, Offset: r.at, Text: r.text}
		return nil, d.failed
	}
	return c, nil
}

func (d *Decoder) parse(c *Change, r *reader, kind byte) {
	switch kind {
	case 'I':
		d.insert(c, r)
	case 'B':
		d.begin(c, r)
	case 'C':
		d.commit(c, r)
	case 'R':
		d.relation(c, r)
	case 'Y':
		d.typ(c, r)
	case 'O':
		d.origin(c, r)
	case 'U':
		d.update(c, r)
	case 'D':
		d.delete(c, r)
	case 'T':
		d.truncated(c, r)
	case 'M':
		d.message(c, r)
	case 'A':
		d.streamAbort(c, r)
	default:
		r.fail(0, "%s", unknown(kind))
	}
}

// unknown names the messages that protocol version 1 must not hold.
func unknown(kind byte) string {
	switch kind {
	case 'b', 'P', 'K', 'r', 'p':
		return "a two-phase message, which is not part of protocol version 1"
	case 'S', 'E', 'c':
		return "a streaming message, which is not part of protocol version 1"
	default:
		return fmt.Sprintf("unknown message type 0x%02x", kind)
	}
}

// next counts a row change or transactional message. It fails where there is no
// transaction to count in.
func (d *Decoder) next(c *Change, r *reader) {
	if !d.open {
		r.fail(0, "outside a transaction")
		return
	}
	if d.ordinal == ^uint32(0) {
		r.fail(0, "more than %d changes in one transaction", d.ordinal)
		return
	}
	d.ordinal++
	c.Ordinal = d.ordinal
}
