// Package topic creates, deletes and reads back Kafka topics for tests, for the
// demo and for benchmarks.
//
// Create returns when every given broker knows a leader of every partition, so
// that the first use does not meet "unknown topic". Read returns every record
// between the start and the high watermark at the time of the call: it steps
// over control batches and over the holes of compaction, and goes on through
// leader changes until its context ends. Records of aborted transactions are
// included.
//
// It speaks plaintext only; test clusters have such a listener.
package topic
