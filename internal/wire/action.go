package wire

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/pg"
)

// action runs heartbeat.action.query with every heartbeat, on a connection of
// its own, until ctx ends. A failure is logged, and the next time comes.
func (w *wiring) action(ctx context.Context) {
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close(context.WithoutCancel(ctx))
		}
	}()
	tick := time.NewTicker(w.translation.Heartbeat.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := func() (err error) {
			if conn == nil || conn.IsClosed() {
				if conn, err = pg.Connect(ctx, w.conn, w.name+"/heartbeat"); err != nil {
					return err
				}
			}
			_, err = conn.Exec(ctx, w.translation.HeartbeatQuery, pgx.QueryExecModeSimpleProtocol)
			return err
		}()
		if err != nil && ctx.Err() == nil {
			w.opt.Log.Warn("heartbeat.action.query failed", zap.Error(err))
		}
	}
}
