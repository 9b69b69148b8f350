package sink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/failpoint"
	"github.com/walpost/walpost/internal/retry"
)

// Partition of a topic.
type Partition struct {
	Topic  string
	Number int32
}

// Recovery is what a relay needs to know of its predecessors before it
// publishes.
type Recovery struct {
	// TransactionalID is the same for all relays of one slot, and for no other.
	TransactionalID string
	// Offsets are the partitions that predecessors may have written, each with an
	// offset below which nothing is missing and nothing will come again.
	Offsets map[Partition]int64
	// MaxIDs bounds the event ids that are remembered of what lies behind those
	// offsets. Default 2,000,000, which take about 60 MB.
	MaxIDs int
	// Register must make a partition's offset durable before the first record is
	// sent to it. A nil Register leaves the successor without that knowledge.
	Register func(context.Context, map[Partition]int64) error
}

// Protection against duplicates of a restart, as far as it is there. An empty
// string means that it is; otherwise it says why not.
type Protection struct {
	Fence string // predecessors that still live cannot write any more
	Tail  string // what they wrote is known
}

// transactionTimeout only matters for the fence's empty transaction, which is
// over in milliseconds.
const transactionTimeout = 60 * time.Second

// Recover makes sure that no predecessor can write any more, then reads what
// they have written, and lets the sink begin. Records that are there already are
// acked by Submit without being sent.
//
// With Options.AwaitRecovery it must be called before the first Submit, while Run
// is running; and again, with nothing in flight, after another relay may have
// written. It waits for Kafka as long as it takes; its error is ctx's, or fatal.
func (k *Kafka) Recover(ctx context.Context, r Recovery) error {
	defer k.disconnect()
	if r.MaxIDs <= 0 {
		r.MaxIDs = 2_000_000
	}
	started := time.Now()
	tried := k.admit(r)
	f := &fence{k: k, id: r.TransactionalID}
	session, err := f.raise(ctx, r.Offsets)
	if err != nil {
		return err
	}
	tail := &tail{k: k, limit: r.MaxIDs, ids: make(map[eventID]struct{})}
	if err := tail.read(ctx, r.Offsets); err != nil {
		return err
	}
	awaitTried(ctx, tried)
	k.mu.Lock()
	k.producer = session
	k.transactional = f.id
	if len(tail.ids) > 0 {
		k.known = tail.ids
	}
	k.read = tail.ends
	k.protection = Protection{Fence: f.off, Tail: tail.off()}
	k.replayed, k.moved = 0, make(map[*lane]struct{})
	k.wakeSenders()
	for _, t := range k.topics {
		for _, l := range t.lanes {
			l.producer, l.seq, l.marks = producer{}, 0, nil
			k.offer(l)
		}
	}
	k.mu.Unlock()
	k.log.Info("recovered", zap.Int("partitions", len(r.Offsets)), zap.Int("known_events", len(tail.ids)),
		zap.Int64("producer_id", session.id), zap.Int16("producer_epoch", session.epoch), zap.Duration("took", time.Since(started)))
	return nil
}

// ClusterID names the cluster, once it answers.
func (k *Kafka) ClusterID(ctx context.Context) (string, error) {
	defer k.disconnect()
	var id string
	t := &tail{k: k}
	err := t.again(ctx, func(call context.Context) error {
		cluster, err := k.metadata(call, []string{})
		if err == nil {
			id = cluster.ClusterID
		}
		return err
	})
	return id, err
}

// fence takes the transactional id over from whoever had it.
//
// Taking the id alone does not stop plain batches of the old epoch: the broker
// compares epochs per partition, and learns of ours by our first write. An empty
// transaction writes its marker to every partition; when it is complete, nothing
// of an older epoch is accepted anywhere.
type fence struct {
	k   *Kafka
	id  string // empty: there is none
	off string // why there is none
}

func (f *fence) raise(ctx context.Context, offsets map[Partition]int64) (producer, error) {
	if f.id == "" {
		f.off = "no transactional id"
		return f.plain(ctx)
	}
	session, err := f.init(ctx, producer{id: -1, epoch: -1})
	if f.denied(err) {
		f.k.log.Warn("no fence against predecessors: delivery is at-least-once", zap.String("transactional_id", f.id), zap.Error(err),
			zap.String("hint", "grant WRITE on that TransactionalId to walpost's principal"))
		f.off, f.id = err.Error(), ""
		return f.plain(ctx)
	}
	if err != nil {
		return producer{}, err
	}
	if len(offsets) == 0 {
		return session, nil
	}
	if err := f.emptyTransaction(ctx, session, offsets); err != nil {
		return producer{}, err
	}
	// Answers CONCURRENT_TRANSACTIONS until all markers are written.
	if session, err = f.init(ctx, session); err != nil {
		return producer{}, err
	}
	return session, failpoint.Fail("sink.fence-done")
}

func (f *fence) denied(err error) bool {
	return errors.Is(err, kafka.TransactionalIDAuthorizationFailed)
}

// plain is an idempotent producer without an id of its own.
func (f *fence) plain(ctx context.Context) (producer, error) {
	return f.init(ctx, producer{id: -1, epoch: -1})
}

// init asks for a producer session until it gets one.
func (f *fence) init(ctx context.Context, own producer) (producer, error) {
	var session producer
	err := f.try(ctx, func(call context.Context) error {
		request := &kafka.InitProducerIDRequest{ProducerID: int(own.id), ProducerEpoch: int(own.epoch)}
		if f.id != "" {
			request.TransactionalID = f.id
			request.TransactionTimeoutMs = int(transactionTimeout.Milliseconds())
		}
		response, err := f.k.client.InitProducerID(call, request)
		if err == nil {
			err = response.Error
		}
		if err == nil && response.Producer.ProducerID < 0 {
			// A young broker: batches with id -1 would be accepted without any
			// protection against repeats.
			err = kafka.GroupLoadInProgress
		}
		if err == nil {
			err = failpoint.Fail("sink.fence-begun")
		}
		if err == nil {
			session = producer{true, int64(response.Producer.ProducerID), int16(response.Producer.ProducerEpoch)}
		}
		return err
	})
	return session, err
}

// maxPartitionsPerRequest of the transaction's partitions.
const maxPartitionsPerRequest = 2000

func (f *fence) emptyTransaction(ctx context.Context, own producer, offsets map[Partition]int64) error {
	added := false
	batch := make(map[string][]kafka.AddPartitionToTxn)
	n := 0
	flush := func() error {
		if n == 0 {
			return nil
		}
		ok, err := f.add(ctx, own, batch)
		added = added || ok
		batch, n = make(map[string][]kafka.AddPartitionToTxn), 0
		return err
	}
	for p := range offsets {
		batch[p.Topic] = append(batch[p.Topic], kafka.AddPartitionToTxn{Partition: int(p.Number)})
		if n++; n == maxPartitionsPerRequest {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil || !added {
		return err
	}
	return f.try(ctx, func(call context.Context) error {
		response, err := f.k.client.EndTxn(call, &kafka.EndTxnRequest{
			TransactionalID: f.id, ProducerID: int(own.id), ProducerEpoch: int(own.epoch), Committed: true,
		})
		if err == nil {
			err = response.Error
		}
		if err == nil {
			err = failpoint.Fail("sink.fence-ended")
		}
		return err
	})
}

// add adds partitions to the transaction. Those that are not there any more, or
// that we may not write, cannot have been written by a predecessor that lives
// either; they are left out.
func (f *fence) add(ctx context.Context, own producer, topics map[string][]kafka.AddPartitionToTxn) (added bool, err error) {
	var missing doubt
	err = f.try(ctx, func(call context.Context) error {
		response, err := f.k.client.AddPartitionsToTxn(call, &kafka.AddPartitionsToTxnRequest{
			TransactionalID: f.id, ProducerID: int(own.id), ProducerEpoch: int(own.epoch), Topics: topics,
		})
		if err != nil {
			return err
		}
		bad := make(map[Partition]bool)
		var retry error
		for name, partitions := range response.Topics {
			for _, p := range partitions {
				switch {
				case p.Error == nil, errors.Is(p.Error, kafka.Error(55)): // OPERATION_NOT_ATTEMPTED: another one was refused
				case errors.Is(p.Error, kafka.UnknownTopicOrPartition) && missing.doubted(p.Error):
					retry = p.Error
				case errors.Is(p.Error, kafka.UnknownTopicOrPartition), errors.Is(p.Error, kafka.TopicAuthorizationFailed):
					bad[Partition{name, int32(p.Partition)}] = true
				default:
					retry = p.Error
				}
			}
		}
		if retry != nil {
			return retry
		}
		if len(bad) == 0 {
			added = len(topics) > 0
			return failpoint.Fail("sink.fence-added")
		}
		topics = without(topics, bad)
		if len(topics) == 0 {
			return nil
		}
		return kafka.ConcurrentTransactions // again, without them
	})
	return added, err
}

func without(topics map[string][]kafka.AddPartitionToTxn, bad map[Partition]bool) map[string][]kafka.AddPartitionToTxn {
	left := make(map[string][]kafka.AddPartitionToTxn)
	for name, partitions := range topics {
		for _, p := range partitions {
			if !bad[Partition{name, int32(p.Partition)}] {
				left[name] = append(left[name], p)
			}
		}
	}
	return left
}

// try repeats a call to the coordinator as long as its failure passes. A refusal
// of the transactional id comes back; being fenced is fatal.
func (f *fence) try(ctx context.Context, call func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		timed, cancel := context.WithTimeout(ctx, f.k.opt.RequestTimeout)
		err := call(timed)
		cancel()
		if err == nil {
			f.k.mu.Lock()
			f.k.idless = nil
			f.k.reached()
			f.k.mu.Unlock()
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if f.denied(err) {
			return err
		}
		v := classify(err)
		if v.class == Fenced {
			return &FencedError{f.id, err}
		}
		if v.class != Passing || attempt > youngBroker || v.unknown || v.refresh {
			f.k.unreached(&f.k.idless, v, err)
		}
		if v.refresh {
			f.k.askMetadata() // the coordinator may be on a broker that is new
		}
		wait := f.k.timing.backoff(v.class, attempt)
		if errors.Is(err, kafka.ConcurrentTransactions) {
			wait = min(wait, 20*time.Millisecond)
		}
		if retry.Wait(ctx, wait) != nil {
			return context.Cause(ctx)
		}
	}
}

// FencedError says that another relay of the same slot has taken over.
type FencedError struct {
	TransactionalID string
	Err             error
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("another relay took over the transactional id %q: %v", e.TransactionalID, e.Err)
}

// Hint says what to do.
func (e *FencedError) Hint() string {
	return "the other instance relays now; if it should not, stop it and start this one again"
}

// Unwrap gives the cause.
func (e *FencedError) Unwrap() error { return e.Err }

// IsFenced says whether an error of Run or Recover means that another relay of
// the same slot writes now.
func IsFenced(err error) bool {
	if _, ok := errors.AsType[*FencedError](err); ok {
		return true
	}
	e, ok := errors.AsType[*DeliveryError](err)
	return ok && e.Class == Fenced
}
