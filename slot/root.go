package slot

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// pg_partition_root is null for a table that is neither a partition nor
// partitioned.
const rootSQL = `
select n.nspname, c.relname
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where c.oid = coalesce(pg_partition_root($1::bigint::regclass), $1::bigint::regclass)`

// Root names the topmost partitioned table that the relation belongs to, which
// is itself when it is no partition. ok is false when the relation is gone.
func Root(ctx context.Context, conn *pgx.Conn, relOID uint32) (schema, name string, ok bool, err error) {
	err = conn.QueryRow(ctx, rootSQL, int64(relOID)).Scan(&schema, &name)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", "", false, nil
	}
	if err != nil {
		return "", "", false, describe("look up a partition's table", err)
	}
	return schema, name, true, nil
}
