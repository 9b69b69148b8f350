package takeover

import (
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/internal/debezium/start"
	"github.com/walpost/walpost/slot"
)

// Level says how much a Finding weighs.
type Level string

// The levels, the worst first.
const (
	LevelDecision Level = "decision" // not before somebody has decided
	LevelFinding  Level = "finding"  // it can be done, and somebody should know this
	LevelNote     Level = "note"     // worth reading once
)

// Finding is one thing that was found, and what to do about it.
type Finding struct {
	Level Level
	Text  string
	Way   string // may be empty
}

// Plan is what Look finds.
type Plan struct {
	Slot        *slot.Info
	Tables      []slot.Table
	Publication Publication
	// FirstUnconfirmed is when the first transaction was committed that the slot
	// will send; zero when there is none yet, or when it is not known.
	FirstUnconfirmed time.Time
	// Unknown says why that is not known; empty when it is.
	Unknown    string
	Stored     Stored
	Protection Protection
	Findings   []Finding // the worst first
	Steps      []Step
}

// Publication is what there is against what is needed.
type Publication struct {
	Name   string
	Exists *slot.Publication // nil: it does not
	Steps  []start.Step      // what walpost does to complete it
	Others []slot.Table      // up to ten tables in it that are no outbox
}

// Step is one thing that is done, in the order of the list.
type Step struct {
	Who  string   `json:"who"` // you, or walpost
	Text string   `json:"text"`
	Do   []string `json:"do,omitempty"` // statements or commands
	// IsSQL tells statements from commands.
	IsSQL bool `json:"is_sql,omitempty"`
}

// The values of Step.Who.
const (
	You     = "you"
	Walpost = "walpost"
)

// Worst is the level of the worst finding; empty when there is none that
// matters.
func (p *Plan) Worst() Level {
	var worst Level
	for _, f := range p.Findings {
		switch {
		case f.Level == LevelDecision:
			return LevelDecision
		case f.Level == LevelFinding:
			worst = LevelFinding
		}
	}
	return worst
}

// State is how Debezium's stored position agrees with the slot.
type State string

// The states.
const (
	StateUnknown State = "unknown" // it could not be read
	StateNone    State = "none"    // nothing is stored
	StateAgrees  State = "agrees"
	StateAhead   State = "ahead"  // Debezium has stored more than it has confirmed
	StateBehind  State = "behind" // somebody has confirmed more than Debezium has stored
)

// Stored is the position that Debezium has stored.
type Stored struct {
	Place     string // where it was looked for; empty: nowhere
	Connector string // whose it is
	State     State
	Text      string // what that means
	Flushed   pglogrepl.LSN
	Delivered pglogrepl.LSN
	// Snapshot says that Debezium was in the middle of its snapshot.
	Snapshot bool
}

// Protection says what keeps a restarted walpost from sending events twice.
type Protection struct {
	Usable     bool
	Text       string
	Statements []string // that make it usable
	// Had says that walpost had this slot before.
	Had bool
}
