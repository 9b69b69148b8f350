package takeover

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/retry"
)

const (
	dropTries = 3
	dropPause = time.Second
)

// Drop drops the slot of a relay that has stopped, as Debezium does with
// slot.drop.on.stop: three tries, a second apart, because the server may not have
// noticed yet that the session is over. A slot that is gone is fine; one that
// another session has by now stays.
func Drop(ctx context.Context, config *pgx.ConnConfig, application, name string) error {
	conn, err := pg.Connect(ctx, config, application)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for try := 1; ; try++ {
		_, err := conn.Exec(ctx, "select pg_drop_replication_slot($1)", name)
		switch {
		case err == nil, pg.SQLState(err) == "42704":
			return nil
		case try == dropTries:
			return pg.Describe(err)
		}
		if err := retry.Wait(ctx, dropPause); err != nil {
			return err
		}
	}
}
