package decoder

import (
	"time"

	"github.com/jackc/pglogrepl"
)

// epoch is 2000-01-01 in Unix seconds, where PostgreSQL's clock starts.
const epoch = 946684800

// serverTime converts microseconds since 2000. Seconds and microseconds are
// split before the epoch is added, so that no value wraps.
func serverTime(micros int64) time.Time {
	return time.Unix(micros/1e6+epoch, micros%1e6*1e3).UTC()
}

func (d *Decoder) begin(c *Change, r *reader) {
	if d.open {
		r.fail(0, "transaction %d has not ended (commit LSN %s)", d.tx.XID, d.tx.CommitLSN)
		return
	}
	final := pglogrepl.LSN(r.uint64("the final LSN"))
	at := int64(r.uint64("the commit time"))
	xid := r.uint32("the transaction id")
	if r.ok() && final == 0 {
		r.fail(1, "the final LSN is zero")
	}
	r.end()
	if !r.ok() {
		return
	}
	d.tx = Transaction{XID: xid, CommitLSN: final, CommitTime: serverTime(at)}
	d.open, d.ordinal = true, 0
	c.Kind, c.Transaction = KindBegin, &d.tx
}

func (d *Decoder) commit(c *Change, r *reader) {
	if !d.open {
		r.fail(0, "outside a transaction")
		return
	}
	flags := r.uint8("the flags")
	commit := pglogrepl.LSN(r.uint64("the commit LSN"))
	end := pglogrepl.LSN(r.uint64("the end LSN"))
	r.uint64("the commit time") // Begin had it
	switch {
	case !r.ok():
	case flags != 0:
		r.fail(1, "unknown flags 0x%02x", flags)
	case commit != d.tx.CommitLSN:
		// The low-water mark is counted in these positions; a pair that does
		// not match means that a message is missing.
		r.fail(2, "commit LSN %s, but the transaction began with %s", commit, d.tx.CommitLSN)
	case end <= commit:
		r.fail(10, "end LSN %s is not after commit LSN %s", end, commit)
	}
	r.end()
	if !r.ok() {
		return
	}
	d.tx.EndLSN = end
	d.open = false
	c.Kind = KindCommit
}

// origin says on which other server the transaction was first made. Its name is
// of no use to an outbox.
func (d *Decoder) origin(c *Change, r *reader) {
	if !d.open {
		r.fail(0, "outside a transaction")
		return
	}
	r.uint64("the origin's LSN")
	r.text0("the origin's name")
	c.Kind = KindOrigin
}

// streamAbort reads what PostgreSQL 18 can send although streaming is off, when
// it meets the abort record of a transaction of which it sent nothing. Between
// transactions it is harmless. Inside one it would take back rows that have
// already been passed on, so there it is refused.
func (d *Decoder) streamAbort(c *Change, r *reader) {
	if d.open {
		r.fail(0, "abort inside a transaction, although streaming is off")
		return
	}
	r.uint32("the transaction id")
	r.uint32("the subtransaction id")
	if r.ok() && r.left() > 0 { // protocol version 4 adds both
		r.uint64("the abort LSN")
		r.uint64("the abort time")
	}
	c.Kind = KindStreamAbort
}

// message is a logical message. A transactional one belongs to the open
// transaction and has a place in its order; any other one stands alone, even
// when its writer rolled back.
func (d *Decoder) message(c *Change, r *reader) {
	flags := r.uint8("the flags")
	lsn := pglogrepl.LSN(r.uint64("the message's LSN"))
	prefix := r.text0("the prefix")
	content := r.bytes(r.uint32("the length of the content"), "the content")
	if r.ok() && flags > 1 {
		r.fail(1, "unknown flags 0x%02x", flags)
	}
	r.end()
	if !r.ok() {
		return
	}
	transactional := flags == 1
	if transactional {
		if d.next(c, r); !r.ok() {
			return
		}
	} else {
		c.Transaction = nil
	}
	if string(prefix) != d.prefix {
		d.prefix = string(prefix)
	}
	c.Kind = KindMessage
	c.Message = LogicalMessage{Transactional: transactional, LSN: lsn, Prefix: d.prefix, Content: content}
}
