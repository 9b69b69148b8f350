package column

import (
	"errors"
	"fmt"
)

// class says what Debezium does about a value that it cannot convert.
type class uint8

const (
	classLost       class = iota // event.converting.failure.handling.mode decides
	classUnexpected              // null if the column is optional, else as lost
	classFatal                   // the task fails
	classRefused                 // it publishes what cannot be reproduced
)

// Error is a value, or a column, that cannot be converted.
type Error struct {
	Column  string
	Type    string // of PostgreSQL
	Problem string
	// Refused says that Debezium would have published something, which is not
	// the same in two runs.
	Refused bool
	hint    string
}

// Error names the column, its type and the problem; it never has the value.
func (e *Error) Error() string { return fmt.Sprintf("column %q (%s): %s", e.Column, e.Type, e.Problem) }

// Hint says in one line what to do.
func (e *Error) Hint() string { return e.hint }

// ModeError is a mode that Debezium does not know.
type ModeError struct {
	Name  string // of the connector's option
	Value string
	hint  string
}

// Error names the option and its value.
func (e *ModeError) Error() string { return e.Name + "=" + e.Value + ": no such mode" }

// Hint lists the modes there are.
func (e *ModeError) Hint() string { return e.hint }

// problem is an error inside this package, before the column is known.
type problem struct {
	class class
	text  string
	hint  string
}

func (p *problem) Error() string { return p.text }

const (
	hintText    = "the text is not what PostgreSQL prints with the session settings of the relay; report it with the column's type"
	hintSpecial = "set decimal.handling.mode to string or double, which have NaN and Infinity"
	hintRange   = "choose another time.precision.mode, or correct the row"
	hintAddress = "Debezium prints a memory address for it; use a one-dimensional array, or leave the column out"
	hintMoney   = "set lc_monetary of the database to a locale with a one-character symbol in front, such as C or en_US"
	hintElement = "Debezium allows no null in an array of this type; remove it from the row, or leave the column out"
)

var (
	errText           = &problem{classFatal, "unexpected text", hintText}
	errLost           = &problem{classLost, "text that Debezium's converter does not read", hintText}
	errSpecial        = &problem{classLost, "NaN or Infinity, which decimal.handling.mode=precise cannot hold", hintSpecial}
	errSpecialElement = &problem{classLost, "NaN or Infinity in an array, which Debezium's driver does not read", "correct the row, or use float8[]"}
	errScale          = &problem{classLost, "more digits than the scale of the column", hintSpecial}
	errNano           = &problem{classUnexpected, "outside the range of nanoseconds since 1970", hintRange}
	errOffset         = &problem{classFatal, "a time zone with seconds in its offset", hintRange}
	errMoney          = &problem{classFatal, "money in a format that Debezium does not read", hintMoney}
	errAddress        = &problem{classRefused, "a multidimensional array of text", hintAddress}
	errElement        = &problem{classLost, "null in an array whose elements are required", hintElement}
	errBits           = &problem{classLost, "an array of bit strings, which Debezium cannot publish", "leave the column out"}
	errDimension      = &problem{classUnexpected, "an array inside an array", hintAddress}
)

// asProblem tells the reason of an error of this package.
func asProblem(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	return &problem{classFatal, err.Error(), hintText}
}
