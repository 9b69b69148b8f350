package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// PrintError writes the two lines of an error, or of each one in a list. The
// texts pass scrub, which may be nil.
func PrintError(w io.Writer, err error, scrub func(string) string) {
	if err == nil {
		return
	}
	if scrub == nil {
		scrub = func(s string) string { return s }
	}
	var list interface{ Errors() []error }
	if errors.As(err, &list) {
		for _, each := range list.Errors() {
			PrintError(w, each, scrub)
		}
		return
	}
	printLines(w, "error", scrub(err.Error()), scrub(hint(err)))
}

// PrintWarning writes a warning like an error.
func PrintWarning(w io.Writer, text, way string) { printLines(w, "warning", text, way) }

func printLines(w io.Writer, kind, text, way string) {
	fmt.Fprintf(w, "%s: %s\n", kind, oneLine(text))
	if way != "" {
		fmt.Fprintf(w, "hint: %s\n", oneLine(way))
	}
}

// oneLine keeps the promise of two lines, whatever a server or driver wrote.
func oneLine(s string) string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, " ")
}

// WriteJSON writes v, indented, without escaping < and >.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Table aligns columns for people.
type Table struct {
	w *tabwriter.Writer
}

// NewTable writes to w when it is flushed.
func NewTable(w io.Writer) *Table {
	return &Table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
}

// Row adds cells. A control character in one becomes a space, so that no value
// can break the table or write to the terminal.
func (t *Table) Row(cells ...string) {
	clean := make([]string, len(cells))
	for i, cell := range cells {
		clean[i] = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return ' '
			}
			return r
		}, cell)
	}
	fmt.Fprintln(t.w, strings.Join(clean, "\t"))
}

// Flush writes the table.
func (t *Table) Flush() error { return t.w.Flush() }

// IsTerminal says whether w is a terminal. The null device is a character
// device too and is none.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
