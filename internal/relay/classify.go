package relay

import (
	"errors"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/event"
	"github.com/walpost/walpost/slot"
)

// action is what follows a session's end.
type action uint8

const (
	reconnect   action = iota // soon, for ever
	waitForSlot               // look again every second
	hold                      // rarely: somebody has to act
	giveUp                    // end the process: a decision is needed
)

type kind struct {
	action action
	state  State
	reason string // for readiness and metrics
}

// classify says what the end of a session means. What the connection does is
// passing; what a person has to change is held, because a restart would not
// mend it; a slot that is not what it was ends the process.
func classify(err error) kind {
	var decodeErr *decoder.DecodeError
	var reject *event.Reject
	var unknown *unknownRelationError
	var gap *gapError
	switch {
	case err == nil:
		return kind{reconnect, Starting, "stream_ended"}
	case errors.Is(err, slot.ErrInUse):
		return kind{waitForSlot, WaitingForSlot, "waiting_for_slot"}
	case errors.Is(err, slot.ErrNotFound):
		return kind{giveUp, Stopped, "slot_missing"}
	case errors.Is(err, slot.ErrLost):
		return kind{giveUp, Stopped, "slot_lost"}
	case errors.Is(err, slot.ErrForeign):
		return kind{giveUp, Stopped, "foreign_history"}
	case errors.Is(err, slot.ErrUnfit):
		return kind{giveUp, Stopped, "slot_unfit"}
	case errors.As(err, &gap):
		return kind{giveUp, Stopped, "gap"}
	case errors.Is(err, slot.ErrPublication):
		return kind{hold, Holding, "publication"}
	case errors.Is(err, slot.ErrTable):
		return kind{hold, Holding, "table"}
	case errors.Is(err, slot.ErrServer):
		return kind{hold, Holding, "server_setting"}
	case errors.Is(err, slot.ErrDenied):
		return kind{hold, Holding, "not_permitted"}
	case errors.Is(err, slot.ErrProtocol):
		return kind{hold, Holding, "protocol"}
	case errors.As(err, &decodeErr):
		return kind{hold, Holding, "decode"}
	case errors.As(err, &reject), errors.As(err, &unknown):
		return kind{hold, Holding, "mapping"}
	case slot.IsPassing(err):
		return kind{reconnect, Holding, "postgres_unreachable"}
	default:
		return kind{hold, Holding, "postgres_refuses"}
	}
}

// NeedsDecision says that Run ended because of something that only a person can
// decide: the slot is missing, lost, foreign or unfit.
func NeedsDecision(err error) bool { return classify(err).action == giveUp }
