package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/walpost/walpost/checkpoint"
	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/failpoint"
	"github.com/walpost/walpost/internal/retry"
	"github.com/walpost/walpost/internal/route"
	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

// Stream is the part of slot.Stream that the relay uses.
type Stream interface {
	Receive() (slot.Message, error)
	Confirm(pglogrepl.LSN)
	Positions() (received, flushed pglogrepl.LSN, lastSeen time.Time)
	History() slot.History
	Published() *slot.Published
	WALEnd() pglogrepl.LSN
	Close(context.Context) error
	Abort()
	Done() <-chan struct{} // closed when the connection is gone
}

// Monitor is the part of slot.Monitor that the relay uses.
type Monitor interface {
	Run(context.Context) error
	Latest() slot.Observation
	Expect(*slot.Published)
	Root(ctx context.Context, oid uint32) (root slot.Table, published, ok bool, err error)
}

// Metrics receives counts as they happen; safe for concurrent use.
type Metrics interface {
	EventReceived(n int)
	EventIgnored(reason string, n int)
	EventsAcked(topic string, n int, latency time.Duration)
	TransactionEvents(n int)
	StreamConnect(result string)
	StreamDisconnect(reason string)
	DecodeError(reason string)
}

// Options of a Relay. SlotName, Open, NewSink, NewMonitor, Translator and Metrics
// are required.
type Options struct {
	SlotName string
	Instance string
	// Open starts a replication session at known, or at the slot's own position
	// when known is zero; then also at what remembered tells, if that is newer and
	// of the same history. The publication must be as expected, if that is not nil.
	Open func(ctx context.Context, known slot.History, remembered func() (slot.History, error), expected *slot.Published) (Stream, error)
	// Initial gives, before the first session, the rows that are to be published
	// before the stream; nil when there are none. May be nil itself.
	Initial func(context.Context) (Initial, error)
	// InitialOnly ends the relay when those rows are delivered.
	InitialOnly bool
	// NewSink makes the sink, which reports settled records to acked.
	NewSink func(acked func([]sink.Ack)) (sink.Sink, error)
	// NewMonitor makes the monitor, which calls broken when the publication or a
	// table is no longer what it was at the start, and shutdown when the server
	// says that it is about to stop.
	NewMonitor func(broken func(error), shutdown func()) Monitor
	// Predecessor says where another tool, which kept no checkpoint of ours, may
	// have left events that come again; nil: nowhere. It is looked at after
	// Initial. May be nil itself.
	Predecessor func() *sink.Since
	// Store keeps the checkpoint; nil is a relay without one.
	Store Store
	// Heartbeat makes a record now and then; nil: none.
	Heartbeat *Heartbeat
	// Translator makes the records.
	Translator route.Translator
	Metrics    Metrics
	// ConfirmNothing leaves the slot where it is, for looking without taking.
	ConfirmNothing bool
	// DrainTimeout bounds a soft stop. Default 20 s.
	DrainTimeout time.Duration
	Log          *zap.Logger
	Now          func() time.Time // default time.Now
}

// Heartbeat is a record that says that the relay is there. It stands for no
// change, and nothing waits for its delivery. It is sent with the next message
// of the server after it is due, which asks for one every few seconds.
type Heartbeat struct {
	Every  time.Duration
	Record func(now time.Time, rec *sink.Record) error
}

// Relay is one slot's relay. Create it with New, then call Run once.
type Relay struct {
	opt      Options
	log      *zap.Logger
	now      func() time.Time
	sink     sink.Sink
	monitor  Monitor
	tracker  *checkpoint.Tracker
	decoder  *decoder.Decoder
	pump     *pump
	recovery *recovery
	status   status
	pulse    pulse

	progress chan struct{} // a token when something was acked or a transaction ended
	stopping chan struct{} // a token when the server is shutting down

	mu        sync.Mutex
	stream    Stream // nil between sessions
	confirmed pglogrepl.LSN
	broken    error // the publication is not what it was: nothing is confirmed

	opened   bool            // rows that come before the stream were found
	begun    bool            // and are delivered
	expected *slot.Published // by the first session; later ones must agree

	received  atomic.Uint64
	published atomic.Uint64
}

// errStopped is the cause of an ordinary end.
var errStopped = errors.New("relay stopped")

// errStreamLost ends a pump that waits for something else than the stream.
var errStreamLost = fmt.Errorf("the connection to PostgreSQL broke: %w", net.ErrClosed)

// ErrDrainIncomplete says that a stop left events undelivered. Nothing is lost:
// they are published at the next start.
var ErrDrainIncomplete = errors.New("stopped before everything was delivered")

// New makes a relay; it connects to nothing yet.
func New(opt Options) (*Relay, error) {
	if opt.DrainTimeout <= 0 {
		opt.DrainTimeout = 20 * time.Second
	}
	if opt.Log == nil {
		opt.Log = zap.NewNop()
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	r := &Relay{
		opt:      opt,
		log:      opt.Log,
		now:      opt.Now,
		tracker:  checkpoint.NewTracker(0),
		decoder:  decoder.New(),
		progress: make(chan struct{}, 1),
		stopping: make(chan struct{}, 1),
	}
	r.pump = newPump(r)
	r.status.init(r.now())
	r.monitor = opt.NewMonitor(r.publicationBroken, r.serverStopping)
	var err error
	if r.sink, err = opt.NewSink(r.acked); err != nil {
		return nil, err
	}
	r.recovery = &recovery{relay: r, store: opt.Store, succeeded: make(chan error, 1), writing: newTurn()}
	r.recovery.sink, _ = r.sink.(recoverer)
	return r, nil
}

// Run relays until intake ends, then drains; hard ends it at once. It returns
// nil after a clean stop. An error is something that retrying does not mend.
func (r *Relay) Run(intake, hard context.Context) error {
	delivery, stop := context.WithCancelCause(hard)
	defer stop(errStopped)
	intake, stopIntake := context.WithCancelCause(intake)
	defer stopIntake(errStopped)

	// Without delivery there is nothing to take in.
	defer context.AfterFunc(delivery, func() { stopIntake(context.Cause(delivery)) })()
	var group errgroup.Group
	group.Go(func() error {
		err := r.sink.Run(delivery)
		if err != nil {
			err = fmt.Errorf("sink: %w", err)
		}
		stop(err)
		return err
	})
	group.Go(func() error {
		if err := r.monitor.Run(delivery); delivery.Err() == nil {
			return err
		}
		return nil
	})
	group.Go(func() error {
		err := r.recovery.run(delivery)
		if err != nil {
			stop(err)
		}
		return err
	})
	err := r.sessions(intake, delivery)
	stop(errStopped)
	if r.opt.Store != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(hard), time.Second)
		defer cancel()
		defer r.opt.Store.Close(closing)
	}
	if groupErr := group.Wait(); groupErr != nil && !errors.Is(groupErr, context.Canceled) {
		err = groupErr
	}
	if cause := context.Cause(delivery); IsFenced(cause) {
		err = cause // whatever the others say of their ends
	}
	r.status.set(r.now(), Stopped, "", nil)
	r.mu.Lock()
	confirmed := r.confirmed
	r.mu.Unlock()
	fields := []zap.Field{zap.Uint64("published", r.published.Load())}
	if confirmed > 0 { // otherwise this run knows of none, and the one before it told
		fields = append(fields, zap.Stringer("confirmed_lsn", confirmed))
	}
	r.log.Info("relay ended", fields...)
	return err
}

// sessions opens one replication session after another until intake ends or an
// error says that this cannot go on.
func (r *Relay) sessions(intake, delivery context.Context) error {
	passing := retry.Backoff{Min: 200 * time.Millisecond, Max: 30 * time.Second}
	permanent := retry.Backoff{Min: 5 * time.Second, Max: 60 * time.Second}
	for intake.Err() == nil {
		mark, began := r.tracker.Mark(), r.now()
		err := r.session(intake, delivery)
		if r.tracker.Mark() > mark || r.now().Sub(began) > time.Minute {
			// Only a session that got somewhere: one that fails at its first message
			// would be repeated without end.
			passing.Reset()
			permanent.Reset()
		}
		if err == nil && r.begun && r.opt.InitialOnly {
			return nil
		}
		if intake.Err() != nil || delivery.Err() != nil {
			if NeedsDecision(err) || IsFenced(err) || errors.Is(err, ErrDrainIncomplete) {
				return err
			}
			return r.undelivered() // else a stream that ends with us is nothing to complain of
		}
		if broken := r.publicationError(); broken != nil {
			err = broken // which is why the stream was closed
		}
		kind := classify(err)
		if r.expected == nil && !r.opened && kind.setup {
			return &SetupError{err} // nothing has begun: say so to whoever starts us
		}
		waiting := r.status.is(WaitingForSlot)
		r.status.set(r.now(), kind.state, kind.reason, err)
		var wait time.Duration
		switch kind.action {
		case giveUp, yield:
			return err
		case waitForSlot:
			r.recovery.lost = true
			if !waiting {
				r.log.Info("waiting for the slot", zap.Error(err))
			}
			wait = time.Second
		case hold:
			wait = permanent.Next()
			r.log.Error("holding", zap.String("reason", kind.reason), zap.Error(err), zap.String("hint", hint(err)), zap.Duration("retry_in", wait))
		default:
			wait = passing.Next()
			r.log.Warn("no replication stream", zap.String("reason", kind.reason), zap.Error(err), zap.String("hint", hint(err)), zap.Duration("retry_in", wait))
		}
		if retry.Wait(intake, wait) != nil {
			break
		}
	}
	return r.undelivered()
}

// undelivered is ErrDrainIncomplete if anything is in flight or was delivered in
// part. The pump must have ended.
func (r *Relay) undelivered() error {
	_, events, _ := r.tracker.Pending()
	if events > 0 || r.pump.partial() {
		return fmt.Errorf("%w: %d events are pending; they are published at the next start", ErrDrainIncomplete, events)
	}
	return nil
}

// session runs one replication session until it fails or intake ends; then it
// drains. It returns nil only after a clean drain.
func (r *Relay) session(intake, delivery context.Context) error {
	if err := r.publicationError(); err != nil {
		return err
	}
	if over, err := r.initial(intake, delivery); over || err != nil {
		return err
	}
	loading := r.recovery.loading(intake)
	defer loading.end()
	if err := failpoint.Fail("relay.before-open"); err != nil {
		return err
	}
	stream, err := r.opt.Open(intake, r.known(), loading.history, r.expected)
	if err != nil {
		r.opt.Metrics.StreamConnect("error")
		return err
	}
	left, err := loading.checkpoint()
	if err != nil {
		stream.Abort()
		return err
	}
	r.opt.Metrics.StreamConnect("ok")
	r.begin(stream)
	defer r.end(stream)
	if err := failpoint.Fail("relay.after-open"); err != nil {
		stream.Abort()
		return err
	}
	r.log.Info("streaming", zap.String("slot", r.opt.SlotName), zap.Stringer("lsn", stream.History().LSN),
		zap.String("system_id", stream.History().SystemID), zap.Int32("timeline", stream.History().Timeline))

	pumping, stopPump := context.WithCancelCause(delivery)
	defer stopPump(errStopped)
	ended := make(chan error, 1)
	go func() { ended <- r.pump.run(intake, pumping, stream, left) }()
	lost := stream.Done()
	for {
		select {
		case <-lost:
			// A pump that is blocked would not notice until it has room again, and
			// the next session, which has to find out why, would have to wait.
			stopPump(errStreamLost)
			lost = nil
		case err := <-ended:
			stream.Abort()
			reason := classify(err).reason
			if delivery.Err() != nil && !IsFenced(err) {
				reason = "stopped" // by us; the error is no fault of either server
			}
			r.opt.Metrics.StreamDisconnect(reason)
			return err
		case <-r.stopping:
			// A pump that is blocked reads nothing, so the server could not send
			// what it must before it may stop, or end the stream.
			if r.pump.blocked.Load() {
				r.log.Info("the server is stopping or ends the stream, closing it")
				stream.Abort()
			}
		case <-intake.Done():
			r.status.set(r.now(), Draining, "", nil)
			complete := r.drain(delivery, stream)
			if complete {
				failpoint.Hit("relay.drained")
				closing, cancel := context.WithTimeout(context.WithoutCancel(intake), 2*time.Second)
				if err := r.recovery.save(closing); err != nil {
					r.log.Warn("checkpoint not written", zap.Error(err))
				}
				failpoint.Hit("relay.before-close")
				if err := stream.Close(closing); err != nil {
					r.log.Warn("replication stream not closed in good order", zap.Error(err))
				}
				cancel()
			}
			stopPump(errStopped) // it may wait for room in the sink for ever
			stream.Abort()
			<-ended
			if err := r.undelivered(); err != nil || complete {
				return err
			}
			return fmt.Errorf("%w: the last position could not be confirmed", ErrDrainIncomplete)
		}
	}
}

// known is where the next session must start: at the mark, because the server
// may have fallen behind it in a crash. Zero before the first session.
func (r *Relay) known() slot.History {
	h := r.status.history()
	if h.SystemID != "" {
		h.LSN = r.tracker.Mark()
		h.Reach = r.pump.reach
	}
	return h
}

func (r *Relay) begin(stream Stream) {
	h := stream.History()
	r.decoder.Reset()
	if r.expected == nil {
		r.expected = stream.Published()
		r.monitor.Expect(r.expected)
	}
	r.pump.reconnected(h.LSN, stream.Published())
	r.tracker.Idle(h.LSN)
	r.mu.Lock()
	r.stream = stream
	r.mu.Unlock()
	r.status.connected(r.now(), h)
	select {
	case <-r.stopping: // it was said of the server as it was before
	default:
	}
	r.confirm()
	if r.publicationError() != nil {
		stream.Abort() // it was found broken before there was a stream to end
	}
}

func (r *Relay) end(stream Stream) {
	r.mu.Lock()
	_, r.confirmed, _ = stream.Positions()
	r.stream = nil
	r.mu.Unlock()
	r.status.disconnected()
}

// confirm passes the mark on to PostgreSQL.
func (r *Relay) confirm() {
	failpoint.Hit("relay.before-confirm")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stream != nil && r.broken == nil && !r.opt.ConfirmNothing {
		r.stream.Confirm(r.tracker.Mark())
		failpoint.Hit("relay.after-confirm")
	}
}

// acked is called by the sink's senders.
func (r *Relay) acked(acks []sink.Ack) {
	failpoint.Hit("relay.before-acked")
	now := r.status.serverNow(r.now())
	moved := false
	var newest time.Time
	for _, a := range acks {
		if a.Tx == 0 {
			continue // a heartbeat
		}
		if a.Replay {
			_, m := r.tracker.Done(a.Tx, a.N)
			moved = moved || m
			r.status.ignoreN("already_in_kafka", a.N)
			r.opt.Metrics.EventIgnored("already_in_kafka", a.N)
			failpoint.Hit("relay.already-there")
			continue
		}
		commit, m := r.tracker.Done(a.Tx, a.N)
		moved = moved || m
		r.opt.Metrics.EventsAcked(a.Topic, a.N, max(now.Sub(commit), 0))
		r.published.Add(uint64(a.N))
		if commit.After(newest) {
			newest = commit
		}
	}
	r.status.acked(r.now(), newest)
	if _, events, _ := r.tracker.Pending(); events == 0 && now.Sub(newest) < behind {
		r.status.caughtUp(r.now())
	}
	if moved {
		r.confirm()
	}
	r.signal()
	failpoint.Hit("relay.after-acked")
}

func (r *Relay) signal() {
	select {
	case r.progress <- struct{}{}:
	default:
	}
}

// drain waits until the transaction under way is complete and nothing is
// pending; the pump does not begin another one after intake has ended. It
// reports false when that is not to be reached.
func (r *Relay) drain(delivery context.Context, stream Stream) (complete bool) {
	deadline, cancel := context.WithTimeout(delivery, r.opt.DrainTimeout)
	defer cancel()
	for {
		open := r.pump.open.Load() // first: once it is closed, nothing is added any more
		if _, events, _ := r.tracker.Pending(); events == 0 && !open {
			r.confirm()
			return true
		}
		select {
		case <-r.progress:
		case <-r.stopping: // the server waits for our stream to end
			return false
		case <-stream.Done():
			return false
		case <-deadline.Done():
			return false
		}
	}
}

func (r *Relay) serverStopping() {
	select {
	case r.stopping <- struct{}{}:
	default:
	}
}

// publicationBroken is called by the monitor. From here on nothing is confirmed:
// rows may be missing from the stream without a trace, and as long as the slot
// stays where it is they can be found.
func (r *Relay) publicationBroken(err error) {
	r.mu.Lock()
	first := r.broken == nil
	r.broken = err
	stream := r.stream
	r.mu.Unlock()
	if first {
		r.log.Error("publication broken, nothing is confirmed any more", zap.Error(err))
	}
	if stream != nil {
		stream.Abort()
	}
}

func (r *Relay) publicationError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}
