package outboxkafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/outbox"
)

// processor is what a Runner needs of an outbox.Consumer.
type processor interface {
	Process(context.Context, outbox.Message, outbox.Handler) (outbox.Result, error)
	ProcessBatch(context.Context, []outbox.Message, outbox.Handler) ([]outbox.Result, error)
}

// Runner is a member of a consumer group.
type Runner struct {
	opt      Options
	log      *slog.Logger
	consumer processor
	client   *kafka.Client

	running atomic.Bool
	known   map[string]int // partitions of each topic, as seen before the last join

	mu    sync.Mutex
	lanes []*lane
}

// New checks the options. It connects to nothing.
func New(o Options) (*Runner, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Runner{opt: o, log: o.Log.With("group", o.Group), consumer: o.Consumer}, nil
}

// Run takes part in the group until ctx ends; then it stops as described at the
// package, and returns nil. What passes by itself (brokers that are down, the
// database, rebalances) is waited for and logged. The error of Run is something
// that waiting does not mend, such as a refused password.
func (r *Runner) Run(ctx context.Context) error {
	if !r.running.CompareAndSwap(false, true) {
		return &outbox.Error{Text: fmt.Sprintf("runner of group %q: it runs already", r.opt.Group), Way: "make another one with New for another member"}
	}
	defer r.running.Store(false)
	transport := r.transport()
	defer transport.CloseIdleConnections()
	r.client = &kafka.Client{Addr: kafka.TCP(r.opt.Brokers...), Transport: transport}
	for {
		topics, err := r.look(ctx)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if err := r.join(ctx, topics); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// join is a membership: it ends with ctx, or when topics have come or gone.
func (r *Runner) join(ctx context.Context, topics []string) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	group, err := kafka.NewConsumerGroup(r.groupConfig(topics))
	if err != nil {
		return fmt.Errorf("runner of group %q: %w", r.opt.Group, err)
	}
	// A generation that has ended before it is started is not waited for by
	// kafka-go.
	var working sync.WaitGroup
	defer working.Wait()
	// Close ends the generation, waits for its lanes, and leaves the group.
	defer group.Close()
	var last string
	for {
		gen, err := group.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && isPermanent(err):
			return r.refused("join", err)
		case err != nil && err.Error() != last:
			last = err.Error()
			r.log.WarnContext(ctx, "group not joined", "err", err)
		case err == nil:
			last = ""
			working.Wait()
			working.Add(1)
			gen.Start(func(assigned context.Context) {
				defer working.Done()
				r.work(ctx, assigned, gen)
				if !slices.Equal(existing(r.known), topics) {
					leave()
				}
			})
		}
	}
}

// existing are the topics that have partitions. The group is joined for them
// alone: kafka-go assigns no partition at all as long as one topic is missing.
func existing(counts map[string]int) []string { return slices.Sorted(maps.Keys(counts)) }

func (r *Runner) groupConfig(topics []string) kafka.ConsumerGroupConfig {
	return kafka.ConsumerGroupConfig{
		ID: r.opt.Group, Brokers: r.opt.Brokers, Topics: topics, Dialer: r.opt.Dialer,
		GroupBalancers:    r.opt.Balancers,
		StartOffset:       r.opt.Start,
		SessionTimeout:    r.opt.SessionTimeout,
		RebalanceTimeout:  r.opt.RebalanceTimeout,
		HeartbeatInterval: max(r.opt.SessionTimeout/10, 100*time.Millisecond),
		JoinGroupBackoff:  time.Second,
		Timeout:           min(5*time.Second, r.opt.SessionTimeout/2),
		// Its own watch for new partitions ends every generation at once while a
		// topic does not exist.
		WatchPartitionChanges: false,
		ErrorLogger: kafka.LoggerFunc(func(format string, args ...any) {
			r.log.Debug("kafka-go", "text", fmt.Sprintf(format, args...))
		}),
	}
}

// transport makes of the dialer what the client needs, so that there is one place
// for TLS and SASL.
func (r *Runner) transport() *kafka.Transport {
	d := r.opt.Dialer
	dial := d.DialFunc
	if dial == nil {
		dial = (&net.Dialer{Timeout: d.Timeout, KeepAlive: d.KeepAlive, LocalAddr: d.LocalAddr, FallbackDelay: d.FallbackDelay}).DialContext
	}
	return &kafka.Transport{
		Dial: dial, DialTimeout: or(d.Timeout, 10*time.Second), ClientID: d.ClientID, TLS: d.TLS, SASL: d.SASLMechanism,
		MetadataTTL: 2 * time.Second, MetadataTopics: r.opt.Topics,
	}
}

// look waits until a broker answers and at least one of the topics exists, and
// gives those that do. What it sees before a join is never more than what the
// group's leader sees, so that later changes are noticed.
func (r *Runner) look(ctx context.Context) ([]string, error) {
	var last string
	for wait := newBackoff(); ; {
		counts, err := r.count(ctx)
		var said string
		switch {
		case ctx.Err() != nil:
			return nil, nil
		case err == nil:
			var missing []string
			for _, topic := range r.opt.Topics {
				if counts[topic] == 0 {
					missing = append(missing, topic)
				}
			}
			if said = fmt.Sprint(missing); len(missing) > 0 && said != last {
				r.log.WarnContext(ctx, "topics do not exist yet", "topics", missing)
			}
			if len(counts) > 0 {
				r.known = counts
				return existing(counts), nil
			}
		case isPermanent(err):
			return nil, r.refused("look for partitions", err)
		default:
			if said = err.Error(); said != last {
				r.log.WarnContext(ctx, "no broker answers", "err", err)
			}
		}
		last = said
		if !wait.wait(ctx) {
			return nil, nil
		}
	}
}

// count gives the partitions of each topic; a topic that does not exist has none.
func (r *Runner) count(ctx context.Context) (map[string]int, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	response, err := r.client.Metadata(ctx, &kafka.MetadataRequest{Topics: r.opt.Topics})
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, t := range response.Topics {
		switch {
		case t.Error == nil && len(t.Partitions) > 0:
			counts[t.Name] = len(t.Partitions)
		case t.Error != nil && !errors.Is(t.Error, kafka.UnknownTopicOrPartition):
			return nil, fmt.Errorf("topic %q: %w", t.Name, t.Error)
		}
	}
	return counts, nil
}

// refusals are the answers that waiting does not change.
var refusals = []kafka.Error{
	kafka.SASLAuthenticationFailed, kafka.UnsupportedSASLMechanism, kafka.IllegalSASLState,
	kafka.GroupAuthorizationFailed, kafka.TopicAuthorizationFailed, kafka.ClusterAuthorizationFailed,
	kafka.InvalidGroupId, kafka.InvalidSessionTimeout, kafka.InconsistentGroupProtocol, kafka.UnsupportedVersion, kafka.InvalidTopic,
}

func isPermanent(err error) bool {
	return slices.ContainsFunc(refusals, func(e kafka.Error) bool { return errors.Is(err, e) })
}

func (r *Runner) refused(doing string, err error) error {
	way := "see the broker's log"
	switch {
	case errors.Is(err, kafka.SASLAuthenticationFailed), errors.Is(err, kafka.UnsupportedSASLMechanism), errors.Is(err, kafka.IllegalSASLState):
		way = "check mechanism, user and password of the dialer"
	case errors.Is(err, kafka.GroupAuthorizationFailed):
		way = "allow the user READ on the group"
	case errors.Is(err, kafka.TopicAuthorizationFailed):
		way = "allow the user READ and DESCRIBE on the topics"
	case errors.Is(err, kafka.InvalidSessionTimeout):
		way = "keep the session timeout between the broker's group.min.session.timeout.ms and group.max.session.timeout.ms"
	case errors.Is(err, kafka.InconsistentGroupProtocol):
		way = "give all members of the group a balancer in common"
	}
	return &outbox.Error{Text: fmt.Sprintf("runner of group %q: %s", r.opt.Group, doing), Way: way, Err: err}
}
