package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// Handler applies one event inside tx. Work outside of tx must be idempotent by
// m.ID, because the handler runs again after a rollback.
type Handler func(ctx context.Context, tx pgx.Tx, m Message) error

// Permanent says of a handler's error that another attempt would give it again:
// the event is parked at once.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

type permanent struct{ error }

func (p *permanent) Unwrap() error { return p.error }

// Outcome says what became of a message. For every outcome the offset may be
// committed.
type Outcome int

// The outcomes.
const (
	Applied   Outcome = iota + 1 // the handler ran, and its transaction is committed
	Duplicate                    // the event was applied before
	Stale                        // its version was passed before; the handler did not run
	Parked                       // it is kept in parked_events, for the Reason
	Held                         // it is kept there behind an earlier event of its aggregate
	TooOld                       // it is kept there, since it is older than what is remembered
)

// String is the outcome's name as metrics have it.
func (o Outcome) String() string {
	switch o {
	case Applied:
		return "applied"
	case Duplicate:
		return "duplicate"
	case Stale:
		return "stale"
	case Parked:
		return "parked"
	case Held:
		return "held"
	case TooOld:
		return "too_old"
	}
	return "none"
}

// Reason for which an event is parked.
type Reason string

// The reasons.
const (
	Gap    Reason = "gap"     // its version is not the next
	Failed Reason = "failed"  // the handler gave an error
	Crash  Reason = "crash"   // the process ended in the handler, again and again
	Behind Reason = "held"    // an earlier event of its aggregate is parked
	Age    Reason = "too_old" // it is older than the floor
)

// Result says what Process did with a message.
type Result struct {
	Consumer string
	Message  Message
	Outcome  Outcome // 0 when there is an error
	Reason   Reason  // when the event is parked
	// Position is the aggregate's version before the message, when it has one.
	Position int64
	Attempts int   // of the handler
	Err      error // the handler's last, when the event is parked for it; or what Process returns
	// Released says that the event had been parked and followed another one.
	Released bool
	Took     time.Duration
}

// DedupPolicy says by what an event is known again.
type DedupPolicy int

// The policies.
const (
	ByBoth    DedupPolicy = iota // id, and version where there is one
	ByVersion                    // the version alone, which needs no row per event; without a version the id
	ByID                         // the id alone; versions are not looked at
)

// VersionPolicy says what to do about an event whose version is not the next.
type VersionPolicy int

// The policies.
const (
	ParkGaps       VersionPolicy = iota // keep it; it is applied when those before it are
	DeferGaps                           // wait for GapWait where it is, then park it
	RejectGaps                          // ErrGap: the partition stands still until somebody decides
	IgnoreVersions                      // take events as they come
)

// FirstPolicy says which version of an aggregate may be the first one seen.
type FirstPolicy int

// The policies.
const (
	FirstAny FirstPolicy = iota // any: history may have expired before this consumer existed
	FirstOne                    // 1, so that a lost beginning is a gap
)

// ConsumerOptions of a Consumer. Only the name is needed.
type ConsumerOptions struct {
	// Name of the consumer, usually its group: a part of every key, so consumers
	// that share a database do not see each other's events as their own.
	Name string
	// Schema of the consumer's tables; without it the search path decides.
	Schema       string
	Dedup        DedupPolicy
	Versions     VersionPolicy
	FirstVersion FirstPolicy
	// GapWait is how long DeferGaps waits; 30 s.
	GapWait time.Duration
	// MaxAttempts is after how many errors of the handler an event is parked; 5.
	MaxAttempts int
	// BackoffMin and BackoffMax bound the waits between attempts, which double and
	// have full jitter; 100 ms and 10 s.
	BackoffMin, BackoffMax time.Duration
	// Floor is an age: unversioned events that are older are not applied but
	// parked as TooOld, so that what Sweep forgets is not done twice. 0 is none.
	Floor time.Duration
	// CrashGuard finds the event that ends the process, and parks it.
	CrashGuard bool
	// Observe is called once per message that has been dealt with, and for each
	// error that Process returns, by the goroutine that does it.
	Observe func(Result)
}

// Consumer applies events once. It is safe for concurrent use; the events of one
// aggregate come in order if they are given to it in order.
type Consumer struct {
	opt    ConsumerOptions
	db     Beginner
	direct *direct // nil: transactions are begun with db
	sql    statements
	now    func() time.Time
	sleep  func(context.Context, time.Duration) error
	// repeating says that the last message was known already: a guess at the next.
	repeating atomic.Bool

	mu     sync.Mutex
	starts map[place]*start // of the crash guard
}

// NewConsumer checks the options. It connects to nothing.
func NewConsumer(db Beginner, o ConsumerOptions) (*Consumer, error) {
	wrong := func(text, way string) (*Consumer, error) {
		return nil, &Error{Text: fmt.Sprintf("consumer %q: %s", o.Name, text), Way: way}
	}
	if db == nil {
		return wrong("there is no database", "pass a *pgxpool.Pool, or another Beginner")
	}
	if why := unfit(o.Name, maxName); why != "" || strings.TrimSpace(o.Name) == "" {
		return wrong("the name does not fit: "+orEmpty(why), "name it like its consumer group, in at most 255 bytes")
	}
	schema, err := prefix(o.Schema)
	if err != nil {
		return nil, err
	}
	if o.Dedup < ByBoth || o.Dedup > ByID || o.Versions < ParkGaps || o.Versions > IgnoreVersions || o.FirstVersion < FirstAny || o.FirstVersion > FirstOne {
		return wrong("a policy is none of the named ones", "use the constants of this package")
	}
	if o.Dedup == ByVersion && o.Versions == IgnoreVersions {
		return wrong("it cannot know events by a version that it ignores", "use ByID or ByBoth with IgnoreVersions")
	}
	if o.GapWait < 0 || o.MaxAttempts < 0 || o.BackoffMin < 0 || o.BackoffMax < 0 || o.Floor < 0 {
		return wrong("a number is negative", "leave it 0 for the default")
	}
	if o.Dedup == ByID {
		o.Versions = IgnoreVersions
	}
	if o.GapWait == 0 {
		o.GapWait = 30 * time.Second
	}
	if o.MaxAttempts == 0 {
		o.MaxAttempts = 5
	}
	if o.BackoffMin == 0 {
		o.BackoffMin = 100 * time.Millisecond
	}
	if o.BackoffMax == 0 {
		o.BackoffMax = 10 * time.Second
	}
	o.BackoffMax = max(o.BackoffMin, o.BackoffMax)
	if o.Observe == nil {
		o.Observe = func(Result) {}
	}
	return &Consumer{opt: o, db: db, direct: directly(db), sql: newStatements(schema), now: time.Now, sleep: sleep, starts: map[place]*start{}}, nil
}

// versioned says whether the message's place in its aggregate counts.
func (c *Consumer) versioned(m *Message) bool {
	return m.Version > 0 && c.opt.Versions != IgnoreVersions
}

// byID says whether the message gets a row in processed_events.
func (c *Consumer) byID(m *Message) bool {
	return c.opt.Dedup != ByVersion || !c.versioned(m)
}

func (c *Consumer) backoff() *backoff {
	return &backoff{least: c.opt.BackoffMin, most: c.opt.BackoffMax}
}

// isPermanent also knows an error that somebody wrapped.
func isPermanent(err error) bool {
	_, ok := errors.AsType[*permanent](err)
	return ok
}
