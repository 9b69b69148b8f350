package wire

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/walpost/walpost/checkpoint"
	"github.com/walpost/walpost/internal/config"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/slot"
)

// Debezium's modes of a snapshot, and two of ours.
const (
	modeNoData      = "no_data"
	modeInitial     = "initial"
	modeInitialOnly = "initial_only"
	modeAlways      = "always"
	modeWhenNeeded  = "when_needed"
	// modeOnce is postgres.snapshot=initial without a connector: a slot that is
	// there says that it is done.
	modeOnce = "once"
	// modeAsked is the same with a connector: initial, said by somebody who knows
	// what is published.
	modeAsked = "asked"
)

func (w *wiring) mode() string {
	mode := w.translation.SnapshotMode
	wanted := w.opt.Config.Postgres.Snapshot == config.SnapshotInitial
	explicit := w.opt.Config.Origin("postgres.snapshot") != "default"
	switch {
	case mode == "":
		return modeOnce // or nothing, which does not come here
	case mode == modeInitialOnly || !explicit:
		return mode
	case wanted:
		return modeAsked
	}
	return modeNoData
}

// decide says what the configuration wants of a slot that is as info says. Where
// the slot is in use, and it would do anything to it, that comes back as an error.
func (w *wiring) decide(ctx context.Context, conn *pgx.Conn, info *slot.Info) (plan, error) {
	mode := w.mode()
	broken := slot.CheckSlot(info, w.conn.Database)
	if !info.Exists || mode == modeInitialOnly {
		broken = nil // it is not going to be used
	}
	if broken != nil && !(mode == modeWhenNeeded && errors.Is(broken, slot.ErrLost)) {
		return 0, broken
	}
	left, err := w.left(ctx, info)
	if err != nil {
		return 0, err
	}
	what, err := w.choose(ctx, conn, mode, info, left, broken != nil)
	if info.Exists && info.Active && (err != nil || what != planNothing) {
		return 0, w.inUse()
	}
	return what, err
}

func (w *wiring) choose(ctx context.Context, conn *pgx.Conn, mode string, info *slot.Info, left *checkpoint.Checkpoint, lost bool) (plan, error) {
	name := w.opt.Config.Postgres.Slot
	before := left != nil && left.LSN > 0 // we have streamed from it, or were about to
	switch {
	case mode == modeInitialOnly && before:
		w.opt.Log.Info("the snapshot was taken before (snapshot.mode=initial_only)", zap.Stringer("lsn", left.LSN))
		return planNothing, nil
	case mode == modeInitialOnly:
		return planSnapshot, nil
	case lost:
		return planReplace, nil
	case !info.Exists && before && !w.translation.DropsSlot && mode != modeAlways && mode != modeWhenNeeded:
		// I6: what was committed since is missed, and must not be passed over.
		return 0, missed(name, left)
	case !info.Exists && mode == modeNoData:
		return planSlot, nil
	case !info.Exists:
		return planSnapshot, nil
	case mode == modeAlways:
		return planSnapshot, nil
	case mode == modeNoData, mode == modeInitial && before, mode == modeAsked && before, mode == modeWhenNeeded && before:
		return planNothing, nil
	case mode == modeOnce:
		if left == nil {
			w.opt.Log.Warn("the slot exists: no snapshot, only what comes after the slot was made is published", zap.String("slot", name),
				zap.String("hint", "if rows from before are wanted and nothing was published yet, stop, drop the slot and start again; walpost then makes it"))
		}
		return planNothing, nil
	case mode == modeAsked:
		return planSnapshot, nil
	}
	var used bool
	err := conn.QueryRow(ctx, "select exists (select from pg_stat_replication_slots where slot_name = $1 and total_txns > 0)", name).Scan(&used)
	switch {
	case err != nil:
		return 0, pg.Describe(err)
	case used:
		w.opt.Log.Info("the slot was streamed from before: no snapshot", zap.String("slot", name))
		return planNothing, nil
	case left != nil:
		// Ours was killed before it could note that everything is delivered. What is
		// there is found in Kafka.
		return planSnapshot, nil
	}
	return 0, &slot.Error{
		Kind: slot.ErrUnfit,
		Text: fmt.Sprintf("slot %q exists, and nothing tells whether the rows that were there before it are published (snapshot.mode=%s)",
			name, mode),
		Way: "--snapshot none goes on from the slot's position, --snapshot initial publishes all rows of the table first",
	}
}

// missed says what a slot that is gone means.
func missed(name string, left *checkpoint.Checkpoint) error {
	return &slot.Error{
		Kind: slot.ErrNotFound,
		Text: fmt.Sprintf("slot %q does not exist, and walpost has published from it up to %s: what was committed since is not in Kafka", name, left.LSN),
		Way: "if the rows are still in the table: delete from walpost.checkpoint where slot = " + pg.QuoteLiteral(name) +
			", and start again with a snapshot, which publishes them all, those in Kafka again under the same ids; else see the recovery section of the README",
	}
}

// left is what a predecessor left behind in this database cluster; nil: nothing.
func (w *wiring) left(ctx context.Context, info *slot.Info) (*checkpoint.Checkpoint, error) {
	c, err := w.store.Load(ctx)
	switch {
	case errors.Is(err, checkpoint.ErrNoStore):
		return nil, nil
	case err != nil:
		return nil, err
	case c != nil && info.SystemID != "" && c.SystemID != info.SystemID:
		return nil, nil // it came with a dump
	}
	return c, nil
}

func (w *wiring) inUse() error {
	return &slot.Error{
		Kind: slot.ErrInUse,
		Text: fmt.Sprintf("slot %q is in use, or was a moment ago", w.opt.Config.Postgres.Slot),
		Way:  "this one waits for it",
	}
}
