package slot

import (
	"time"

	"github.com/jackc/pglogrepl"
)

// Message is one message of the replication stream.
type Message struct {
	// Keepalive is set for a primary keepalive message, which has only
	// ServerWALEnd and ServerTime.
	Keepalive bool
	WALStart  pglogrepl.LSN
	// ServerWALEnd of a keepalive is the position up to which the walsender has
	// decoded: every commit below it has been sent before it.
	ServerWALEnd pglogrepl.LSN
	ServerTime   time.Time
	// Data is a pgoutput message, valid until the next call of Receive.
	Data []byte
}
