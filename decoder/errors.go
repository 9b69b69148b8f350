package decoder

import (
	"fmt"

	"github.com/jackc/pglogrepl"
)

// DecodeError says which message could not be decoded, where in it, and why.
// It never holds a column's value.
type DecodeError struct {
	// LSN of the message, or of the transaction's commit when the message has
	// none (a Relation).
	LSN    pglogrepl.LSN
	Type   byte // the message's first byte; zero when it has none
	Offset int  // from the start of the message
	Text   string
}

func (e *DecodeError) Error() string {
	if e.Type == 0 {
		return fmt.Sprintf("decode message at %s: %s", e.LSN, e.Text)
	}
	return fmt.Sprintf("decode message %q at %s, offset %d: %s", e.Type, e.LSN, e.Offset, e.Text)
}

// Hint says what to do about it.
func (e *DecodeError) Hint() string {
	switch e.Type {
	case 'b', 'P', 'K', 'r', 'p':
		return "the slot was created with two_phase; create it without, walpost reads prepared transactions at COMMIT PREPARED"
	case 'S', 'E', 'c':
		return "walpost asks for protocol version 1 without streaming; see that no proxy alters the replication connection"
	default:
		return "nothing was skipped and nothing was confirmed beyond this position; report it with the server's version, and see that no proxy alters the replication connection"
	}
}
