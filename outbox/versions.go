package outbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const countVersions = `
insert into walpost.aggregate_versions as v (aggregate_type, aggregate_id, version) values ($1, $2, $3)
on conflict (aggregate_type, aggregate_id) do update set version = v.version + excluded.version
returning version - $3 + 1`

// NextVersions reserves n versions for an aggregate that has no version column
// of its own, and gives the first. The counter stays locked until the
// transaction ends, so the versions have no holes, and are in commit order.
func NextVersions(ctx context.Context, tx pgx.Tx, aggregateType, aggregateID string, n int) (first int64, err error) {
	if tx == nil {
		return 0, noTransaction("nil")
	}
	fault := (&Event{AggregateType: aggregateType, AggregateID: aggregateID}).fault(0)
	if n < 1 {
		return 0, fault("Version", fmt.Sprintf("%d versions cannot be reserved", n), "reserve at least 1")
	}
	if err := (&Event{AggregateType: aggregateType, AggregateID: aggregateID, Type: "-"}).check(fault); err != nil {
		return 0, err
	}
	if err := tx.QueryRow(ctx, countVersions, aggregateType, aggregateID, int64(n)).Scan(&first); err != nil {
		return 0, missing("reserve versions of "+aggregateType+" "+aggregateID, err)
	}
	return first, nil
}
