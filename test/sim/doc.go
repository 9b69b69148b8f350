// Package sim plays thousands of fault schedules against the real relay in the
// seconds of a test run: the relay of internal/relay with the sink and the
// tracker that are shipped, between a PostgreSQL and a Kafka that exist in memory
// only, in the virtual time of testing/synctest.
//
//	go test ./test/sim                                          # what CI runs
//	go test ./test/sim -run Schedules -sim.schedules 50000      # more of it
//	go test ./test/sim -run Schedules -sim.seed 7 -sim.schedules 1 -v
//
// # What is real and what is not
//
// PostgreSQL is simulated behind relay.Stream, relay.Store and relay.Monitor
// (postgres.go, session.go, store.go, wal.go): committed transactions in a WAL,
// as pgoutput messages; a slot whose position is saved now and then and goes back
// in a crash; a walsender that begins at the newer of the slot's position and the
// one asked for, sends keepalives also inside transactions and with older
// positions first, and whose fast shutdown waits for the client; checkpoint
// tables that are durable when a statement has ended, and that one owner at a
// time may write.
//
// Kafka is simulated below the sink's dialer (cluster.go, broker.go, produce.go,
// partition.go, coordinator.go): brokers that speak the wire protocol, so the
// client library and its connection pool are real. A partition keeps producer
// epochs and the last five batches of each, as was measured at a real broker.
// Taking a transactional id over fences nobody by itself, the markers of the
// empty transaction do, and they come after its answer; what is above the high
// watermark may be lost with the leader. The fake broker of franz-go was not used:
// it fences at once and knows no markers under way and no replication, so that
// the relay's own fence would never be put to the test.
//
// # What is checked
//
// All the time: nothing is confirmed, saved as a position or used as a start
// before every event that commits below it is in Kafka where no leader change can
// lose it (I1); no position that the server did not send, or that lies beyond its
// WAL (I4); no start of a commit record; acks=all and a producer id in every
// batch; a fast shutdown does not wait for a relay that can be heard. In the end,
// when the faults are over: everything delivered and confirmed, also what others
// wrote meanwhile (I4); nothing that was not committed; the same key, topic and
// bytes in every copy (I8); first copies of a key in commit order, also when the
// topic grew (I2); and no second copies, unless the plan takes one of the
// protections away (the store, its tables, the right to the transactional id, the
// right to read).
//
// # What a seed decides
//
// A plan is drawn from a seed and from nothing else: transactions, faults, their
// times, sizes and protections. Faults act by time and by kind of request, never
// by a draw per request. So the same seed gives the same plan on every machine.
// The run of a plan is not the same to the byte: virtual time makes the clock
// exact, but which of two goroutines goes first in the same instant, the choices
// of select and of map iteration, and the jitter of back-offs are Go's. Most seeds
// that fail do so every time; some need a few tries, which is why the shrinker
// tries each smaller plan several times. A failing seed is printed with the
// smallest plan that breaks the same rule, and with the history of the event. A
// panic of the product, or a hang, ends the test binary without a word about the
// seed; -sim.say names each before it is played.
//
// # What it does not do
//
// It does not run package slot's protocol code, checkpoint.Store's SQL, TLS or
// SASL, and it believes its own model of the servers: test/chaos does the same
// with real ones.
package sim
