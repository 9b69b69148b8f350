package wire

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/config"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/relay"
	"github.com/walpost/walpost/slot"
)

// plan is what happens before the stream.
type plan uint8

const (
	planNothing  plan = iota
	planSlot          // make the slot
	planSnapshot      // publish the rows that are there, then make the slot unless it is there
	planReplace       // drop the slot, which is lost, and do the same
)

// initial is what the relay calls before its first session.
func (w *wiring) initial(ctx context.Context) (relay.Initial, error) {
	cfg := w.opt.Config
	if cfg.Sink == config.SinkStdout {
		return nil, nil // looks, and leaves everything as it is
	}
	if w.translation.SnapshotMode == "" && cfg.Postgres.Snapshot != config.SnapshotInitial {
		return nil, nil
	}
	conn, err := pg.Connect(ctx, w.conn, w.name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	info, err := slot.Inspect(ctx, conn, cfg.Postgres.Slot)
	if err != nil {
		return nil, err
	}
	what, err := w.decide(ctx, conn, info)
	if err != nil {
		return nil, err
	}
	if what == planNothing {
		return nil, w.inherit(ctx, conn, info)
	}
	if _, err := slot.CheckPublication(ctx, conn, cfg.Postgres.Publication, w.translation.Tables); err != nil {
		return nil, err
	}
	failover := w.translation.Failover
	if what == planSlot {
		at, err := slot.Create(ctx, conn, slot.CreateOptions{Name: cfg.Postgres.Slot, Failover: failover, Patient: true})
		if err == nil {
			w.opt.Log.Warn("there was no slot of this name, so one is made; what was committed before is not published",
				zap.String("slot", cfg.Postgres.Slot), zap.Stringer("lsn", at),
				zap.String("hint", `if a slot with another name was to be taken over, stop, drop this one, and run "walpost debezium takeover"`))
		}
		return nil, err
	}
	if what == planReplace {
		w.opt.Log.Warn("the slot is lost, and snapshot.mode=when_needed: it is made anew, and all rows are published again",
			zap.String("slot", cfg.Postgres.Slot))
		if _, err := conn.Exec(ctx, dropLostSQL, cfg.Postgres.Slot); err != nil {
			return nil, pg.Describe(err)
		}
		info.Exists, what = false, planSnapshot
	}
	tables, err := w.snapshotTables(ctx, conn)
	if err != nil {
		return nil, err
	}
	only := w.translation.SnapshotMode == modeInitialOnly
	// Roles may have few connections.
	_ = conn.Close(ctx)
	s, err := slot.OpenSnapshot(ctx, slot.SnapshotOptions{
		Config: w.conn, Application: w.name, Slot: cfg.Postgres.Slot, Failover: failover,
		Existing: info.Exists, NoSlot: only, Tables: tables,
		Check: func(ctx context.Context, conn *pgx.Conn) error {
			info, err := slot.Inspect(ctx, conn, cfg.Postgres.Slot)
			if err != nil {
				return err
			}
			now, err := w.decide(ctx, conn, info)
			if err == nil && now != what {
				err = w.inUse()
			}
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	return &initial{s, tables, only}, nil
}

const dropLostSQL = `
select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1 and wal_status = 'lost'`

// snapshotTables are the tables to read. A partition is left out where a table
// above it is read, which gives its rows.
func (w *wiring) snapshotTables(ctx context.Context, conn *pgx.Conn) ([]*slot.Definition, error) {
	var tables []*slot.Definition
	for _, t := range w.translation.Tables {
		def, err := slot.FindTable(ctx, conn, t)
		if err != nil {
			return nil, err
		}
		if def == nil {
			return nil, &slot.Error{Kind: slot.ErrTable, Text: "table " + t.String() + " does not exist", Way: "it was dropped this moment"}
		}
		if err := def.Check(Defined(w.translation.Fits)); err != nil {
			return nil, err
		}
		tables = append(tables, def)
	}
	oids := make([]int64, len(tables))
	for i, def := range tables {
		oids[i] = int64(def.OID)
	}
	rows, err := conn.Query(ctx, coveredSQL, oids)
	if err != nil {
		return nil, pg.Describe(err)
	}
	covered, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, pg.Describe(err)
	}
	return slices.DeleteFunc(tables, func(def *slot.Definition) bool { return slices.Contains(covered, int64(def.OID)) }), nil
}

const coveredSQL = `
select t.oid from unnest($1::bigint[]) as t (oid)
 where exists (select from pg_partition_ancestors(t.oid::oid::regclass) a
                where a.relid::oid::bigint <> t.oid and a.relid::oid::bigint = any ($1::bigint[]))`

// initial is a snapshot with the tables to read.
type initial struct {
	*slot.Snapshot
	tables []*slot.Definition
	only   bool // nothing follows, and a slot that nobody reads would keep the WAL
}

func (i *initial) Tables() []*slot.Definition { return i.tables }

func (i *initial) MakeSlot(ctx context.Context) error {
	if i.only {
		return nil
	}
	return i.Snapshot.MakeSlot(ctx)
}

// clockDifference is how far the clocks of PostgreSQL and of what wrote the
// records' timestamps may be apart.
const clockDifference = 5 * time.Minute

// inherit finds out since when another tool may have delivered events of the
// slot that it has not confirmed.
func (w *wiring) inherit(ctx context.Context, conn *pgx.Conn, info *slot.Info) error {
	if w.translation.Delivered == nil || !info.Exists {
		return nil
	}
	if _, err := conn.Exec(ctx, "set statement_timeout = 0"); err != nil {
		return pg.Describe(err)
	}
	first, err := slot.FirstUnconfirmed(ctx, conn, w.opt.Config.Postgres.Slot, w.opt.Config.Postgres.Publication)
	if err != nil {
		return err
	}
	if first.IsZero() {
		first = info.ServerTime
	}
	since := *w.translation.Delivered
	since.Time = first.Add(-clockDifference)
	w.delivered = &since
	return nil
}
