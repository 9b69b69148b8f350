package outboxkafka

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/outbox"
)

// Options of a Runner. Brokers, Group, Topics, Consumer and Handler are needed.
type Options struct {
	Brokers []string
	// Group is the consumer group. It is usually also the consumer's name.
	Group  string
	Topics []string

	Consumer *outbox.Consumer
	Handler  outbox.Handler

	// Dialer carries TLS, SASL, the client id and how to dial, for all
	// connections; nil is plain TCP. Its Resolver is not used.
	Dialer *kafka.Dialer
	// Start is where a partition is read from for which the group has no offset:
	// kafka.FirstOffset (the default) or kafka.LastOffset.
	Start int64
	// Batch is how many events are applied in one transaction; 1. More is faster,
	// and when one of them fails the others' handlers run again.
	Batch int
	// MaxBytes bounds what was fetched and is not processed yet, over all
	// partitions; 64 MiB.
	MaxBytes int64
	// CommitEvery is how long an offset may wait for its commit; 1 s. It is also
	// about what comes again after a crash.
	CommitEvery time.Duration
	// Drain is how long the event in hand may take when a partition is taken away
	// or the runner stops; 5 s. Then the context of its handler ends, and its
	// transaction is rolled back. It has to be shorter than both timeouts below.
	Drain time.Duration
	// SessionTimeout is after how long without a heartbeat a member counts as gone,
	// RebalanceTimeout how long the group waits for one to join again; 30 s.
	SessionTimeout, RebalanceTimeout time.Duration
	// WatchEvery is how often to look for new partitions; 30 s.
	WatchEvery time.Duration
	// Balancers in order of preference; range, then round robin. Members of a group
	// need one in common.
	Balancers []kafka.GroupBalancer

	// NotAnEvent is asked about a record that outbox.Parse refuses; nil lets the
	// record be passed over. Without it, and as long as it gives an error, the
	// partition stands still: nothing is skipped unless somebody said so.
	NotAnEvent func(ctx context.Context, record kafka.Message, why error) error

	// Log receives what an operator wants to know; nil drops it.
	Log *slog.Logger
}

const (
	defaultMaxBytes = 64 << 20
	maxFetch        = 1 << 20 // more at once does not make a fetch cheaper
	minFetch        = 1 << 10
)

func (o *Options) check() error {
	wrong := func(text, way string) error {
		return &outbox.Error{Text: fmt.Sprintf("runner of group %q: %s", o.Group, text), Way: way}
	}
	switch {
	case len(o.Brokers) == 0 || slices.Contains(o.Brokers, ""):
		return wrong("there are no brokers, or an empty one", "name at least one as host:port")
	case o.Group == "":
		return wrong("the group has no name", "name it like the consumer")
	case len(o.Topics) == 0 || slices.Contains(o.Topics, ""):
		return wrong("there are no topics, or an empty one", "name at least one, such as outbox.event.order")
	case o.Consumer == nil:
		return wrong("there is no consumer", "make one with outbox.NewConsumer")
	case o.Handler == nil:
		return wrong("there is no handler", "pass the function that applies an event")
	case o.Start != 0 && o.Start != kafka.FirstOffset && o.Start != kafka.LastOffset:
		return wrong(fmt.Sprintf("start %d is no place to start from", o.Start), "use kafka.FirstOffset or kafka.LastOffset")
	case o.Batch < 0 || o.MaxBytes < 0 || o.CommitEvery < 0 || o.Drain < 0 || o.SessionTimeout < 0 || o.RebalanceTimeout < 0 || o.WatchEvery < 0:
		return wrong("a number is negative", "leave it 0 for the default")
	}
	o.Topics = slices.Compact(slices.Sorted(slices.Values(o.Topics)))
	o.Start = or(o.Start, kafka.FirstOffset)
	o.Batch = or(o.Batch, 1)
	o.MaxBytes = or(o.MaxBytes, defaultMaxBytes)
	o.CommitEvery = or(o.CommitEvery, time.Second)
	o.Drain = or(o.Drain, 5*time.Second)
	o.SessionTimeout = or(o.SessionTimeout, 30*time.Second)
	o.RebalanceTimeout = or(o.RebalanceTimeout, 30*time.Second)
	o.WatchEvery = or(o.WatchEvery, 30*time.Second)
	if o.Drain >= min(o.SessionTimeout, o.RebalanceTimeout) {
		return wrong(fmt.Sprintf("drain %v is not shorter than the session timeout %v and the rebalance timeout %v", o.Drain, o.SessionTimeout, o.RebalanceTimeout),
			"make it shorter, or the group gives the partitions away before it is over")
	}
	if o.Dialer == nil {
		o.Dialer = &kafka.Dialer{Timeout: 10 * time.Second, DualStack: true}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

func or[T comparable](v, otherwise T) T {
	if v == *new(T) {
		return otherwise
	}
	return v
}

// fetchBytes is what one lane of so many asks for at once: two fetches of each
// are held at a time.
func (o *Options) fetchBytes(lanes int) int64 {
	return min(max(o.MaxBytes/int64(2*max(lanes, 1)), minFetch), maxFetch)
}
