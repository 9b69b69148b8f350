package takeover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/retry"
	"github.com/walpost/walpost/slot"
)

// Release waits for a slot, or takes it from whoever has it.
type Release struct {
	Config      *pgx.ConnConfig
	Application string
	Slot        string
	// Terminate ends the session of a holder that is no walpost.
	Terminate bool
	// Wait bounds how long it may take; 0: as long as it takes.
	Wait time.Duration
	// Settle is how long the slot must have been free: what holds it may have
	// records in hand, which it still sends.
	Settle   time.Duration
	Interval time.Duration // between two looks; default 1 s
	Log      *zap.Logger

	conn  *pgx.Conn
	said  string // of which holder was spoken
	ended int    // sessions
}

// HeldError says that the slot was not let go in time.
type HeldError struct {
	Slot   string
	Holder string
	Wait   time.Duration
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("slot %q was not free for the taking within %s: %s has it", e.Slot, e.Wait, e.Holder)
}

// Hint says what to do.
func (e *HeldError) Hint() string {
	return "stop the connector (pausing it keeps the slot), or end its session with --terminate while it is paused"
}

// Holder names the session that has the slot.
func Holder(info *slot.Info) string {
	if !info.Active {
		return "nobody"
	}
	text := "a session"
	if info.ActivePID != nil {
		text = fmt.Sprintf("PID %d", *info.ActivePID)
	}
	var more []string
	if info.HolderApplication != "" {
		more = append(more, info.HolderApplication)
	}
	if info.HolderAddress != "" {
		more = append(more, "from "+info.HolderAddress)
	}
	if len(more) > 0 {
		text += " (" + strings.Join(more, " ") + ")"
	}
	return text
}

// isOurs says that a walpost has the slot.
func isOurs(info *slot.Info) bool {
	return info.Active && strings.HasPrefix(info.HolderApplication, ours)
}

// Await returns when nobody has had the slot for as long as Settle, or when a
// walpost has it. Faults of the connection are waited for as well. An error is a
// slot that cannot be streamed from, a right that is missing, a *HeldError, or
// ctx's.
func (r *Release) Await(ctx context.Context) error {
	defer r.close(ctx)
	began := time.Now()
	var free time.Time // since when; zero: it is not
	for {
		info, err := r.look(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !slot.IsPassing(err):
			return err
		case err != nil:
			r.Log.Warn("PostgreSQL cannot be reached", zap.Error(err))
			free = time.Time{}
		case !info.Active && free.IsZero():
			free = time.Now()
			if err := slot.CheckSlot(info, r.Config.Database); err != nil {
				return err
			}
			r.Log.Info("the slot is free", zap.String("slot", r.Slot), zap.Duration("settle", r.Settle))
		case !info.Active:
		case isOurs(info):
			r.Log.Info("a walpost has the slot: standing by", zap.String("slot", r.Slot), zap.String("holder", Holder(info)))
			return nil
		default:
			free = time.Time{}
			if err := r.held(ctx, info); err != nil {
				return err
			}
		}
		if !free.IsZero() && time.Since(free) >= r.Settle {
			return nil
		}
		if r.Wait > 0 && free.IsZero() && time.Since(began) > r.Wait {
			holder := "nobody knows who"
			if info != nil {
				holder = Holder(info)
			}
			return &HeldError{r.Slot, holder, r.Wait}
		}
		if err := retry.Wait(ctx, r.pause(free)); err != nil {
			return err
		}
	}
}

// pause is the time to the next look.
func (r *Release) pause(free time.Time) time.Duration {
	d := r.Interval
	if d <= 0 {
		d = time.Second
	}
	if !free.IsZero() {
		d = min(d, max(r.Settle-time.Since(free), time.Millisecond))
	}
	return d
}

// Guard ends the sessions that take the slot before a walpost has it. It returns
// then, or with ctx.
func (r *Release) Guard(ctx context.Context) {
	defer r.close(ctx)
	for {
		info, err := r.look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.Log.Debug("the slot cannot be looked at", zap.Error(err))
		case isOurs(info):
			return
		case info.Active:
			if err := r.held(ctx, info); err != nil {
				r.Log.Warn("the session that has the slot cannot be ended", zap.Error(err))
			}
		}
		if retry.Wait(ctx, r.pause(time.Time{})) != nil {
			return
		}
	}
}

// held deals with a holder: it says who that is, or ends its session.
func (r *Release) held(ctx context.Context, info *slot.Info) error {
	holder := Holder(info)
	if !r.Terminate || info.ActivePID == nil {
		if r.said != holder {
			r.said = holder
			r.Log.Info("waiting until the slot is let go", zap.String("slot", r.Slot), zap.String("holder", holder),
				zap.String("hint", "stop the connector: one that is paused keeps the slot"))
		}
		return nil
	}
	// Only the session that was looked at, if it still has the slot.
	const terminate = `
select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1 and active_pid = $2`
	var done bool
	err := r.conn.QueryRow(ctx, terminate, r.Slot, *info.ActivePID).Scan(&done)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil // it has gone
	case pg.SQLState(err) == "42501":
		d := pg.Describe(err)
		return &slot.Error{
			Kind: slot.ErrDenied, SQLState: d.SQLState, Err: d,
			Text: "the session that has slot " + r.Slot + " cannot be ended (" + holder + ")",
			Way:  "stop the connector, or let an administrator grant pg_signal_backend to the role (a superuser's session needs a superuser)",
		}
	case err != nil:
		if d := pg.Describe(err); !pg.IsPassing(err) {
			return d
		}
		return nil
	case !done || r.said == holder:
		return nil // told before, and not gone yet
	}
	r.said = holder
	r.ended++
	fields := []zap.Field{zap.String("slot", r.Slot), zap.String("holder", holder), zap.Int("times", r.ended)}
	if r.ended == 1 {
		r.Log.Info("ended the session that had the slot", fields...)
		return nil
	}
	r.Log.Warn("ended the session that had the slot: it had come back", append(fields,
		zap.String("hint", "stop or pause the connector, else it takes the slot again and again"))...)
	return nil
}

// look inspects the slot on a connection that is kept.
func (r *Release) look(ctx context.Context) (*slot.Info, error) {
	if r.conn == nil || r.conn.IsClosed() {
		conn, err := pg.Connect(ctx, r.Config, r.Application)
		if err != nil {
			return nil, err
		}
		r.conn = conn
	}
	info, err := slot.Inspect(ctx, r.conn, r.Slot)
	if err != nil {
		r.close(ctx)
		return nil, err
	}
	if !info.Exists {
		return nil, slot.CheckSlot(info, r.Config.Database)
	}
	return info, nil
}

func (r *Release) close(ctx context.Context) {
	if r.conn != nil {
		_ = r.conn.Close(context.WithoutCancel(ctx))
		r.conn = nil
	}
}
