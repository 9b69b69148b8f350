package sink

import (
	"context"
	"time"

	"github.com/segmentio/kafka-go/protocol/metadata"
)

// MaxExpected is how many topics are looked up before there is a record for them.
// The cluster's answer grows with their number, and a start must not wait for it.
const MaxExpected = 100

// ahead is what is done at the start before a record needs it.
type ahead struct {
	topics   map[string]bool    // expected, and not looked up yet; guarded by the sink's mutex
	admitted chan chan struct{} // asks for new partitions to be registered, and is closed then
	// registering has a token in it while that is done: a partition's end is asked
	// for once, before the first record.
	registering chan struct{}
}

func newAhead() ahead {
	return ahead{topics: make(map[string]bool), admitted: make(chan chan struct{}, 1), registering: make(chan struct{}, 1)}
}

// Expect makes topics known before there is a record for them, so that the first
// one does not wait for that. A topic that does not exist, or that we may not
// describe, is not missed before there is a record.
func (k *Kafka) Expect(topics []string) {
	k.mu.Lock()
	for _, name := range topics {
		if k.topics[name] == nil && len(k.ahead.topics) < MaxExpected {
			k.ahead.topics[name] = true
		}
	}
	k.mu.Unlock()
	k.askMetadata()
}

// wanted are the topics to be looked up.
func (k *Kafka) wanted() []string {
	names := make([]string, 0, len(k.topics)+len(k.ahead.topics))
	for name := range k.topics {
		names = append(names, name)
	}
	for name := range k.ahead.topics {
		if k.topics[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// meet takes over what the cluster says of a topic that is expected.
func (k *Kafka) meet(m *metadata.ResponseTopic, brokers []metadata.ResponseBroker) (incomplete bool) {
	delete(k.ahead.topics, m.Name)
	if m.ErrorCode != 0 {
		return false
	}
	t := &topic{name: m.Name}
	k.topics[t.name] = t
	return k.updateTopic(t, m.Partitions, brokers)
}

// unused says that there is nothing of a topic that would be missed: it was
// expected only, or is not written any more since Recover.
func (t *topic) unused() bool {
	if t.waiting.count > 0 || len(t.orphans) > 0 || t.hold != nil || t.reshaping || len(t.lanes) == 0 {
		return false
	}
	for _, l := range t.lanes {
		if l.queue.count > 0 || l.state != idle || l.seq != 0 {
			return false
		}
	}
	return true
}

// admit lets partitions that are new to us be registered while predecessors are
// fenced off: their present ends lie below anything that we will write. Nothing
// is sent before there is a producer. It returns what is closed when that was
// tried.
func (k *Kafka) admit(r Recovery) (tried <-chan struct{}) {
	k.mu.Lock()
	k.register = r.Register
	k.registered = make(map[Partition]bool, len(r.Offsets))
	for p := range r.Offsets {
		k.registered[p] = true
	}
	k.mu.Unlock()
	done := make(chan struct{})
	select {
	case k.ahead.admitted <- done:
	default:
		close(done)
	}
	return done
}

// registerPatience is how long Recover waits for what is being registered. A
// backlog that is read meanwhile takes the processors from it, and goes nowhere.
// When PostgreSQL does not answer, the other partitions must not wait.
const registerPatience = 250 * time.Millisecond

func awaitTried(ctx context.Context, tried <-chan struct{}) {
	timer := time.NewTimer(registerPatience)
	defer timer.Stop()
	select {
	case <-tried:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// registerAdmitted registers the partitions that are known when Recover begins.
// What fails, or is not known yet, is the metadata loop's.
func (k *Kafka) registerAdmitted(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case done := <-k.ahead.admitted:
			if k.registerLanes(ctx) {
				k.askMetadata()
			}
			close(done)
		}
	}
}
