package slot

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	case pe.Code == "42704" && strings.Contains(pe.Message, "replication slot"):
		return notFound(slot, pe)
	case pe.Code == "42704":
		return publicationGone(s.opt.Publication, pe.Code, pe)
	case pe.Code == "55000" && (strings.Contains(pe.Message, "no longer") || strings.Contains(pe.Message, "cannot read from logical replication slot")):
		return lost(slot, pe)
	case pe.Code == "55000" && strings.Contains(pe.Message, "was not created in this database"):
		return &Error{
			Kind: ErrUnfit, SQLState: pe.Code, Err: pe,
			Text: fmt.Sprintf("slot %q belongs to another database than %q", slot, s.opt.Config.Database),
			Way:  "set the database of the DSN to the slot's, or choose another slot name",
		}
	case pe.Code == "55000" && strings.Contains(pe.Message, "being synchronized"):
		return &Error{
			Kind: ErrUnfit, SQLState: pe.Code, Err: pe,
			Text: fmt.Sprintf("slot %q is a synchronized copy on a standby", slot),
			Way:  "connect to the primary: list all hosts in the DSN with target_session_attrs=read-write",
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
	e := &Error{
		Kind: ErrInUse, SQLState: pe.Code,
		Text: pe.Message,
		Way:  "another instance is relaying; this one takes over when it stops",
		Err:  pe,
	}
	conn, err := pg.Connect(ctx, s.opt.Config, s.opt.Application)
	if err != nil {
		return e
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if info, err := Inspect(ctx, conn, s.opt.Slot); err == nil && info.ActivePID != nil {
		e.Text = fmt.Sprintf("slot %q is active for PID %d", s.opt.Slot, *info.ActivePID)
		if info.HolderApplication != "" {
			e.Text += fmt.Sprintf(" (%s", info.HolderApplication)
			if info.HolderAddress != "" {
				e.Text += " from " + info.HolderAddress
			}
			e.Text += ")"
		}
		e.Err = nil
	}
	return e
}

func notFound(slot string, cause error) *Error {
	return &Error{
		Kind: ErrNotFound, SQLState: "42704", Err: cause,
		Text: fmt.Sprintf("slot %q does not exist", slot),
		Way:  `if it never did, run "walpost init"; if it was dropped, events since then are not in Kafka: see the recovery section of the README before making it anew`,
	}
}

func lost(slot string, cause error) *Error {
	return &Error{
		Kind: ErrLost, SQLState: "55000", Err: cause,
		Text: fmt.Sprintf("slot %q is lost: the server removed WAL that it still needed", slot),
		Way:  `"walpost status" shows the range; drop and re-create the slot, then publish the missing events from the table`,
	}
}

func publicationGone(publication, code string, cause error) *Error {
	return &Error{
		Kind: ErrPublication, SQLState: code, Err: cause,
		Text: fmt.Sprintf("publication %q did not exist at this point of the WAL", publication),
		Way:  "rows written while it was missing are not in the stream; decide how to recover them, then make a new slot (publication first, slot second)",
	}
}
