package relay

import (
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

// State is what the relay does now; exactly one holds at a time.
type State string

// The states, in the order in which a healthy start passes them.
const (
	Starting       State = "starting"
	WaitingForSlot State = "waiting_for_slot" // another instance streams from it
	CatchingUp     State = "catching_up"      // streaming, and behind
	Streaming      State = "streaming"
	Holding        State = "holding" // no progress until somebody acts, or a fault passes
	Draining       State = "draining"
	Stopped        State = "stopped"
)

// States lists all of them.
var States = []State{Starting, WaitingForSlot, CatchingUp, Streaming, Holding, Draining, Stopped}

// Snapshot is everything that status, probes, metrics and logs show, taken at
// one instant, so that they cannot disagree. Times are local clock, zero when
// unknown.
type Snapshot struct {
	At        time.Time
	StartedAt time.Time
	Instance  string
	State     State
	Since     time.Time // of State
	// Reason is a short stable word for why the relay is not streaming
	// (postgres_unreachable, kafka_unreachable, poison, …); empty when it is.
	Reason string
	// Detail and Hint are the two lines a person reads.
	Detail string
	Hint   string
	// Ready and StandbyReady answer /readyz and /readyz?standby=ok.
	Ready        bool
	StandbyReady bool

	SlotName      string
	SystemID      string
	Timeline      int32
	SlotStreaming bool // this instance holds the slot's stream

	Received  pglogrepl.LSN // newest position seen on the stream
	LowWater  pglogrepl.LSN // everything below is settled
	Confirmed pglogrepl.LSN // the last flush position sent

	LastServerMessage time.Time
	LastEventCommit   time.Time // commit time of the newest published event
	OldestPending     time.Time // commit time of the oldest unsettled event; zero when none
	// Age of the oldest unpublished event by PostgreSQL's clock. When the relay
	// is cut off it is an upper bound: the time since it last was zero.
	Age             time.Duration
	AgeKnown        bool          // false until the relay was caught up or saw an event
	AgeExact        bool          // false: Age is the upper bound
	ClockSkew       time.Duration // server minus local
	SkewKnown       bool
	Pending         int    // transactions with unsettled events
	EventsReceived  uint64 // decoded from committed transactions
	EventsPublished uint64 // acked
	PublishedSec    float64
	Ignored         map[string]uint64 // by reason

	Sink   sink.Status
	Poison *Poison
	// CheckpointOff says why the checkpoint is not written; empty when it is.
	// Together with Sink.Protection it tells when a restart can repeat events.
	CheckpointOff string

	// Slot is the poller's last look at PostgreSQL, nil before the first.
	Slot     *slot.Info
	SlotErr  error // the last poll failed
	SlotAt   time.Time
	SlotTook time.Duration
	// PublicationOK is nil before the first check.
	PublicationOK *bool
}

// Poison names the event that cannot be published.
type Poison struct {
	EventID   string
	Table     string
	CommitLSN pglogrepl.LSN
	Committed time.Time // zero when unknown
	Ordinal   uint32
	Topic     string
	Partition int32
	Reason    string
	Since     time.Time
}
