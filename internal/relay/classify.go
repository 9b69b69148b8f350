package relay

import (
	"errors"
	"net"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/event"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/slot"
)

// action is what follows a session's end.
type action uint8

const (
	reconnect   action = iota // soon, for ever
	waitForSlot               // look again every second
	hold                      // rarely: somebody has to act
	giveUp                    // end the process: a decision is needed
	yield                     // end the process: another one relays
)

type kind struct {
	action action
	state  State
	reason string // for readiness and metrics
	setup  bool   // before the first session it is a fault of the set-up
}

// classify says what the end of a session means. What the connection does is
// passing; what a person has to change is held, because a restart would not
// mend it; a slot that is not what it was ends the process.
func classify(err error) kind {
	var decodeErr *decoder.DecodeError
	var reject *event.Reject
	var unknown *unknownRelationError
	var gap *gapError
	var kafka *kafkaError
	switch {
	case err == nil:
		return kind{reconnect, Starting, "stream_ended", false}
	case IsFenced(err): // before all that looks at the cause: it has an answer of Kafka in it
		return kind{yield, Stopped, "taken_over", false}
	case errors.As(err, &kafka):
		return kind{reconnect, Holding, "kafka_refuses", false}
	case errors.Is(err, slot.ErrInUse):
		return kind{waitForSlot, WaitingForSlot, "waiting_for_slot", false}
	case errors.Is(err, slot.ErrNotFound):
		return kind{giveUp, Stopped, "slot_missing", false}
	case errors.Is(err, slot.ErrLost):
		return kind{giveUp, Stopped, "slot_lost", false}
	case errors.Is(err, slot.ErrForeign):
		return kind{giveUp, Stopped, "foreign_history", false}
	case errors.Is(err, slot.ErrUnfit):
		return kind{giveUp, Stopped, "slot_unfit", false}
	case errors.As(err, &gap):
		return kind{giveUp, Stopped, "gap", false}
	case errors.Is(err, slot.ErrPublication):
		return kind{hold, Holding, "publication", true}
	case errors.Is(err, slot.ErrTable):
		return kind{hold, Holding, "table", true}
	case errors.Is(err, slot.ErrServer):
		return kind{hold, Holding, "server_setting", true}
	case errors.Is(err, slot.ErrDenied):
		return kind{hold, Holding, "not_permitted", false}
	case errors.Is(err, slot.ErrProtocol):
		return kind{hold, Holding, "protocol", false}
	case errors.As(err, &decodeErr):
		return kind{hold, Holding, "decode", false}
	case errors.As(err, &reject), errors.As(err, &unknown):
		return kind{hold, Holding, "mapping", false}
	case slot.IsPassing(err):
		return kind{reconnect, Holding, "postgres_unreachable", false}
	case ofPostgres(err):
		return kind{hold, Holding, "postgres_refuses", false}
	default:
		return kind{hold, Holding, "unexpected", false}
	}
}

// ofPostgres says whether the server or the connection to it is what err speaks of.
func ofPostgres(err error) bool {
	if _, ok := errors.AsType[*pg.Error](err); ok {
		return true
	}
	_, network := errors.AsType[net.Error](err)
	return network || pg.SQLState(err) != ""
}

// kafkaError is what the sink could not do before the stream is read. The sink
// repeats what passes, so little is left: a right that was taken away in between.
// It keeps Kafka's answers apart from PostgreSQL's, which they look like.
type kafkaError struct{ err error }

func (e *kafkaError) Error() string { return "look for what is in Kafka already: " + e.err.Error() }

func (e *kafkaError) Hint() string {
	if h := hint(e.err); h != "" {
		return h
	}
	return "check walpost's rights in Kafka: READ on the topics, WRITE on its TransactionalId"
}

// Unwrap gives the cause.
func (e *kafkaError) Unwrap() error { return e.err }

// NeedsDecision says that Run ended because of something that only a person can
// decide: the slot is missing, lost, foreign or unfit.
func NeedsDecision(err error) bool { return classify(err).action == giveUp }

// SetupError is what Run returns when publication, table or server are not set
// up for it, and never were while it ran. The cause has the hint.
type SetupError struct{ Err error }

func (e *SetupError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *SetupError) Unwrap() error { return e.Err }
