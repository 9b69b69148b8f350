package event

import (
	"strconv"
	"strings"

	"github.com/jackc/pglogrepl"
)

// Reject says why a row, or a whole table, does not make events. It names the
// event but holds no value of any other column.
type Reject struct {
	Table   string
	Column  string // empty when no single one is at fault
	EventID string // as the row has it; empty when there is none to name
	LSN     pglogrepl.LSN
	Text    string
	Way     string // the hint
}

func (e *Reject) Error() string {
	var b strings.Builder
	if e.EventID != "" {
		b.WriteString("event ")
		b.WriteString(printable(e.EventID))
		b.WriteString(" in ")
	}
	b.WriteString("table ")
	b.WriteString(e.Table)
	if e.LSN != 0 {
		b.WriteString(" at ")
		b.WriteString(e.LSN.String())
	}
	if e.Column != "" {
		b.WriteString(": column ")
		b.WriteString(e.Column)
	}
	b.WriteString(": ")
	b.WriteString(e.Text)
	return b.String()
}

// Hint says what to do about it.
func (e *Reject) Hint() string { return e.Way }

// printable keeps an id fit for a line of text: a long one is cut, and one that
// holds anything odd is quoted.
func printable(id string) string {
	const most = 100
	if len(id) > most {
		return strconv.Quote(id[:most]) + "…"
	}
	quoted := strconv.Quote(id)
	if len(quoted) != len(id)+2 || strings.Contains(id, " ") {
		return quoted
	}
	return id
}
