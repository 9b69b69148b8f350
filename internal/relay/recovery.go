package relay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"go.uber.org/zap"

	"github.com/walpost/walpost/checkpoint"
	"github.com/walpost/walpost/internal/failpoint"
	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

// Store is the part of checkpoint.Store that the relay uses.
type Store interface {
	Load(context.Context) (*checkpoint.Checkpoint, error)
	Claim(ctx context.Context, of checkpoint.Checkpoint, owner string) (*checkpoint.Checkpoint, error)
	Save(ctx context.Context, c checkpoint.Checkpoint, fresh bool) error
	Close(context.Context)
}

// recoverer is a sink that can tell what a predecessor has delivered.
type recoverer interface {
	Recover(context.Context, sink.Recovery) error
	Progress(settled uint64) map[sink.Partition]int64
	ReplayOver(commit uint64)
	ClusterID(context.Context) (string, error)
	Expect(topics []string)
	OffsetsSince(context.Context, sink.Since) (map[sink.Partition]int64, error)
}

const (
	// checkpointInterval is how often the checkpoint is written while events flow.
	checkpointInterval = time.Second
	// checkpointBytes is how far the mark may move without an event before it is
	// written all the same. The checkpoint's own WAL must not make the next
	// checkpoint necessary.
	checkpointBytes = 16 << 20
	// checkpointTimeout bounds a call of the store.
	checkpointTimeout = 10 * time.Second
)

// recovery keeps what a successor of this relay needs, and uses what the
// predecessor left.
type recovery struct {
	relay *Relay
	store Store // nil: not wanted
	sink  recoverer

	succeeded chan error // has room for one: another relay has taken over

	done atomic.Bool // Recover has been called
	lost bool        // another instance held the slot since
	end  pglogrepl.LSN
	over bool // the replay is

	mu  sync.Mutex
	off string // why nothing is written

	writing turn // held while a checkpoint is written, and guards the rest
	begun   bool // what is written can be told from what the predecessor left
	cluster string
	fresh   bool // what is stored belongs to another history: forget it
	unsaved map[checkpoint.Partition]int64
	saved   pglogrepl.LSN
}

// load reads the checkpoint before the first session. Without one, or without
// the tables for it, the relay starts from the slot alone.
func (r *recovery) load(ctx context.Context) (*checkpoint.Checkpoint, error) {
	if r.lost && r.nothingInFlight() {
		// We are our predecessor's successor again. With events in flight this
		// would be too late: Kafka refuses them, and the relay ends.
		r.again()
	}
	if r.store == nil || r.done.Load() {
		return nil, nil
	}
	call, cancel := context.WithTimeout(ctx, checkpointTimeout)
	defer cancel()
	c, err := r.store.Load(call)
	if errors.Is(err, checkpoint.ErrNoStore) {
		r.disable(err)
		return nil, nil
	}
	return c, err
}

// nothingInFlight asks the sink too: a heartbeat belongs to no transaction, so the
// tracker does not know of it. Between sessions nothing is added to either.
func (r *recovery) nothingInFlight() bool {
	_, pending, _ := r.relay.tracker.Pending()
	return pending == 0 && r.relay.sink.Status().InFlightRecords == 0
}

func (r *recovery) disable(err error) {
	r.mu.Lock()
	first := r.off == ""
	r.off = err.Error()
	r.mu.Unlock()
	if first {
		r.relay.log.Warn("no checkpoint: what is in flight when this process is killed comes again", zap.Error(err),
			zap.String("hint", `"walpost init" makes the tables, and upgrades old ones; "walpost init --print" shows the grants`))
	}
}

func (r *recovery) disabled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.store == nil || r.off != ""
}

// begin is called by the pump before it reads the first message of a session. In
// the first session it fences predecessors off and reads what they delivered.
func (r *recovery) begin(ctx context.Context, h slot.History, walEnd pglogrepl.LSN, c *checkpoint.Checkpoint) error {
	if r.done.Load() || r.sink == nil {
		return nil
	}
	cluster, err := r.sink.ClusterID(ctx)
	if err != nil {
		return r.refused(ctx, err)
	}
	if !r.disabled() {
		before := c
		if c, err = r.claim(ctx, h, cluster, before); err != nil {
			return err
		}
		if c != nil && c.SystemID == h.SystemID && c.LSN > h.LSN && (before == nil || c.LSN > before.LSN) {
			return errCheckpointMoved
		}
	}
	plan := sink.Recovery{
		TransactionalID: "walpost-" + h.SystemID + "-" + r.relay.opt.SlotName,
		Offsets:         map[sink.Partition]int64{},
	}
	switch {
	case c == nil:
	case c.SystemID != h.SystemID:
		r.relay.log.Warn("the checkpoint is of another database cluster and not used", zap.String("system_id", c.SystemID))
		r.forget()
	case c.KafkaCluster != cluster:
		r.relay.log.Warn("the checkpoint is of another Kafka cluster and not used", zap.String("cluster", c.KafkaCluster))
		r.forget()
	default:
		for p, offset := range c.Offsets {
			plan.Offsets[sink.Partition(p)] = offset
		}
		if c.LSN > h.LSN {
			// Its position was refused: the server does not have that WAL. It must
			// not stay there until the WAL has grown to it; the offsets stay.
			r.forget()
			r.writing.Lock()
			r.unsaved = maps.Clone(c.Offsets)
			r.writing.Unlock()
		}
	}
	r.writing.Lock()
	r.cluster, r.begun = cluster, true
	r.writing.Unlock()
	if !r.disabled() {
		plan.Register = r.register
	}
	if r.relay.opt.Predecessor != nil {
		if err := r.inherit(ctx, r.relay.opt.Predecessor(), plan.Offsets, c != nil && c.LSN > 0); err != nil {
			return err
		}
	}
	if err := r.sink.Recover(ctx, plan); err != nil {
		return r.refused(ctx, err)
	}
	failpoint.Hit("relay.recovered")
	r.lost, r.end = false, walEnd
	r.done.Store(true)
	return nil
}

// refused says what an error of the sink means. One that fences us off has the
// transactional id now. Taking it again would fence that one off, which would do
// the same to us, and so on: the relay ends.
func (r *recovery) refused(ctx context.Context, err error) error {
	switch {
	case sink.IsFenced(err):
		r.takenOver(err)
		return err
	case ctx.Err() != nil:
		return err // we were told to stop, or the stream is lost
	}
	return &kafkaError{err}
}

// takenOver ends the relay.
func (r *recovery) takenOver(err error) {
	select {
	case r.succeeded <- err:
	default: // it is said already
	}
}

// inherit adds the partitions in which another tool may have left events that it
// had not confirmed, from where they can begin. Should we be killed before the
// replay is over, our successor finds them in our checkpoint. Where we have
// published before, what is in the checkpoint is enough for the partitions that
// are in it.
func (r *recovery) inherit(ctx context.Context, since *sink.Since, offsets map[sink.Partition]int64, before bool) error {
	if since == nil {
		return nil
	}
	found, err := r.sink.OffsetsSince(ctx, *since)
	if err != nil {
		return r.refused(ctx, err)
	}
	for p, offset := range found {
		if own, ok := offsets[p]; !ok || !before && offset < own {
			offsets[p] = offset
		}
	}
	r.relay.log.Info("looking for what another relay has delivered", zap.Int("partitions", len(found)), zap.Time("since", since.Time))
	if r.disabled() || len(found) == 0 {
		return nil
	}
	return r.write(ctx, r.relay.tracker.Mark(), offsets)
}

// errCheckpointMoved: the predecessor saved its last position after we had looked
// for where to start, and may have been killed before the slot got to know it.
// From the slot's position, events would come again that lie below the offsets
// saved with that position, where nobody looks for them.
var errCheckpointMoved = fmt.Errorf("the predecessor's checkpoint moved while the slot was taken: %w", net.ErrClosed)

// claim takes the checkpoint, now that the slot is ours, and reads it again: the
// predecessor went on until it lost the slot. It must come before anything is
// made of what is read. A predecessor that is frozen, or has not noticed yet, can
// make no partition known to us any more, and writes to none that it cannot make
// known.
func (r *recovery) claim(ctx context.Context, h slot.History, cluster string, before *checkpoint.Checkpoint) (*checkpoint.Checkpoint, error) {
	call, cancel := context.WithTimeout(ctx, checkpointTimeout)
	defer cancel()
	c, err := r.store.Claim(call, checkpoint.Checkpoint{SystemID: h.SystemID, Timeline: h.Timeline, KafkaCluster: cluster}, r.relay.opt.Instance)
	if errors.Is(err, checkpoint.ErrNoStore) {
		r.disable(err)
		return before, nil // we may still read what was left
	}
	return c, err
}

// delivered notes that everything below lsn is, where a slot now begins. Where
// that fails, or we are killed before, our successor begins with that again. all
// says that nothing of it comes again, so that nobody has to look for it in Kafka.
func (r *recovery) delivered(ctx context.Context, lsn pglogrepl.LSN, all bool) {
	if r.sink == nil || r.disabled() {
		return
	}
	var grown map[sink.Partition]int64
	if all {
		grown = r.sink.Progress(uint64(lsn) + 1)
	}
	if err := r.write(ctx, lsn, grown); err != nil && ctx.Err() == nil {
		r.relay.log.Warn("checkpoint not written", zap.Error(err))
	}
}

// again makes the next session look for what was delivered, as if another relay
// had done it. Nothing may be in flight.
func (r *recovery) again() {
	r.done.Store(false)
	r.over = false
	r.writing.Lock()
	r.begun = false // until the checkpoint is ours again
	r.writing.Unlock()
}

func (r *recovery) forget() {
	r.writing.Lock()
	r.fresh = true
	r.writing.Unlock()
}

// pending says that nothing is read before Kafka has told what is there.
func (r *recovery) pending() bool { return r.sink != nil && !r.done.Load() }

// why says why no checkpoint is written; empty when it is.
func (r *recovery) why() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.store == nil {
		return "not configured"
	}
	return r.off
}

// reached tells the sink when nothing can come any more that a predecessor may
// have delivered.
func (r *recovery) reached(lsn pglogrepl.LSN) {
	if !r.over && r.done.Load() && lsn >= r.end {
		r.over = true
		r.sink.ReplayOver(uint64(r.end))
		failpoint.Hit("relay.replay-over")
	}
}

// register is called by the sink before it writes to partitions for the first
// time.
func (r *recovery) register(ctx context.Context, offsets map[sink.Partition]int64) error {
	err := r.write(ctx, r.relay.tracker.Mark(), offsets)
	if errors.Is(err, checkpoint.ErrNoStore) {
		r.disable(err) // the rights were taken away while we run
		return nil
	}
	return err
}

// run writes checkpoints until ctx ends. Its error says that another relay has
// taken over.
func (r *recovery) run(ctx context.Context) error {
	tick := time.NewTicker(checkpointInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			select {
			case err := <-r.succeeded: // while the relay came to its end
				return err
			default:
				return nil
			}
		case err := <-r.succeeded:
			return err
		case <-tick.C:
		}
		if err := r.save(ctx); err != nil && ctx.Err() == nil {
			r.relay.log.Warn("checkpoint not written", zap.Error(err))
		}
	}
}

// save writes what has changed since the last time, if that is worth it.
func (r *recovery) save(ctx context.Context) error {
	r.relay.mu.Lock()
	streaming, broken := r.relay.stream != nil, r.relay.broken != nil
	r.relay.mu.Unlock()
	if r.sink == nil || r.disabled() || !streaming || broken {
		return nil
	}
	mark := r.relay.tracker.Mark()
	grown := r.sink.Progress(uint64(mark))
	if err := r.writing.wait(ctx); err != nil {
		return err
	}
	idle := !r.begun || len(grown) == 0 && len(r.unsaved) == 0 && mark < r.saved+checkpointBytes
	r.writing.Unlock()
	if idle {
		return nil
	}
	err := r.write(ctx, mark, grown)
	if errors.Is(err, checkpoint.ErrNoStore) {
		r.disable(err)
		return nil
	}
	return err
}

// write saves offsets and whatever could not be saved before.
func (r *recovery) write(ctx context.Context, mark pglogrepl.LSN, offsets map[sink.Partition]int64) error {
	if err := r.writing.wait(ctx); err != nil {
		return err
	}
	defer r.writing.Unlock()
	if r.unsaved == nil {
		r.unsaved = map[checkpoint.Partition]int64{}
	}
	for p, offset := range offsets {
		r.unsaved[checkpoint.Partition(p)] = max(offset, r.unsaved[checkpoint.Partition(p)])
	}
	if !r.begun {
		return errors.New("checkpoint: it is not ours yet")
	}
	h := r.relay.status.history()
	call, cancel := context.WithTimeout(ctx, checkpointTimeout)
	defer cancel()
	err := r.store.Save(call, checkpoint.Checkpoint{
		SystemID: h.SystemID, Timeline: h.Timeline, LSN: mark, KafkaCluster: r.cluster, Offsets: maps.Clone(r.unsaved),
	}, r.fresh)
	if err != nil {
		err = fmt.Errorf("checkpoint: %w", err)
		if errors.Is(err, checkpoint.ErrSucceeded) {
			err = &SucceededError{err}
			r.takenOver(err)
		}
		return err
	}
	r.unsaved, r.fresh, r.saved = nil, false, mark
	return nil
}
