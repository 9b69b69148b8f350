package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/debezium/column"
)

// ErrNotFound is in the error about a table that is not there.
var ErrNotFound = errors.New("no such table")

// Error is a table that cannot be read.
type Error struct {
	Table string
	Err   error
	hint  string
}

// Error names the table.
func (e *Error) Error() string { return fmt.Sprintf("read the columns of %s: %v", e.Table, e.Err) }

// Unwrap returns what happened.
func (e *Error) Unwrap() error { return e.Err }

// Hint says in one line what to do.
func (e *Error) Hint() string { return e.hint }

const (
	hintGone = "the table was dropped after its rows were written; there is no catalog of the past, so publish what is left of it with the connector that was there before"
	hintName = "check schema and table, and their case; names are compared as they are"
)

// Read returns the columns of a table, by the OID in its Relation message, in the
// table's order. A table of the past gives an error with ErrNotFound.
func Read(ctx context.Context, conn *pgx.Conn, relOID uint32) ([]column.Info, error) {
	var columns []column.Info
	err := aside(ctx, conn, func() error {
		var err error
		columns, err = read(ctx, conn, relOID)
		return err
	})
	if err == nil && len(columns) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		e := &Error{Table: fmt.Sprintf("table with OID %d", relOID), Err: err}
		if errors.Is(err, ErrNotFound) {
			e.hint = hintGone
		}
		return nil, e
	}
	return columns, nil
}

// ByName returns the OID and the columns of a table.
func ByName(ctx context.Context, conn *pgx.Conn, schema, table string) (uint32, []column.Info, error) {
	var oid uint32
	var columns []column.Info
	err := aside(ctx, conn, func() error {
		err := conn.QueryRow(ctx, oidQuery, schema, table).Scan(&oid)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		columns, err = read(ctx, conn, oid)
		return err
	})
	if err != nil {
		e := &Error{Table: pgx.Identifier{schema, table}.Sanitize(), Err: err}
		if errors.Is(err, ErrNotFound) {
			e.hint = hintName
		}
		return 0, nil, e
	}
	return oid, columns, nil
}

// settings decide how defaults are printed.
const settings = `set local timezone = 'UTC'; set local datestyle = 'ISO, MDY'; set local intervalstyle = 'postgres'; ` +
	`set local extra_float_digits = 1; set local bytea_output = 'hex'`

// aside runs f with our settings and one state of the catalog; in the caller's
// transaction, if there is one, from which they are removed again.
func aside(ctx context.Context, conn *pgx.Conn, f func() error) error {
	begin, end := "begin isolation level repeatable read, read only", "rollback"
	if conn.PgConn().TxStatus() != 'I' {
		begin, end = "savepoint walpost_catalog", "rollback to savepoint walpost_catalog; release savepoint walpost_catalog"
	}
	if _, err := conn.Exec(ctx, begin+"; "+settings); err != nil {
		// The first statement may have worked. The connection is of no use to
		// the caller if this fails as well.
		_, _ = conn.Exec(ctx, end)
		return err
	}
	err := f()
	_, endErr := conn.Exec(ctx, end)
	return errors.Join(err, endErr)
}

// read does the work; no columns means no table.
func read(ctx context.Context, conn *pgx.Conn, relOID uint32) ([]column.Info, error) {
	rows, err := conn.Query(ctx, columnQuery, relOID)
	if err != nil {
		return nil, err
	}
	columns, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (column.Info, error) {
		var c column.Info
		var generated string
		err := row.Scan(&c.Name, &c.TypeOID, &c.TypeMod, &c.NotNull, &c.KeyPlace, &c.HasDefault, &c.Default, &generated, &c.Comment)
		c.Key = c.KeyPlace > 0
		if generated != "" {
			c.Generated = generated[0]
		}
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("columns: %w", err)
	}
	wanted := make([]uint32, 0, len(columns))
	for i := range columns {
		wanted = append(wanted, columns[i].TypeOID)
	}
	types, err := readTypes(ctx, conn, wanted)
	if err != nil {
		return nil, fmt.Errorf("types: %w", err)
	}
	for i := range columns {
		t, ok := types[columns[i].TypeOID]
		if !ok {
			return nil, fmt.Errorf("type %d of column %q is not in pg_type", columns[i].TypeOID, columns[i].Name)
		}
		columns[i].Type = *t
	}
	return columns, nil
}

// readTypes returns the types with all that they are made of.
func readTypes(ctx context.Context, conn *pgx.Conn, wanted []uint32) (map[uint32]*column.TypeInfo, error) {
	rows, err := conn.Query(ctx, typeQuery, wanted)
	if err != nil {
		return nil, err
	}
	types := map[uint32]*column.TypeInfo{}
	below := map[uint32]uint32{}
	var oid, base uint32
	var kind string
	var t column.TypeInfo
	_, err = pgx.ForEachRow(rows, []any{&oid, &t.Schema, &t.Name, &kind, &t.TypMod, &base, &t.Labels}, func() error {
		n := t
		n.OID, n.Kind = oid, kind[0]
		types[oid], below[oid] = &n, base
		t.Labels = nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	for oid, base := range below {
		switch t := types[oid]; {
		case base == 0:
		case t.Kind == 'd':
			t.Base = types[base]
		default:
			t.Elem = types[base]
		}
	}
	return types, nil
}
