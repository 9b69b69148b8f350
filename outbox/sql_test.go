package outbox

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/jackc/pgx/v5"
)

const goldenDerived = "019c1c38-a47b-8224-bee6-9effcb570e91"

// sqlTx is a pgx transaction as an Execer. It gives parameters without types, as
// most drivers do.
type sqlTx struct{ tx pgx.Tx }

func (s sqlTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	tag, err := s.tx.Exec(ctx, query, append([]any{pgx.QueryExecModeDescribeExec}, args...)...)
	return driver.RowsAffected(tag.RowsAffected()), err
}

type noDriver struct{}

func (noDriver) Connect(context.Context) (driver.Conn, error) { return nil, errors.New("no") }
func (noDriver) Driver() driver.Driver                        { return nil }

// wrapped is what libraries make of a *sql.DB.
type wrapped struct{ *sql.DB }

func notTransactions(b *bench) map[string]Execer {
	db := sql.OpenDB(noDriver{})
	b.Cleanup(func() { db.Close() })
	return map[string]Execer{"nil": nil, "DB": db, "Conn": &sql.Conn{}, "wrapped": wrapped{db}, "nil Tx": (*sql.Tx)(nil)}
}
