package failpoint

// Point is a place in the product.
type Point struct {
	Name  string
	Reach Reach
	Fails bool // Fail is called there, not Hit
}

// Reach says what makes a process come to a point.
type Reach uint8

// Values of Reach.
const (
	Running      Reach = iota // it relays
	Recovering                // a predecessor was killed, and events of it are in Kafka
	Stopping                  // it is told to stop
	Snapshotting              // rows come before the stream
)

// Points is the registry: every point of the product, by what happens there.
func Points() []Point {
	return []Point{
		// A session begins.
		{"relay.before-open", Running, true},       // nothing is asked of the server yet
		{"relay.after-open", Running, true},        // the slot is ours, nothing is read
		{"checkpoint.before-claim", Running, true}, // whose the checkpoint is
		{"checkpoint.after-claim", Running, true},  // ours, and nobody knows
		{"sink.fence-begun", Recovering, true},     // the transactional id is ours
		{"sink.fence-added", Recovering, true},     // the transaction has its partitions
		{"sink.fence-ended", Recovering, true},     // its markers are being written
		{"sink.fence-done", Recovering, true},      // older epochs are shut out
		{"sink.in-tail", Recovering, true},         // between two records of a tail
		{"relay.recovered", Running, false},        // the tails are known, nothing is read
		{"relay.already-there", Recovering, false}, // an event was acked without being sent
		{"relay.replay-over", Recovering, false},   // nothing comes again from here on

		// Rows come before the stream.
		{"relay.before-slot", Snapshotting, true}, // all are delivered, there is no slot
		{"relay.after-slot", Snapshotting, false}, // there is, and nothing else says so

		// Events flow.
		{"sink.before-register", Running, true},  // new partitions, not durable yet
		{"sink.after-register", Running, true},   // durable, nothing written there
		{"relay.in-transaction", Running, false}, // an event was handed over
		{"relay.before-seal", Running, false},    // the commit has come
		{"sink.before-send", Running, true},      // the request is built
		{"sink.after-send", Running, true},       // Kafka has it; its answer is lost if this fails
		{"sink.before-settle", Running, false},   // the answer is read
		{"sink.after-settle", Running, false},    // the lanes go on, the relay does not know
		{"relay.before-acked", Running, false},
		{"relay.after-acked", Running, false},

		// The mark moves.
		{"relay.before-confirm", Running, false},
		{"relay.after-confirm", Running, false}, // the stream may tell the server
		{"slot.before-status", Running, true},
		{"slot.after-status", Running, true}, // the server was told
		{"checkpoint.before-save", Running, true},
		{"checkpoint.after-save", Running, true}, // durable; the relay does not know if this fails

		// It ends in good order.
		{"relay.drained", Stopping, false},        // all is delivered, nothing of it is saved
		{"relay.before-close", Stopping, false},   // the checkpoint has it, the slot may not
		{"slot.before-copy-done", Stopping, true}, // the last status is written
	}
}
