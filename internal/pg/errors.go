package pg

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// Error says in one line what is wrong with a connection or a statement and in
// another what to do about it. Neither holds a password.
type Error struct {
	Text     string
	Way      string // the hint; may be empty
	SQLState string // of the server's error, when there is one
	Err      error  // the cause, may be nil

	permanent bool
}

func (e *Error) Error() string { return e.Text }

// Hint is the line printed below the error.
func (e *Error) Hint() string { return e.Way }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// SQLState is the code of the server's error in err, or empty.
func SQLState(err error) string {
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pe.Code
	}
	return ""
}

// passingStates pass without anybody doing anything. Class 08 is among them in
// IsPassing.
var passingStates = map[string]bool{
	"40001": true, // serialization_failure
	"40P01": true, // deadlock_detected
	"53000": true, // insufficient_resources
	"53100": true, // disk_full
	"53200": true, // out_of_memory
	"53300": true, // too_many_connections
	"55006": true, // object_in_use: the slot is active
	"55P03": true, // lock_not_available
	"57014": true, // query_canceled: statement_timeout
	"57P01": true, // admin_shutdown
	"57P02": true, // crash_shutdown
	"57P03": true, // cannot_connect_now
	"57P05": true, // idle_session_timeout
}

// IsPassing says whether err goes away by itself: trying again is right, and
// nothing that a person has set is wrong. What it does not know does not pass.
func IsPassing(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	if e, ok := errors.AsType[*Error](err); ok && e.permanent {
		return false
	}
	if throughPooler(err) {
		return false
	}
	if state := SQLState(err); state != "" {
		return passingStates[state] || strings.HasPrefix(state, "08")
	}
	return isNetwork(err) || notChosen(err) ||
		errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err)
}

func isNetwork(err error) bool {
	if ne, ok := errors.AsType[net.Error](err); ok && !isTLSAlert(ne) {
		return true
	}
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return true
	}
	for _, known := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// throughPooler recognises a connection pooler in the place of the server, by
// what it answers.
func throughPooler(err error) bool {
	pe, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	text := strings.ToLower(pe.Message + " " + pe.Detail)
	for _, sign := range []string{
		"unsupported startup parameter",             // PgBouncer; for replication up to 1.22
		"extended query protocol not supported",     // PgBouncer, on a replication connection
		"replication connections are not supported", // poolers of providers
		"replication connections are not allowed",
		"replication is not supported via a pooled",
		"no more connections allowed (max_client_conn)", // PgBouncer's own limit
		"pgbouncer", "pooler",
	} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}
