package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// statement is one of a script, as psql would send it. Data is what follows a COPY
// from stdin.
type statement struct {
	sql    string
	data   string
	copies bool
}

// statements splits a script at its semicolons.
func statements(script string) ([]statement, error) {
	var list []statement
	rest := script
	for {
		end, err := statementEnd(rest)
		if err != nil {
			return nil, err
		}
		s := statement{sql: strings.TrimSpace(rest[:end])}
		rest = strings.TrimPrefix(rest[end:], ";")
		if blank(s.sql) {
			if rest == "" {
				return list, nil
			}
			continue
		}
		lower := strings.ToLower(s.sql)
		if i := strings.Index(lower, "copy "); i >= 0 && blank(s.sql[:i]) && strings.Contains(lower, "from stdin") {
			_, rest, _ = strings.Cut(rest, "\n")
			data, after, found := strings.Cut(rest, "\\.\n")
			if !found {
				return nil, fmt.Errorf("%q: its data have no last line, a backslash and a period", s.sql)
			}
			s.copies, s.data, rest = true, data, after
		}
		list = append(list, s)
	}
}

// blank says that nothing but comments is there.
func blank(sql string) bool {
	for sql = strings.TrimSpace(sql); strings.HasPrefix(sql, "--"); sql = strings.TrimSpace(sql) {
		_, sql, _ = strings.Cut(sql, "\n")
	}
	return sql == ""
}

// statementEnd finds the semicolon outside quotes and comments; the length if
// there is none.
func statementEnd(sql string) (int, error) {
	for i := 0; i < len(sql); i++ {
		rest := sql[i:]
		skip := 0
		switch {
		case rest[0] == ';':
			return i, nil
		case strings.HasPrefix(rest, "--"):
			if skip = strings.IndexByte(rest, '\n'); skip < 0 {
				return len(sql), nil
			}
		case strings.HasPrefix(rest, "/*"):
			if skip = strings.Index(rest, "*/") + 1; skip < 1 {
				return 0, fmt.Errorf("a comment does not end: %.40q", rest)
			}
		case rest[0] == '\'':
			escapes := i > 0 && (sql[i-1] == 'E' || sql[i-1] == 'e')
			for skip = 1; skip < len(rest) && rest[skip] != '\''; skip++ {
				if escapes && rest[skip] == '\\' {
					skip++
				}
			}
		case rest[0] == '"':
			skip = strings.IndexByte(rest[1:], '"') + 1
			if skip < 1 {
				skip = len(rest)
			}
		case rest[0] == '$':
			tag, _, ok := strings.Cut(rest[1:], "$")
			if !ok || strings.ContainsAny(tag, " \n;'\"") {
				continue
			}
			tag = "$" + tag + "$"
			if skip = strings.Index(rest[len(tag):], tag); skip < 0 {
				return 0, fmt.Errorf("%s does not end", tag)
			}
			skip += 2*len(tag) - 1
		}
		if i += skip; i >= len(sql) {
			return 0, fmt.Errorf("a quote does not end: %.40q", rest)
		}
	}
	return len(sql), nil
}

// execute runs a script as psql does: each statement by itself.
func execute(ctx context.Context, conn *pgx.Conn, script string) error {
	list, err := statements(script)
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.copies {
			_, err = conn.PgConn().CopyFrom(ctx, strings.NewReader(s.data), s.sql)
		} else {
			err = send(ctx, conn.PgConn(), s.sql)
		}
		if err != nil {
			return fmt.Errorf("%.200s: %w", s.sql, err)
		}
	}
	return nil
}

func send(ctx context.Context, conn *pgconn.PgConn, sql string) error {
	_, err := conn.Exec(ctx, sql).ReadAll()
	return err
}
