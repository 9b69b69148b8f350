// Command bench measures walpost against what PostgreSQL itself can send, on
// servers that it starts, and prints one table:
//
//	go run ./test/bench
//
// Absolute numbers depend on the machine and on what else it does. So every
// drain of a backlog is done three ways in the same run, over the same WAL:
//
//   - pg_recvlogical to /dev/null, which is the walsender's own limit
//   - the relay into a sink that throws away (./discard)
//   - "walpost run" into Kafka with acks=all, one broker, 12 partitions
//
// and the ratios are what counts. They compare whole rates, from the start of a
// process to its last row: the first record is seen in Kafka when the relay has
// already buffered many, so that a rate from the first to the last can exceed
// what the walsender sends. Each drain has a slot of its own that was made
// before the backlog. With -repeat N the backlog is drained N times by each, in
// rotating order, and minimum, median and maximum are printed.
//
// With -against debezium a real Debezium drains the same backlogs, with its
// defaults and tuned. -growth measures, with the product alone, what an event
// costs as rows, transaction size, aggregates, payload, partitions or topics grow.
// -profile writes a CPU profile of each run into Kafka.
//
// -json writes everything, with the machine; results worth keeping are in
// test/bench/results. -chart draws them. -quick -baseline FILE runs small backlogs
// and compares ratios, allocations, CPU per event and memory with FILE; it has no
// opinion on seconds.
//
// The phase crash compares a relay that has all protection against duplicates of
// a crash with one that is denied the rights for it, both at the same time over
// the same rows; and it measures the start after kill -9 with 100,000 records
// behind the checkpoint.
//
// -away 3m stops Kafka for so long, with more rows waiting than the relay may have
// in flight, and measures its memory before and after.
//
// -application measures package outbox instead, which runs in the application:
// round trips of the writer and the consumer, counted at the wire; Copy against
// single inserts; and a consumer's message against the same handler in a plain
// transaction, new ones and duplicates, with durable commits and without. It needs
// PostgreSQL alone.
//
// The relay is always a process of its own: its CPU is user and system time of
// the whole process from its start to its last event, its memory the peak of the
// resident set. At the end the floors are checked; the exit code is 1 if one is
// missed.
package main
