// Package outboxkafka runs an outbox.Consumer on a Kafka consumer group, with
// kafka-go.
//
// Each partition that the group assigns has a lane of its own: fetch, process,
// and then mark the offset, which is committed a little later for all lanes
// together. So an offset is never committed before its event has been dealt with
// durably (applied, passed over, or parked), and whatever ends a process, its
// events come again and are known again. Lanes do not wait for each other: an
// event that is parked or held keeps nobody up, and one that cannot be dealt with
// at all, because the database is down or the consumer rejects a version gap,
// keeps up its partition alone, with back-off, for as long as it takes.
//
// When partitions are taken away, or Run's context ends, each lane finishes what
// it has in hand within Options.Drain, drops what it had fetched, and commits;
// only then the member joins again or leaves. A member that lost its partitions
// without noticing may work on an event at the same time as the new owner: the
// database lets one of them wait for the other, and the event is applied once.
//
// Memory is bounded by Options.MaxBytes over all lanes: each has one fetch in
// work and one waiting. Kafka returns a whole batch even when it is larger, and
// compressed batches grow when they are read; a topic's max.message.bytes bounds
// the former.
//
// Records of transactions that were aborted are read, too: an event is committed
// in PostgreSQL before anybody publishes it, whatever becomes of the publisher.
//
// What it does not do: create topics, publish, or resume parked events, which is
// Consumer.Resume. Each partition uses one connection to its leader.
package outboxkafka
