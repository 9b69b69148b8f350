package outbox

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// What callers branch on, with errors.Is.
var (
	// ErrInvalid is an event that cannot be written. Nothing was sent to the
	// server, so the transaction goes on as if Write had not been called.
	ErrInvalid = errors.New("invalid event")
	// ErrTooLarge is an event whose payload or headers are too large. Nothing was
	// sent to the server.
	ErrTooLarge = errors.New("event too large")
	// ErrNoTransaction is something that would write the event outside of the
	// transaction that it belongs to.
	ErrNoTransaction = errors.New("not a transaction")
	// ErrVersionTaken is a version that the aggregate has already; the transaction
	// is aborted. Run the command again from the aggregate's present state.
	ErrVersionTaken = errors.New("aggregate version taken")
	// ErrIDTaken is an event id that was written before; the transaction is
	// aborted. With derived ids it says that the command was carried out before.
	ErrIDTaken = errors.New("event id taken")
	// ErrNotAnEvent is a record that carries no usable event id.
	ErrNotAnEvent = errors.New("not an event")
	// ErrGap is a version that is not the next one, under RejectGaps.
	ErrGap = errors.New("version gap")
	// ErrNotHead is a parked event that others of its aggregate come before.
	ErrNotHead = errors.New("not the aggregate's next event")
	// ErrNotParked is an event that is not among the parked ones, or not any more.
	ErrNotParked = errors.New("not parked")
)

// Error says what is wrong, and in another line what to do about it.
type Error struct {
	Text string
	Way  string // the hint; may be empty
	Kind error  // one of the Err values, or nil
	Err  error  // the cause, or nil
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Text + ": " + e.Err.Error()
	}
	return e.Text
}

// Hint says what to do, in one line.
func (e *Error) Hint() string { return e.Way }

// Unwrap gives the kind and the cause.
func (e *Error) Unwrap() []error {
	var list []error
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			list = append(list, err)
		}
	}
	return list
}

// EventError names the event, among those of one call, and the field that is at
// fault. It is an ErrInvalid or an ErrTooLarge.
type EventError struct {
	Index int    // of the event in the call, from 0
	Event string // aggregate and event type, as far as they are known
	Field string // of Event
	Text  string
	Way   string
	Kind  error
}

// Error implements error.
func (e *EventError) Error() string {
	return fmt.Sprintf("event %d (%s): %s: %s", e.Index+1, e.Event, e.Field, e.Text)
}

// Hint says what to do, in one line.
func (e *EventError) Hint() string { return e.Way }

// Unwrap gives ErrInvalid or ErrTooLarge.
func (e *EventError) Unwrap() error { return e.Kind }

// sqlState is the code of the server's error in err, whatever driver made it.
func sqlState(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// constraint is the name of the violated one. lib/pq gives it by its protocol
// letter.
func constraint(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.ConstraintName
	}
	var e interface{ Get(byte) string }
	if errors.As(err, &e) {
		return e.Get('n')
	}
	return ""
}

// isConflict says whether the same transaction can succeed when it runs again.
func isConflict(err error) bool {
	switch sqlState(err) {
	case "40001", "40P01", "55P03": // serialization_failure, deadlock_detected, lock_not_available
		return true
	}
	return false
}

// missing adds what to do about tables that are not there, or not for us.
func missing(text string, err error) *Error {
	e := &Error{Text: text, Err: err}
	switch sqlState(err) {
	case "42P01", "3F000", "42703": // undefined_table, invalid_schema_name, undefined_column
		e.Way = "make the tables with outbox.Migrate, or run what outbox.SQL gives"
	case "42501":
		e.Way = "let the tables' owner grant what this role needs; see Grants in the package documentation"
	case "25P02":
		e.Way = "an earlier statement of this transaction failed: roll it back and begin again"
	case "26000", "42P05": // a prepared statement that is not there, or there already
		e.Way = "behind a pooler in transaction mode set default_query_exec_mode=exec in the connection string"
	}
	return e
}
