package slot

import (
	"errors"
	"strings"
)

// What callers branch on. Every *Error of this package wraps exactly one.
var (
	ErrNotFound    = errors.New("slot not found")
	ErrInUse       = errors.New("slot in use") // passing: another instance streams
	ErrLost        = errors.New("slot lost")   // invalidated: WAL it needed is gone
	ErrForeign     = errors.New("foreign history")
	ErrUnfit       = errors.New("slot does not fit")           // two_phase, plugin, database, physical
	ErrPublication = errors.New("publication does not fit")    // missing, re-created, table not in it
	ErrTable       = errors.New("outbox table does not fit")   // missing, re-created, not readable as an outbox
	ErrServer      = errors.New("server setting does not fit") // wal_level, no free slot, standby
	ErrDenied      = errors.New("not permitted")               // authentication or privileges
	ErrProtocol    = errors.New("unexpected replication message")
)

// Error says in one line what is wrong and in another what to do about it.
// Neither holds a password.
type Error struct {
	Kind     error
	Text     string
	Way      string // the hint; may be empty
	SQLState string // of the server's error, when there is one
	Err      error  // the cause, may be nil
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Text
	}
	cause := e.Err.Error()
	if strings.Contains(e.Text, cause) {
		return e.Text
	}
	return e.Text + ": " + cause
}

// Hint is the line printed below the error.
func (e *Error) Hint() string { return e.Way }

// Unwrap gives the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}
