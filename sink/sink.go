package sink

import (
	"context"
	"time"
)

// ByKey as a Record's Partition means: the partition that the Java client's
// default partitioner chooses for the key. A record without a key goes where
// the empty key goes, so that all keyless records of a topic keep their order.
const ByKey int32 = -1

// Tag is the caller's name for a record; it comes back in the Ack.
type Tag struct {
	Tx      uint32 // the transaction, as the caller names it
	Source  uint32 // the table
	Ordinal uint32 // the position inside the transaction
	// Commit orders transactions: it never decreases from Submit to Submit.
	Commit uint64
}

// Header of a record. A nil Value is Kafka's null.
type Header struct {
	Name  string
	Value []byte
}

// Record is what is to be delivered. Submit copies it: the caller may reuse
// every slice as soon as Submit has returned.
type Record struct {
	Topic     string
	Partition int32 // ByKey, or a fixed partition
	Key       []byte
	Value     []byte // nil is a tombstone
	Headers   []Header
	Time      time.Time // record timestamp, sent as milliseconds
	Tag       Tag
}

// Ack says that N records of transaction Tx are settled: all in-sync replicas
// have them.
type Ack struct {
	Tx    uint32
	N     int
	Topic string
	// Replay says that they were there before: a predecessor had sent them.
	Replay bool
}

// Sink delivers records and keeps the order of Submit per partition.
//
// Delivery is at-least-once within the sink's life: a record is acked exactly
// once, after it is durable, or never. A sink does not drop, and it does not
// give up on a passing fault; what it cannot deliver it holds, with everything
// behind it in that partition, and Status says why.
type Sink interface {
	// Run delivers until ctx ends and returns nil then; any other error is
	// fatal (another relay of the same slot fenced this one, an invariant broke). Run is
	// called once. When it has returned, the only acks that still come are those
	// that Submit makes itself, of what is in Kafka already.
	Run(ctx context.Context) error
	// Submit hands over one record. It blocks while the sink holds as many
	// bytes as it may, which is the relay's back-pressure, and returns early
	// only with ctx's error. One goroutine calls it.
	Submit(ctx context.Context, r *Record) error
	// Status is a snapshot for people and probes; safe for concurrent use.
	Status() Status
}

// Class is what can be done about a failed delivery.
type Class uint8

// The failure classes of docs and metrics.
const (
	Passing   Class = iota + 1 // retried for ever
	Poison                     // this record can never be accepted
	Permanent                  // needs a change of configuration or rights
	Unknown                    // unclassified; treated as permanent
	Fenced                     // another producer took over: stop
)

func (c Class) String() string {
	switch c {
	case Passing:
		return "passing"
	case Poison:
		return "poison"
	case Permanent:
		return "permanent"
	case Fenced:
		return "fenced"
	default:
		return "unknown"
	}
}

// Status of a sink.
type Status struct {
	InFlightRecords    int
	InFlightBytes      int64
	InFlightPartitions int
	LimitBytes         int64
	LastAck            time.Time // zero before the first
	LastContact        time.Time // last answer of any broker; zero before the first
	Beat               time.Time // last turn of the sink's own loop: it is alive
	Holds              []Hold    // worst first, at most MaxHolds; HoldCount has them all
	HoldCount          int
	Records            uint64 // acked so far
	Protection         Protection
}

// MaxHolds bounds the list in Status.
const MaxHolds = 20

// Hold is a partition (or a whole topic, Partition -1) that does not move.
type Hold struct {
	Topic     string
	Partition int32
	Class     Class
	Reason    string // short and stable: a Kafka error name, "connection", …
	Err       error  // the last error, with what to do in its text
	Since     time.Time
	Attempts  int
	Poison    *Record // the record in the way without its value, when Class is Poison
}

// Observer receives counts as they happen; the methods must be quick and safe
// for concurrent use. A nil Observer is allowed in Options.
type Observer interface {
	ProduceDone(took time.Duration)                      // one request and its answer
	BatchAcked(topic string, records int, bytes int)     // one batch settled
	BatchFailed(class Class, reason string, records int) // one batch attempt failed
	BatchRetried(reason string)                          // an attempt after the first
	BrokerDuplicate()                                    // the broker already had the batch
	SequenceLost()                                       // an unexplained sequence error: epoch bumped
	AlreadyThere(records int)                            // found in Kafka at the start, not sent again
}

// nobody is an Observer.
type nobody struct{}

func (nobody) ProduceDone(time.Duration)      {}
func (nobody) BatchAcked(string, int, int)    {}
func (nobody) BatchFailed(Class, string, int) {}
func (nobody) BatchRetried(string)            {}
func (nobody) BrokerDuplicate()               {}
func (nobody) SequenceLost()                  {}
func (nobody) AlreadyThere(int)               {}
