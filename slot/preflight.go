package slot

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walpost/walpost/internal/pg"
)

// once is for a connection on which no statement comes a second time: preparing
// each would double the round trips of a start. What the DSN says goes first.
func once(cfg *pgx.ConnConfig) *pgx.ConnConfig {
	cfg = cfg.Copy()
	if cfg.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	return cfg
}

// preflight looks at the slot as it is now. Who waits for one that is in use
// learns what else is wrong, too.
func preflight(ctx context.Context, conn *pgx.Conn, opt StreamOptions) (*Info, error) {
	info, err := Inspect(ctx, conn, opt.Slot)
	if err != nil {
		return nil, err
	}
	if err := CheckSlot(info, opt.Config.Database); err != nil {
		return nil, err
	}
	if info.Active {
		if _, err := checkTables(ctx, conn, opt); err != nil {
			return nil, err
		}
		return nil, heldBy(info)
	}
	return info, nil
}

// connect opens the replication connection, and looks at publication and tables
// meanwhile. Not earlier: who waits for a slot that is in use must not take a
// walsender every time he looks.
func (s *Stream) connect(ctx context.Context, conf *pgconn.Config, side *pgx.Conn) error {
	dialling, stop := context.WithCancel(ctx)
	defer stop()
	dialled := make(chan error, 1)
	go func() {
		var err error
		s.conn, err = pg.ConnectReplication(dialling, conf)
		dialled <- err
	}()
	published, err := checkTables(ctx, side, s.opt)
	if err != nil {
		stop()
		if <-dialled == nil {
			_ = s.conn.Close(context.WithoutCancel(ctx))
		}
		return err
	}
	s.tables = published
	return <-dialled
}

// checkTables looks at the publication and the tables as they are now.
func checkTables(ctx context.Context, conn *pgx.Conn, opt StreamOptions) (*Published, error) {
	if opt.Expected == nil {
		return checkPublication(ctx, conn, opt.Publication, opt.Tables, opt.Fits)
	}
	published, err := CheckPublication(ctx, conn, opt.Publication, opt.Tables)
	if err != nil {
		return nil, err
	}
	return published, opt.Expected.Changed(published)
}
