package slot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/pg"
)

// Table names a table exactly as the catalogue has it: upper case stays upper
// case, and nothing is folded.
type Table struct {
	Schema string
	Name   string
}

// ParseTable reads schema.table or table, each part plain or in double quotes.
// Without a schema it is public.
func ParseTable(s string) (Table, error) {
	var parts []string
	for rest := strings.TrimSpace(s); ; {
		part, after, ok := cutIdent(rest)
		if !ok || part == "" || len(part) > 63 || strings.ContainsRune(part, 0) {
			return Table{}, fmt.Errorf("%q is not a table name: write schema.table, with a part that has a dot in it in double quotes", s)
		}
		parts = append(parts, part)
		if after == "" {
			break
		}
		rest = after[1:]
	}
	switch len(parts) {
	case 1:
		return Table{Schema: "public", Name: parts[0]}, nil
	case 2:
		return Table{Schema: parts[0], Name: parts[1]}, nil
	}
	return Table{}, fmt.Errorf("%q is not a table name: it has more than two parts", s)
}

// cutIdent takes one identifier off the front of s; rest is empty or begins
// with the dot that follows.
func cutIdent(s string) (name, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		i := strings.IndexByte(s, '.')
		if i < 0 {
			i = len(s)
		}
		return s[:i], s[i:], !strings.ContainsAny(s[:i], "\" \t\r\n")
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != '"' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '"' {
			b.WriteByte('"')
			i++
			continue
		}
		rest := s[i+1:]
		return b.String(), rest, rest == "" || rest[0] == '.'
	}
	return "", "", false
}

// String gives schema.table, quoted where PostgreSQL would quote, so that
// ParseTable reads it back.
func (t Table) String() string { return quoteIfNeeded(t.Schema) + "." + quoteIfNeeded(t.Name) }

func (t Table) quoted() string { return pg.QuoteQualified(t.Schema, t.Name) }

func quoteIfNeeded(s string) string {
	plain := s != "" && (s[0] < '0' || s[0] > '9') && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_'
	}) < 0
	if plain {
		return s
	}
	return pg.QuoteIdent(s)
}

// Column of a table in the catalogue.
type Column struct {
	Name    string
	Type    string // as format_type shows it
	TypeOID uint32
	TypeMod int32
	NotNull bool
}

// Definition is what the catalogue says of a table.
type Definition struct {
	Table
	OID         uint32
	Partitioned bool
	Persistent  bool // neither unlogged nor temporary
	Columns     []Column
}

const tableSQL = `
select c.oid, c.relkind::text, c.relpersistence::text
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = $1 and c.relname = $2`

const columnsSQL = `
select attname, format_type(atttypid, atttypmod), atttypid, atttypmod, attnotnull
  from pg_attribute
 where attrelid = $1::bigint::oid and attnum > 0 and not attisdropped and attgenerated = ''
 order by attnum`

// FindTable looks a table up; nil means that there is none. Generated columns
// are left out, because they are not published.
func FindTable(ctx context.Context, conn *pgx.Conn, t Table) (*Definition, error) {
	def := &Definition{Table: t}
	var kind, persistence string
	err := conn.QueryRow(ctx, tableSQL, t.Schema, t.Name).Scan(&def.OID, &kind, &persistence)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, describe("look up table "+t.String(), err)
	}
	if kind != "r" && kind != "p" {
		return nil, &Error{
			Kind: ErrTable,
			Text: t.String() + " is not a table",
			Way:  "name the table itself: views and foreign tables have no changes that could be published",
		}
	}
	def.Partitioned, def.Persistent = kind == "p", persistence == "p"
	rows, err := conn.Query(ctx, columnsSQL, int64(def.OID))
	if err != nil {
		return nil, describe("look up table "+t.String(), err)
	}
	def.Columns, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Column])
	if err != nil {
		return nil, describe("look up table "+t.String(), err)
	}
	return def, nil
}

func missingTable(t Table) *Error {
	return &Error{
		Kind: ErrTable,
		Text: "table " + t.String() + " does not exist",
		Way:  `create it with "walpost init --create-table", or name the outbox table with --table; names are case sensitive`,
	}
}

// Check says whether the table can be an outbox: whether its changes reach the
// WAL, and what fits, if not nil, says of its columns. The error is an *Error.
func (d *Definition) Check(fits func(*Definition) error) error {
	if !d.Persistent {
		return &Error{
			Kind: ErrTable,
			Text: "table " + d.String() + " is unlogged or temporary: its changes never reach the WAL",
			Way:  "alter table " + d.quoted() + " set logged",
		}
	}
	if fits == nil {
		return nil
	}
	err := fits(d)
	if err == nil {
		return nil
	}
	e := &Error{Kind: ErrTable, Text: err.Error(), Err: err}
	if h, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		e.Way = h.Hint()
	}
	return e
}
