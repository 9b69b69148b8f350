package drill

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/segmentio/kafka-go/sasl"

	"github.com/walpost/walpost/outbox"
)

// Options of a Drill. All but TLS, SASL and Keep are needed.
type Options struct {
	Conn    *pgx.ConnConfig
	Brokers []string
	TLS     *tls.Config
	SASL    sasl.Mechanism

	// Events is how many the drill commits.
	Events int
	// Keep leaves everything where it is at the end.
	Keep bool
	// Config is handed to the children as it is.
	Config json.RawMessage
	// Command makes the command of a child with that role, which reads a Spec from
	// its standard input and ends when that is closed.
	Command func(role string) (*exec.Cmd, error)

	// patience is how long a drill waits for what has to come; default 20 s.
	patience time.Duration
	// tamper breaks the product at a point of a drill, for tests.
	tamper tamper
}

// tamper is how tests break what a drill has to notice.
type tamper struct {
	beforeRelay func(context.Context, *arena) error
	versions    outbox.VersionPolicy
	dedup       outbox.DedupPolicy
	handler     func(*arena, outbox.Handler) outbox.Handler
}

// The roles of children.
const (
	RoleRelay   = "relay"
	RoleService = "service"
)

// Spec is what a child is told.
type Spec struct {
	Config json.RawMessage `json:"config"`
	Name   string          `json:"name"` // of schema, publication and slot
	Topic  string          `json:"topic"`
	Proxy  string          `json:"proxy"`
	Events int             `json:"events"`
}

// Info describes a drill.
type Info struct {
	Name  string `json:"name"`
	Shows string `json:"shows"`
}

// List gives the drills there are.
func List() []Info {
	list := make([]Info, len(drills))
	for i, d := range drills {
		list[i] = d.Info
	}
	return list
}

type drill struct {
	Info
	run func(context.Context, *arena, *Report) error
}

var drills = [...]drill{
	{Info{"stop-service-after-commit", "a service that dies right after its commit loses no event, and a rollback publishes none"}, stopService},
	{Info{"kill-relay-after-ack", "a relay killed after Kafka has stored a record and before it knows loses nothing and keeps the order"}, killRelay},
	{Info{"repeat-message", "a record that comes again, to two consumers at once and after a reset, has one side effect"}, repeatMessage},
	{Info{"versions-out-of-order", "versions are applied in order, and what follows a gap is refused, waited for or parked, and never applied"}, versionsOutOfOrder},
}

// prefix begins every name in PostgreSQL, topicPrefix that of the topic.
const (
	prefix      = "walpost_drill_"
	topicPrefix = "walpost.drill."
)

// Error is one that says what to do.
type Error struct {
	Text string
	Way  string
	Err  error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Text
	}
	return e.Text + ": " + e.Err.Error()
}

// Hint is the line printed below the error.
func (e *Error) Hint() string { return e.Way }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// index of a drill, -1 if there is none of that name.
func index(name string) int {
	return slices.IndexFunc(drills[:], func(d drill) bool { return d.Name == name })
}

// Validate says what is wrong with a name or a number of events.
func Validate(name string, events int) error {
	if index(name) < 0 {
		return &Error{Text: fmt.Sprintf("unknown drill %q", name), Way: `see "walpost drill list" for the names`}
	}
	if events < 4 {
		return &Error{Text: "a drill needs at least 4 events", Way: "raise --events"}
	}
	return nil
}

// Run runs the named drill. The report tells what held; an error says that the
// drill could not be brought to its end.
func Run(ctx context.Context, name string, opt Options) (*Report, error) {
	if err := Validate(name, opt.Events); err != nil {
		return nil, err
	}
	if opt.patience == 0 {
		opt.patience = 20 * time.Second
	}
	a, err := newArena(opt)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	report := &Report{Drill: name, Name: a.name, Topic: a.topic, Kept: opt.Keep}
	if err = a.make(ctx); err == nil {
		err = drills[index(name)].run(ctx, a, report)
	}
	if err = errors.Join(err, a.close(context.WithoutCancel(ctx))); err != nil {
		return nil, fmt.Errorf("drill %s: %w", name, err)
	}
	report.Seconds = time.Since(began).Seconds()
	return report, nil
}

func random() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}
