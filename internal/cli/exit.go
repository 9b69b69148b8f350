package cli

import "errors"

// The exit codes of every command.
const (
	OK       = 0
	Failure  = 1 // something went wrong at run time
	Usage    = 2 // the command line or the configuration does not do
	Findings = 3 // a check found problems
	Decision = 4 // somebody has to decide: slot lost, foreign history, gap
	Fenced   = 5 // another instance of the same slot has taken over
)

// Exit gives an error an exit code and a hint. Fill Err.
type Exit struct {
	Code int
	Err  error
	Way  string // the hint; empty leaves that of Err
}

func (e *Exit) Error() string { return e.Err.Error() }

// Unwrap gives the error.
func (e *Exit) Unwrap() error { return e.Err }

// ExitCode of the process.
func (e *Exit) ExitCode() int { return e.Code }

// Hint is the line printed below the error.
func (e *Exit) Hint() string {
	if e.Way != "" {
		return e.Way
	}
	return hint(e.Err)
}

// UsageError is an Exit for a command line that does not do.
func UsageError(text, way string) error {
	return &Exit{Code: Usage, Err: errors.New(text), Way: way}
}

// ExitCode is that of the outermost error that has one, and Failure where none
// does.
func ExitCode(err error) int {
	if err == nil {
		return OK
	}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return Failure
}

func hint(err error) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	return ""
}
