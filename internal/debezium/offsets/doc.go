// Package offsets reads the position that Debezium's PostgreSQL connector has
// stored: from the file of Connect's standalone worker or of Debezium Server, or
// from a record of Connect's offsets topic.
//
// The file is a java.util.HashMap<byte[], byte[]> in Java's serialized form. The
// parser knows that one class and byte arrays, and refuses everything else; it
// reads no length that the rest of the file does not bear out, so what it holds in
// memory is bounded by the file.
//
// The package does no I/O, and does not say what the position means for a slot:
// see package takeover.
package offsets
