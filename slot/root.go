package slot

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// pg_partition_root is null for a table that is neither a partition nor
// partitioned.
const rootSQL = `
select n.nspname, c.relname,
       exists (select from pg_publication_tables p
                 join pg_namespace pn on pn.nspname = p.schemaname
                 join pg_class pc on pc.relnamespace = pn.oid and pc.relname = p.tablename
                where p.pubname = $2 and pc.oid in (c.oid, $1::bigint::oid))
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where c.oid = coalesce(pg_partition_root($1::bigint::regclass), $1::bigint::regclass)`

// Root names the topmost partitioned table that the relation belongs to now,
// which is itself when it is no partition, and says whether the publication
// publishes it now. ok is false when the relation is gone.
func Root(ctx context.Context, conn *pgx.Conn, publication string, relOID uint32) (root Table, published, ok bool, err error) {
	err = conn.QueryRow(ctx, rootSQL, int64(relOID), publication).Scan(&root.Schema, &root.Name, &published)
	if errors.Is(err, pgx.ErrNoRows) {
		return Table{}, false, false, nil
	}
	if err != nil {
		return Table{}, false, false, describe("look up a partition's table", err)
	}
	return root, published, true, nil
}
