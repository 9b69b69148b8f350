package javaregex

import (
	"fmt"
	"strconv"
)

// Error says why a pattern or a replacement is not used.
type Error struct {
	Text   string // the pattern or the replacement
	Offset int    // in characters
	Reason string
	way    string
}

// Error names the text, the place and the reason.
func (e *Error) Error() string {
	return fmt.Sprintf("%s, character %d: %s", strconv.Quote(e.Text), e.Offset+1, e.Reason)
}

// Hint says in one line what to do.
func (e *Error) Hint() string { return e.way }

const (
	wayRewrite = "rewrite it without this; a plain group or a character class often does the same"
	wayFault   = "Java does not accept it either; correct it"
	wayGroup   = `name a group of the regular expression, as ${name} or $1; write a dollar itself as \$`
)
