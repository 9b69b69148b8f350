// Package decoder turns the bytes of pgoutput, protocol version 1, into the
// changes of committed transactions.
//
// With version 1 the server sends a transaction only once it has committed, and
// Begin already holds its commit LSN and commit time. So every change leaves
// with its transaction's header as soon as its bytes are there, and a
// transaction of any size needs no buffer here. Rolled-back savepoints never
// arrive.
//
// What it promises:
//
//   - Changes come in commit order and, inside a transaction, in statement
//     order, each with an ordinal that is the same on every replay
//     (I2: order per key equals commit order).
//   - A message that is unknown, truncated, too long or out of place is a
//     *DecodeError, and the decoder then refuses everything until Reset
//     (I3: a message that cannot be decoded stops the relay, it is never
//     skipped).
//   - No length or count from the wire sizes an allocation before the bytes
//     that it speaks of were seen to be there, and a row costs no allocation at
//     all (I7: memory is bounded).
//   - Values are the server's bytes, not a copy and not a conversion
//     (I8: the payload bytes are the same on every publish).
//
// The package does no I/O, reads no clock and logs nothing. It does not know
// which tables matter, what a column means, or what may be confirmed.
package decoder
