package wire

import (
	"context"
	"fmt"
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
	if err != nil || what == planNothing {
		return nil, err
	}
	if _, err := slot.CheckPublication(ctx, conn, cfg.Postgres.Publication, w.translation.Tables); err != nil {
		return nil, err
	}
	failover := w.translation.Failover
	if what == planSlot {
		at, err := slot.Create(ctx, conn, slot.CreateOptions{Name: cfg.Postgres.Slot, Failover: failover})
		if err == nil {
			w.opt.Log.Info("slot made", zap.String("slot", cfg.Postgres.Slot), zap.Stringer("lsn", at))
		}
		return nil, err
	}
	if what == planReplace {
		w.opt.Log.Warn("the slot is lost, and snapshot.mode=when_needed: it is made anew, and all rows are published again",
			zap.String("slot", cfg.Postgres.Slot))
		if _, err := conn.Exec(ctx, "select pg_drop_replication_slot($1)", cfg.Postgres.Slot); err != nil {
			return nil, pg.Describe(err)
		}
		info.Exists = false
	}
	tables := make([]*slot.Definition, len(w.translation.Tables))
	for i, t := range w.translation.Tables {
		def, err := slot.FindTable(ctx, conn, t)
		if err != nil {
			return nil, err
		}
		if def == nil {
			return nil, &slot.Error{Kind: slot.ErrTable, Text: "table " + t.String() + " does not exist", Way: "it was dropped this moment"}
		}
		if err := def.Check(w.translation.Fits); err != nil {
			return nil, err
		}
		tables[i] = def
	}
	s, err := slot.OpenSnapshot(ctx, slot.SnapshotOptions{
		Config: w.conn, Application: w.name, Slot: cfg.Postgres.Slot, Failover: failover, Existing: info.Exists,
	})
	if err != nil {
		return nil, err
	}
	return &initial{s, tables}, nil
}

// initial is a snapshot with the tables to read.
type initial struct {
	*slot.Snapshot
	tables []*slot.Definition
}

func (i *initial) Tables() []*slot.Definition { return i.tables }

// decide says what the configuration wants of a slot that is as info says.
func (w *wiring) decide(ctx context.Context, conn *pgx.Conn, info *slot.Info) (plan, error) {
	mode := w.translation.SnapshotMode
	wanted := w.opt.Config.Postgres.Snapshot == config.SnapshotInitial
	explicit := w.opt.Config.Origin("postgres.snapshot") != "default"
	switch {
	case mode == "" && (info.Exists || !wanted):
		// A slot that is there was made after the rows were delivered, or without
		// wanting them. One that is missing is missed, and not made in passing.
		return planNothing, nil
	case mode == "":
		return planSnapshot, nil
	}
	if explicit {
		mode = map[bool]string{true: modeAsked, false: "no_data"}[wanted]
	}
	switch {
	case mode == "no_data" && info.Exists:
		return planNothing, nil
	case mode == "no_data":
		return planSlot, nil
	case mode == "always", !info.Exists:
		return planSnapshot, nil
	case mode == "when_needed" && info.WALStatus == "lost":
		return planReplace, nil
	}
	return w.resumed(ctx, conn, mode)
}

// modeAsked is initial, said by somebody who knows what is published.
const modeAsked = "asked"

// resumed decides about a slot that is there, with a mode that wants a snapshot
// only before the first stream: whether somebody has streamed from it before.
func (w *wiring) resumed(ctx context.Context, conn *pgx.Conn, mode string) (plan, error) {
	name := w.opt.Config.Postgres.Slot
	if c, err := w.store.Load(ctx); err == nil && c != nil && c.LSN > 0 {
		return planNothing, nil // we have
	}
	if mode == modeAsked {
		return planSnapshot, nil
	}
	var used bool
	err := conn.QueryRow(ctx, "select exists (select from pg_stat_replication_slots where slot_name = $1 and total_txns > 0)", name).Scan(&used)
	if err != nil {
		return 0, pg.Describe(err)
	}
	if used {
		w.opt.Log.Info("the slot was streamed from before: no snapshot", zap.String("slot", name))
		return planNothing, nil
	}
	return 0, &slot.Error{
		Kind: slot.ErrUnfit,
		Text: fmt.Sprintf("slot %q exists, and nothing tells whether the rows that were there before it are published (snapshot.mode=%s)",
			name, mode),
		Way: "--snapshot none goes on from the slot's position, --snapshot initial publishes all rows of the table first",
	}
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
	if c, err := w.store.Load(ctx); err == nil && c != nil && c.LSN > 0 {
		return nil // we have had the slot since
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
