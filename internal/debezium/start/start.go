package start

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/debezium/connector"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/slot"
)

// Options of Run.
type Options struct {
	Spec *connector.Spec
	Slot string
	// Tables take the place of what the connector's lists select.
	Tables []slot.Table
	// Look makes nothing that is missing.
	Look bool
	Log  *zap.Logger
}

// Run finds the tables and makes the publication where it is missing. Errors
// that are not a *slot.Error, or of the configuration, are passing faults.
func Run(ctx context.Context, conn *pgx.Conn, opt Options) ([]slot.Table, error) {
	if _, err := slot.CheckServer(ctx, conn); err != nil {
		return nil, err
	}
	var err error
	tables := opt.Tables
	if len(tables) == 0 {
		if tables, err = Tables(ctx, conn, opt.Spec); err != nil {
			return nil, err
		}
	}
	for _, t := range tables {
		if def, err := slot.FindTable(ctx, conn, t); err != nil {
			return nil, err
		} else if def == nil {
			return nil, &slot.Error{
				Kind: slot.ErrTable, Text: "table " + t.String() + " does not exist",
				Way: "name the outbox table in postgres.tables, or in table.include.list; names are case sensitive",
			}
		}
	}
	steps, err := Publication(ctx, conn, opt.Spec, tables)
	if err != nil {
		return nil, err
	}
	if opt.Look || len(steps) == 0 {
		return tables, nil
	}
	info, err := slot.Inspect(ctx, conn, opt.Slot)
	if err != nil {
		return nil, err
	}
	if p, err := slot.FindPublication(ctx, conn, opt.Spec.PublicationName); err != nil {
		return nil, err
	} else if p == nil && info.Exists {
		// The server looks publications up as of the WAL that it decodes.
		return nil, &slot.Error{
			Kind: slot.ErrPublication,
			Text: fmt.Sprintf("slot %q exists, and publication %q does not: made now, it would not be there for the WAL that the slot holds",
				opt.Slot, opt.Spec.PublicationName),
			Way: "name the slot's publication in publication.name, or drop the slot if nobody needs it (select pg_drop_replication_slot(" +
				pg.QuoteLiteral(opt.Slot) + ")) and run this again",
		}
	}
	for _, s := range steps {
		if _, err := conn.Exec(ctx, s.Statement); err != nil {
			d := pg.Describe(err)
			if d.SQLState == "42710" || d.SQLState == "23505" {
				// Another instance did it at this moment: look again.
				return nil, &slot.Error{Kind: slot.ErrInUse, Text: s.Text + ": " + d.Text, SQLState: d.SQLState, Err: err}
			}
			kind := slot.ErrServer
			if d.SQLState == "42501" {
				kind = slot.ErrDenied
			}
			return nil, &slot.Error{
				Kind: kind, Text: s.Text + ": " + d.Text, SQLState: d.SQLState, Err: err,
				Way: "let the owner of the tables, with the right to create in the database, run: " + s.Statement,
			}
		}
		opt.Log.Info(s.Text, zap.String("statement", s.Statement))
	}
	return tables, nil
}
