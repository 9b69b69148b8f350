package connector

import "strings"

// exitCode is the process's exit code for a configuration that does not do.
const exitCode = 2

// Error is one fault of a file: what is wrong, and what to do. Neither line
// holds a secret.
type Error struct {
	Text string
	Way  string
}

func (e *Error) Error() string { return e.Text }

// Hint is the line printed below the error.
func (e *Error) Hint() string { return e.Way }

// ExitCode is that of a usage or configuration error.
func (e *Error) ExitCode() int { return exitCode }

// Errors are all faults that were found, in the order of the file.
type Errors []*Error

func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Text
	}
	return strings.Join(lines, "; ")
}

// Errors lists them for a printer that gives each its own lines.
func (es Errors) Errors() []error {
	list := make([]error, len(es))
	for i, e := range es {
		list[i] = e
	}
	return list
}

// ExitCode is that of a usage or configuration error.
func (es Errors) ExitCode() int { return exitCode }
