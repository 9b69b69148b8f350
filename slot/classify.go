package slot

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walpost/walpost/internal/pg"
)

// typed turns a server's refusal into an *Error that names the way out. Errors
// of the connection come back as they are: they pass.
func (s *Stream) typed(ctx context.Context, err error) error {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return fmt.Errorf("replication stream: %w", err)
	}
	slot := s.opt.Slot
	switch {
	case pe.Code == "55006":
		return s.inUse(ctx, pe)
	case pe.Code == "42704" && pe.Routine == "ReplicationSlotAcquire":
		return notFound(slot, pe)
	case pe.Code == "42704":
		return publicationGone(s.opt.Publication, pe.Code, pe)
	case pe.Code == "55000":
		// One code and one routine (CreateDecodingContext) for all that can be wrong
		// with a slot, and the text is in the server's language: the slot tells.
		info, lookErr := s.look(ctx)
		if lookErr != nil {
			break
		}
		if e, ok := errors.AsType[*Error](CheckSlot(info, s.opt.Config.Database)); ok {
			e.SQLState = pe.Code
			return e
		}
	}
	return fmt.Errorf("replication stream: %w", pg.Describe(err))
}

// IsPassing says whether an error of this package goes away by itself. What it
// does not know does not pass.
func IsPassing(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind == ErrInUse
	}
	return errors.Is(err, errServerEnded) || errors.Is(err, ErrClosed) || pg.IsPassing(err)
}

// inUse names the session that streams from the slot.
func (s *Stream) inUse(ctx context.Context, pe *pgconn.PgError) error {
	if info, err := s.look(ctx); err == nil && info.Active {
		return heldBy(info)
	}
	return &Error{Kind: ErrInUse, SQLState: pe.Code, Text: pe.Message, Way: inUseWay, Err: pe}
}

const inUseWay = "another instance is relaying; this one takes over when it stops"

// heldBy is the refusal of a slot that is active.
func heldBy(info *Info) *Error {
	e := &Error{Kind: ErrInUse, SQLState: "55006", Text: "slot " + quote(info.Name) + " is active", Way: inUseWay}
	if info.ActivePID != nil {
		e.Text += fmt.Sprintf(" for PID %d", *info.ActivePID)
	}
	if info.HolderApplication != "" {
		e.Text += " (" + info.HolderApplication
		if info.HolderAddress != "" {
			e.Text += " from " + info.HolderAddress
		}
		e.Text += ")"
	}
	return e
}

// look asks about the slot on a connection of its own.
func (s *Stream) look(ctx context.Context) (*Info, error) {
	conn, err := pg.Connect(ctx, once(s.opt.Config), s.opt.Application)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return Inspect(ctx, conn, s.opt.Slot)
}

func notFound(slot string, cause error) *Error {
	return &Error{
		Kind: ErrNotFound, SQLState: "42704", Err: cause,
		Text: fmt.Sprintf("slot %q does not exist", slot),
		Way:  `if it never did, run "walpost init"; if it was dropped, events since then are not in Kafka: see the recovery section of the README before making it anew`,
	}
}

func publicationGone(publication, code string, cause error) *Error {
	return &Error{
		Kind: ErrPublication, SQLState: code, Err: cause,
		Text: fmt.Sprintf("publication %q did not exist at this point of the WAL", publication),
		Way:  "rows written while it was missing are not in the stream; decide how to recover them, then make a new slot (publication first, slot second)",
	}
}
