package decoder

import (
	"time"

	"github.com/jackc/pglogrepl"
)

// Kind says what a Change is. The names are those of the PostgreSQL manual,
// "Logical Replication Message Formats".
type Kind uint8

// The kinds of messages that protocol version 1 sends.
const (
	KindBegin Kind = iota + 1
	KindCommit
	KindRelation
	KindType
	KindOrigin
	KindInsert
	KindUpdate
	KindDelete
	KindTruncate
	KindMessage
	// KindStreamAbort is a stray abort that PostgreSQL 18 can send although
	// streaming is off. It concerns nothing that was delivered; the caller
	// counts it.
	KindStreamAbort
)

// Transaction is the header that every change carries. LSNs are WAL positions
// of one system identifier; CommitTime is the server's clock.
type Transaction struct {
	XID       uint32
	CommitLSN pglogrepl.LSN // start of the commit record; known from Begin on
	EndLSN    pglogrepl.LSN // end of the commit record; zero until Commit
	// CommitTime has microsecond resolution.
	CommitTime time.Time
}

// Relation describes a table as of one point of the WAL. It is immutable: a
// change of the table arrives as a new *Relation, so the pointer can be used as
// a key for whatever was derived from it.
type Relation struct {
	OID       uint32
	Namespace string
	Name      string
	Identity  byte // replica identity: 'd', 'n', 'f' or 'i'
	Columns   []Column
}

// Column of a Relation, in the order in which tuples carry their values.
type Column struct {
	Name    string
	Key     bool   // part of the replica identity
	TypeOID uint32 // pg_type.oid
	TypeMod int32  // pg_attribute.atttypmod
}

// ValueKind says how a column value arrived.
type ValueKind byte

// The forms of a column value on the wire.
const (
	Null      ValueKind = 'n'
	Unchanged ValueKind = 'u' // TOASTed and not sent; never a value
	Text      ValueKind = 't' // the type's output function
	Binary    ValueKind = 'b' // the type's send function
)

// Value is one column of a tuple. Data points into the decoded message.
type Value struct {
	Kind ValueKind
	Data []byte
}

// LogicalMessage is what pg_logical_emit_message wrote.
type LogicalMessage struct {
	Transactional bool
	LSN           pglogrepl.LSN
	Prefix        string
	Content       []byte
}

// Change is one decoded message. It and everything that it points to, except
// Relation and its columns, is valid until the next call of Decode.
type Change struct {
	Kind Kind
	// LSN is where the message's WAL record starts; zero for a Relation. It
	// serves diagnostics only: it is neither unique nor a position to confirm.
	LSN pglogrepl.LSN
	// Transaction is nil outside of one (a non-transactional Message).
	Transaction *Transaction
	// Ordinal counts the row changes and transactional messages of this
	// transaction, from 1; zero for every other kind. (CommitLSN, Ordinal) is
	// an event's position.
	Ordinal  uint32
	Relation *Relation // Relation, Insert, Update, Delete
	New      []Value   // Insert, Update
	Old      []Value   // Update, Delete, when the server sends it
	// Relations are the tables of a Truncate.
	Relations []*Relation
	Message   LogicalMessage
}
