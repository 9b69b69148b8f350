package takeover

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/checkpoint"
	"github.com/walpost/walpost/internal/pg"
)

// The privileges are asked for one by one: has_table_privilege takes a list for
// any of it. A table that does not exist gives NULL.
const protectionSQL = `
select to_regnamespace('walpost') is not null,
       to_regclass('walpost.checkpoint') is not null and to_regclass('walpost.checkpoint_offset') is not null,
       exists (select from pg_attribute where attrelid = to_regclass('walpost.checkpoint') and attname = 'epoch' and not attisdropped),
       coalesce((select bool_and(has_table_privilege(t, p))
          from unnest(array[to_regclass('walpost.checkpoint')::oid, to_regclass('walpost.checkpoint_offset')::oid]) t,
               unnest(array['select', 'insert', 'update', 'delete']) p), false)
       and coalesce(has_schema_privilege(to_regnamespace('walpost')::oid, 'usage'), false),
       quote_ident(current_user)`

const lostProtection = "what is in flight when walpost is killed may come twice"

// protect looks for the checkpoint tables.
func protect(ctx context.Context, conn *pgx.Conn, store *checkpoint.Store) (Protection, error) {
	var p Protection
	var schema, tables, current, rights bool
	var role string
	if err := conn.QueryRow(ctx, protectionSQL).Scan(&schema, &tables, &current, &rights, &role); err != nil {
		return p, pg.Describe(err)
	}
	switch {
	case !tables:
		p.Text = "the checkpoint tables are missing: " + lostProtection
		if !schema {
			p.Statements = append(p.Statements, "create schema walpost")
		}
		p.Statements = append(append(p.Statements, checkpoint.Statements()...), checkpoint.Grants(role)...)
	case !current:
		p.Text = "the checkpoint tables are those of an older release: " + lostProtection
		p.Statements = checkpoint.Upgrade()
	case !rights:
		p.Text = "the role " + role + " may not write the checkpoint tables: " + lostProtection
		p.Statements = checkpoint.Grants(role)
	default:
		p.Usable, p.Text = true, "the checkpoint tables are there: a restarted walpost sends nothing twice"
	}
	c, err := store.Load(ctx)
	if err != nil && !errors.Is(err, checkpoint.ErrNoStore) {
		return p, err
	}
	p.Had = c != nil && c.LSN > 0
	return p, nil
}
