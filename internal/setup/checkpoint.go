package setup

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/checkpoint"
)

const (
	checkpointSQL = `select to_regclass('walpost.checkpoint') is not null and to_regclass('walpost.checkpoint_offset') is not null`

	checkpointCurrentSQL = `
select exists (select from pg_attribute
                where attrelid = to_regclass('walpost.checkpoint') and attname = 'epoch' and not attisdropped)`
)

// planCheckpoint also makes the schema, unless the table's guard does.
func planCheckpoint(ctx context.Context, conn *pgx.Conn, guarded bool) (step, error) {
	s := step{Step: Step{Name: "checkpoint", Object: "walpost.checkpoint", State: Unchanged}}
	var there, current, schema bool
	if err := conn.QueryRow(ctx, checkpointSQL).Scan(&there); err != nil {
		return s, failed("look for the checkpoint tables", err)
	}
	if there {
		if err := conn.QueryRow(ctx, checkpointCurrentSQL).Scan(&current); err != nil {
			return s, failed("look at the checkpoint tables", err)
		}
		if !current {
			s.State, s.statements = Upgraded, checkpoint.Upgrade()
		}
		return s, nil
	}
	if err := conn.QueryRow(ctx, guardSchemaSQL).Scan(&schema); err != nil {
		return s, failed("look for the schema of the checkpoint tables", err)
	}
	s.State = Created
	if !schema && !guarded {
		s.statements = append(s.statements, createSchema)
	}
	s.statements = append(s.statements, checkpoint.Statements()...)
	return s, nil
}
