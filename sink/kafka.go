package sink

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// Options of a Kafka sink. The zero value of a field is its default.
type Options struct {
	Brokers  []string // host:port, required
	ClientID string
	Security Security

	// Compression is none, gzip, snappy, lz4 or zstd; default none.
	Compression string
	// LimitBytes bounds the memory of all records in flight; Submit blocks above
	// it. Records above 1 MiB have as much again to themselves. Default 6 MiB.
	LimitBytes int64
	// MaxBatchBytes bounds a partition's batch before compression; a larger
	// record goes alone. Default 1,000,000, just below Kafka's own default.
	MaxBatchBytes int
	// MaxRequestBytes bounds the batches of one request. Default 1,000,000.
	MaxRequestBytes int
	// RequestTimeout bounds one produce request on this side; the broker is told
	// four fifths of it. Default 10 s.
	RequestTimeout time.Duration
	Topics         TopicPolicy
	// AwaitRecovery makes the sink send nothing before Recover was called.
	AwaitRecovery bool

	// Acked is told of settled records, from several goroutines. The slice is
	// the sink's again when the call returns. Required.
	Acked    func([]Ack)
	Observer Observer
	Log      *zap.Logger
	// Dial replaces the dialer, for tests that put a fault in the way.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// TopicPolicy says what happens when a topic does not exist.
type TopicPolicy struct {
	// Create makes missing topics. Otherwise the records of a missing topic
	// wait until somebody makes it.
	Create bool
	// Ask lets a broker with auto.create.topics.enable make them, as it does for
	// Kafka's Java client.
	Ask               bool
	Partitions        int // 0: the broker's default
	ReplicationFactor int // 0: the broker's default
	Configs           map[string]string
}

// Kafka delivers to a Kafka cluster with acks=all and idempotent batches.
// Nothing weaker can be configured.
//
// Every partition is a lane with at most one unsettled batch. Each broker has
// senders that carry many lanes in one request. Whatever a lane receives while
// its batch is under way goes with the next one, so batches grow with load and
// no record waits for others.
type Kafka struct {
	opt       Options
	log       *zap.Logger
	observer  Observer
	timing    timing
	client    *kafka.Client    // of Kafka as it is now
	transport *kafka.Transport // the library's own
	group     *errgroup.Group

	room    chan struct{} // a token when Submit may try again
	refresh chan struct{} // a token asks for fresh metadata
	wake    chan struct{} // a token tells the retry loop of a new due time

	mu       sync.Mutex
	pool     pool
	full     bool // Submit waits for room
	topics   map[string]*topic
	ahead    ahead
	brokers  map[int32]*broker
	producer producer // unknown until the cluster gave one
	delayed  []*lane
	held     map[*lane]struct{}   // lanes with a hold
	said     map[string]time.Time // when a kind of message was last logged aloud
	outage   *Hold                // no broker answers, or none lets us in

	// Since Recover:
	transactional string                                           // the id; empty: none
	read          map[Partition]int64                              // ends of the partitions when they were read
	replayed      uint64                                           // Tag.Commit from which on nothing was there before; 0: not reached
	known         map[eventID]struct{}                             // in Kafka already, and not come again yet
	register      func(context.Context, map[Partition]int64) error // nil: not wanted
	registered    map[Partition]bool                               // durable at the successor's disposal
	moved         map[*lane]struct{}                               // acked since the last Progress
	found         []Ack                                            // of waiting records that are there already
	protection    Protection
	bump          bool          // a lane waits for a higher epoch
	session       chan struct{} // a token asks for it
	idless        *Hold         // the cluster gives no producer id
	unregistered  *Hold         // new partitions cannot be made durable
	closed        bool
	over          atomic.Bool // Run has returned

	records    int // queued or under way
	lanes      int // that have records
	acked      uint64
	lastAck    time.Time
	contact    time.Time
	beat       time.Time
	topicHolds int
}

// New checks the options and connects to nothing yet.
func New(opt Options) (*Kafka, error) {
	if len(opt.Brokers) == 0 {
		return nil, errors.New("at least one broker is required")
	}
	if opt.Acked == nil {
		return nil, errors.New("sink: Acked is required")
	}
	if opt.LimitBytes == 0 {
		opt.LimitBytes = 6 << 20
	}
	if opt.MaxBatchBytes == 0 {
		opt.MaxBatchBytes = 1_000_000
	}
	if opt.MaxRequestBytes == 0 {
		opt.MaxRequestBytes = 1_000_000
	}
	if opt.RequestTimeout == 0 {
		opt.RequestTimeout = 10 * time.Second
	}
	if opt.Log == nil {
		opt.Log = zap.NewNop()
	}
	if opt.Observer == nil {
		opt.Observer = nobody{}
	}
	if _, err := newEncoder(opt.Compression); err != nil {
		return nil, err
	}
	transport, err := opt.Security.transport()
	if err != nil {
		return nil, err
	}
	transport.ClientID = opt.ClientID
	transport.Dial = dialer(opt.Dial)
	transport.DialTimeout = min(5*time.Second, opt.RequestTimeout)
	transport.MetadataTTL = 5 * time.Second
	transport.MetadataTopics = []string{} // none; nil would be all
	return &Kafka{
		opt:       opt,
		log:       opt.Log,
		observer:  opt.Observer,
		timing:    usualTiming(),
		transport: transport,
		client:    &kafka.Client{Addr: kafka.TCP(opt.Brokers...), Transport: direct{transport}},
		room:      make(chan struct{}, 1),
		refresh:   make(chan struct{}, 1),
		wake:      make(chan struct{}, 1),
		topics:    make(map[string]*topic),
		ahead:     newAhead(),
		brokers:   make(map[int32]*broker),
		held:      make(map[*lane]struct{}),
		moved:     make(map[*lane]struct{}),
		session:   make(chan struct{}, 1),
		said:      make(map[string]time.Time),
	}, nil
}

// String names the brokers; it holds no credentials.
func (k *Kafka) String() string { return "kafka " + strings.Join(k.opt.Brokers, ",") }

// Run implements Sink.
func (k *Kafka) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	k.group = group
	stop := context.AfterFunc(ctx, k.close)
	defer stop()
	group.Go(func() error { return k.watchMetadata(ctx) })
	group.Go(func() error { return k.retryLoop(ctx) })
	group.Go(func() error { return k.sessions(ctx) })
	group.Go(func() error { return k.registerAdmitted(ctx) })
	err := group.Wait()
	k.over.Store(true)
	k.transport.CloseIdleConnections()
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// disconnect is for deferring by what asks Kafka beside Run: a request that comes
// after Run has ended makes connections that nobody else closes.
func (k *Kafka) disconnect() {
	if k.over.Load() {
		k.transport.CloseIdleConnections()
	}
}

// close wakes the senders so that they see that it is over.
func (k *Kafka) close() {
	k.mu.Lock()
	k.closed = true
	k.wakeSenders()
	k.mu.Unlock()
}

func (k *Kafka) wakeSenders() {
	for _, b := range k.brokers {
		b.mayTake.Broadcast()
		b.mayTakeTroubled.Broadcast()
	}
}

// Submit implements Sink.
func (k *Kafka) Submit(ctx context.Context, r *Record) error {
	body := bodySize(r)
	k.mu.Lock()
	for {
		q, l := k.place(r)
		if need := q.cost(body); need == 0 || k.pool.charged(need, k.opt.LimitBytes) <= k.opt.LimitBytes || k.records == 0 {
			if l != nil && len(k.known) > 0 && k.alreadyThere(l, r) {
				k.mu.Unlock()
				k.observer.AlreadyThere(1)
				k.opt.Acked([]Ack{{Tx: r.Tag.Tx, N: 1, Topic: r.Topic, Replay: true}})
				return nil
			}
			if k.records++; q.count == 0 {
				k.lanes++
			}
			q.append(&k.pool, r, body)
			switch {
			case l == nil:
			case l.orphan && l.hold == nil:
				k.holdOrphan(l)
			default:
				k.offer(l)
			}
			k.mu.Unlock()
			return nil
		}
		k.full = true
		k.mu.Unlock()
		select {
		case <-k.room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		k.mu.Lock()
	}
}

// place finds the queue for a record: its lane's, or its topic's when the
// topic's partitions are not known at the moment.
func (k *Kafka) place(r *Record) (*queue, *lane) {
	t := k.topics[r.Topic]
	if t == nil {
		t = &topic{name: r.Topic}
		k.topics[r.Topic] = t
		k.askMetadata()
	}
	if len(t.lanes) == 0 || t.reshaping {
		return &t.waiting, nil
	}
	l := t.lane(r.Partition, r.Key)
	return &l.queue, l
}

// freed wakes Submit when it waits for memory.
func (k *Kafka) freed() {
	if k.full && k.pool.charged(0, k.opt.LimitBytes) < k.opt.LimitBytes {
		k.full = false
		select {
		case k.room <- struct{}{}:
		default:
		}
	}
}

// Status implements Sink.
func (k *Kafka) Status() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := Status{
		InFlightRecords:    k.records,
		InFlightBytes:      k.pool.used,
		InFlightPartitions: k.lanes,
		LimitBytes:         k.opt.LimitBytes,
		LastAck:            k.lastAck,
		LastContact:        k.contact,
		Beat:               k.beat,
		Records:            k.acked,
		Protection:         k.protection,
	}
	if k.outage != nil {
		s.Holds = append(s.Holds, *k.outage)
	} else if k.idless != nil {
		s.Holds = append(s.Holds, *k.idless)
	} else if k.unregistered != nil {
		s.Holds = append(s.Holds, *k.unregistered)
	}
	if k.topicHolds > 0 {
		for _, t := range k.topics {
			if t.hold != nil {
				s.Holds = append(s.Holds, *t.hold)
			}
		}
	}
	for l := range k.held {
		s.Holds = append(s.Holds, *l.hold)
	}
	s.HoldCount = len(s.Holds)
	sort.Slice(s.Holds, func(i, j int) bool {
		a, b := &s.Holds[i], &s.Holds[j]
		return cmp.Or(
			cmp.Compare(b.Class, a.Class),
			a.Since.Compare(b.Since),
			cmp.Compare(a.Topic, b.Topic),
			cmp.Compare(a.Partition, b.Partition),
		) < 0
	})
	if len(s.Holds) > MaxHolds {
		s.Holds = s.Holds[:MaxHolds]
	}
	return s
}

// sessions gets the producer id under which all batches are written, unless
// Recover does, and a higher epoch when a lane needs one.
func (k *Kafka) sessions(ctx context.Context) error {
	if !k.opt.AwaitRecovery {
		session, err := (&fence{k: k}).plain(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		k.mu.Lock()
		k.producer = session
		k.wakeSenders()
		k.mu.Unlock()
		k.log.Info("producer ready", zap.Int64("producer_id", session.id))
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.session:
		}
		k.mu.Lock()
		own, f := k.producer, &fence{k: k, id: k.transactional}
		k.mu.Unlock()
		next, err := f.init(ctx, own)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		k.mu.Lock()
		k.producer, k.bump = next, false
		k.wakeSenders()
		k.mu.Unlock()
	}
}

// youngBroker is how many attempts a coordinator gets to load before it is worth
// a word.
const youngBroker = 12

// reached notes that the cluster answers.
func (k *Kafka) reached() {
	k.contact = time.Now()
	if k.outage != nil {
		k.log.Info("kafka answers again", zap.Duration("after", time.Since(k.outage.Since)))
		k.outage = nil
	}
}

// unreached notes that the cluster as a whole does not serve us.
func (k *Kafka) unreached(hold **Hold, v verdict, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := *hold
	if h == nil {
		h = &Hold{Partition: -1, Since: time.Now()}
		*hold = h
	}
	if h.Reason != v.reason {
		k.log.Warn("kafka does not serve us", zap.String("reason", v.reason), zap.Error(err), zap.String("hint", v.way))
	}
	h.Class, h.Reason = v.class, v.reason
	h.Attempts++
	h.Err = failure("", -1, v, err.Error())
}
