// Package outboxtest helps to test services that write and consume events.
//
// DB gives each test a schema of its own with all tables in it, on the server
// that OUTBOXTEST_DSN names. RequireWritten and RequireNothingWritten look into
// the outbox, also inside of a transaction that is not committed. Messages gives
// what is in the outbox as a consumer receives it, so that writer and consumer can
// be tested together without a broker.
//
// Storm is the drill as a unit test: it delivers events as a bad day does, every
// event twice and two copies at once, neighbours swapped, the process killed
// between the handler's work and its commit, and everything once more from the
// start; and then the test's own check runs. A handler whose work is not all in
// its transaction fails it.
//
// The package is for tests only and imports testing. It starts no server.
package outboxtest
