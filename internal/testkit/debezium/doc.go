// Package debezium starts a real Debezium PostgreSQL connector in a Kafka Connect
// standalone worker: for tests that compare walpost with what it replaces, and
// for benchmarks.
//
// The jars come from Maven by the pom of this package, or from a folder that the
// caller names. A worker is a JVM with one connector; its configuration, log and
// offsets are in one folder, so that StartAgain after Kill or Stop goes on where
// the offsets say. It ends with its owner, also when that is killed.
//
// Guarantee: except for converters, addresses and file names, which have no
// defaults, everything not in Options is Debezium's and Connect's own default.
// In particular the worker saves offsets, and with them confirms the slot, once
// a minute (offset.flush.interval.ms).
//
// A worker that runs says nothing about its task: AwaitStreaming does. The slot,
// publication and topics are the caller's affair or the connector's.
package debezium
