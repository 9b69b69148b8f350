// Wrong is a small outbox relay that is right without flags, at least once, and
// wrong in a well-known way with one of them: for testing the conformance kit.
// It takes its environment from the kit and never asks Kafka what is there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/segmentio/kafka-go"
)

// faults are what can be wrong.
type faults struct {
	loses     int  // drops each n-th event
	repeats   int  // sends each n-th event twice
	disorders bool // swaps neighbours
	phantom   bool // sends a record that nobody wrote
	commitLSN bool // confirms where the commit record starts
	keepalive bool // confirms keepalives while events are in flight
	walStart  bool // confirms WALStart + len
	maxAck    bool // confirms the newest transaction that is acked
	quiet     bool // confirms no keepalive at all, and only repeats itself
	rowLSN    bool // remembers the LSN of the last row acked, and skips up to it
}

func main() {
	var f faults
	flag.IntVar(&f.loses, "loses", 0, "drop each `n`-th event")
	flag.IntVar(&f.repeats, "repeats", 0, "send each `n`-th event twice")
	flag.BoolVar(&f.disorders, "disorders", false, "swap the rows of a transaction")
	flag.BoolVar(&f.phantom, "phantom", false, "send a record that nobody wrote, at each start")
	flag.BoolVar(&f.commitLSN, "commit-lsn", false, "confirm the commit LSN, not the end LSN")
	flag.BoolVar(&f.keepalive, "keepalive", false, "confirm a keepalive whatever is in flight")
	flag.BoolVar(&f.walStart, "walstart-len", false, "confirm WALStart + len of acked rows")
	flag.BoolVar(&f.maxAck, "max-ack", false, "confirm the newest acked transaction, not the low-water mark")
	flag.BoolVar(&f.quiet, "quiet", false, "never confirm a keepalive")
	flag.BoolVar(&f.rowLSN, "row-lsn", false, "skip rows up to the LSN of the last acked one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := run(ctx, f)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "wrong:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, f faults) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &relay{
		faults: f, lanes: map[string]chan delivery{},
		state: filepath.Join(os.Getenv("OUTBOX_STATE_DIR"), "row-lsn"),
	}
	defer r.tasks.Wait()
	defer cancel(nil)
	if f.rowLSN {
		r.readState()
	}
	return r.stream(ctx)
}

// delivery is a record on its way, and what to do when it has come.
type delivery struct {
	message kafka.Message
	done    func()
}

// relay ties stream, lanes and tracker together.
type relay struct {
	faults faults
	state  string // file of the fault rowLSN
	tasks  sync.WaitGroup
	lanes  map[string]chan delivery

	tracker tracker

	// Of the goroutine that reads the stream:
	tx     *transaction
	events int
	held   func() // sends the neighbour (disorders)
	skip   uint64 // rows up to this LSN are skipped (rowLSN)

	mu    sync.Mutex
	saved uint64 // what the file has
}

// submit hands a record to the lane of its topic, which sends one after the
// other.
func (r *relay) submit(ctx context.Context, m kafka.Message, done func()) {
	lane, ok := r.lanes[m.Topic]
	if !ok {
		lane = make(chan delivery, 1<<16) // closed never: it ends with ctx
		r.lanes[m.Topic] = lane
		r.tasks.Go(func() { deliver(ctx, lane) })
	}
	lane <- delivery{m, done}
}

// maxBatch is how many records are sent at once.
const maxBatch = 500

func deliver(ctx context.Context, lane <-chan delivery) {
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	writer := &kafka.Writer{
		Addr: kafka.TCP(strings.Split(os.Getenv("KAFKA_BOOTSTRAP"), ",")...), Transport: transport,
		RequiredAcks: kafka.RequireAll, BatchSize: maxBatch, BatchTimeout: 1, MaxAttempts: 1,
	}
	defer writer.Close()
	for {
		var batch []delivery
		select {
		case d := <-lane:
			batch = append(batch, d)
		case <-ctx.Done():
			return
		}
		for more := true; more && len(batch) < maxBatch; {
			select {
			case d := <-lane:
				batch = append(batch, d)
			default:
				more = false
			}
		}
		messages := make([]kafka.Message, len(batch))
		for i := range batch {
			messages[i] = batch[i].message
		}
		for writer.WriteMessages(ctx, messages...) != nil {
			if ctx.Err() != nil {
				return
			}
		}
		for _, d := range batch {
			d.done()
		}
	}
}
