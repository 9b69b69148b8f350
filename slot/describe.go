package slot

import (
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walpost/walpost/internal/pg"
)

// describe says what a statement on an ordinary connection failed at. Only an
// *Error is a definite answer; a *pg.Error says that there is none now.
func describe(doing string, err error) error {
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok {
		if pe.Code == "42501" {
			return &Error{Kind: ErrDenied, Text: doing, SQLState: pe.Code, Err: err}
		}
		return &pg.Error{Text: doing + ": " + err.Error(), SQLState: pe.Code, Err: err}
	}
	d := pg.Describe(err)
	return &pg.Error{Text: doing + ": " + d.Text, Way: d.Way, Err: err}
}

func quote(s string) string { return strconv.Quote(s) }
