// Package checkpoint knows up to which WAL position everything is delivered.
//
// A Tracker keeps the transactions that still have undelivered events, in
// commit order, and derives the low-water mark: the highest position with
// nothing pending at or below it. The mark is the only position that is ever
// confirmed to PostgreSQL, and this package is the only place where it moves.
//
// The invariants kept here:
//
//   - I1 Nothing is confirmed before every event at or below it is settled. A
//     maximum over acks would break this: acks arrive in any order.
//   - I4 A keepalive position counts only behind everything that was received
//     before it; with nothing pending it counts at once, so an outbox that is
//     quiet in a busy database holds no WAL.
//   - I5 The mark never goes backwards.
//   - I7 Memory follows the transactions that have pending events, not those
//     that were settled behind a stuck one, however long it is stuck.
//
// A Store keeps the mark in tables of the database that the slot belongs to,
// together with the history it belongs to and, per partition, an offset below
// which everything lies under it: what a successor needs to send nothing twice.
//
// The package knows nothing of the replication protocol or of Kafka's.
package checkpoint
