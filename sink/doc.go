// Package sink delivers records: to Kafka, or to a stream of JSON lines for
// trying things out.
//
// Its promise is the Sink interface's: per partition, records arrive in the
// order of Submit; a record is acked once it is on all in-sync replicas; a
// record that cannot be delivered holds its partition, and nothing is ever
// dropped. It keeps these invariants of walpost:
//
//   - I2 A retry never lets a later record of a partition pass an earlier one.
//     A partition has at most one unsettled batch, and after an unknown outcome
//     the same bytes go again under the same sequence, so that the broker
//     recognises what it has.
//   - I7 Memory is bounded by Options.LimitBytes, and as much again for records above
//     1 MiB, however long Kafka is down.
//   - I8 The bytes of a record are those of Submit on every attempt.
//
// How it is built: records wait in a queue per partition (queue.go, lane.go).
// Every broker has senders (sender.go) that encode the heads of many queues
// (batch.go) into one request and settle it partition by partition, by the
// table in classify.go. topic.go follows topics, partitions and leaders. Before
// anything is sent, recover.go fences predecessors off and tail.go reads what they
// delivered; progress.go tells what a successor will have to read.
//
// Why not the client library's Writer: it has no producer id and no sequence,
// so a retry repeats or overtakes; after it gave up on a batch it sends the
// next one of the same partition; and it hides which attempt failed how. The
// library still does connections, TLS, SASL, metadata and the wire format of
// requests. This is the only package that uses it.
//
// The package does not decide where a record goes (that is routing), and knows
// nothing of PostgreSQL.
package sink
