// Package socket makes the reads and writes of a connection cheaper where they
// are many and small.
//
// A system call of package net tells Go's scheduler that it may block. When the
// process was asleep, which at a thousand events a second it is between any two
// of them, that wakes the scheduler's watchdog thread, which then looks around
// every 20 µs until all is quiet again: half of what the relay spent was that.
// The sockets are non-blocking, so their calls never block, and nobody has to be
// told. Waiting for data is left to the runtime's poller as always.
//
// What arrives in small pieces also wakes the process for each of them: PostgreSQL
// sends begin, row and commit by themselves, and Kafka's answers come in between.
// ReadTogether is about that.
//
// Guarantee: a wrapped connection behaves as before: deadlines, Close, half a
// write, the errors and what they wrap. On systems other than Linux, and for
// connections that have no socket of their own, Wrap returns what it was given.
package socket
