// Package contract holds the oracle for docs/contract.md: it runs a writer and a
// consumer in any language, as command lines, between a real PostgreSQL, the real
// walpost and a real Kafka, does to them what production does, and says whether
// every committed event has had its effect exactly once.
//
// # What an example is
//
// A command line RUN with DATABASE_URL (postgres://user@host:port/db?sslmode=disable,
// perhaps with a password), KAFKA_BROKERS (host:port), TOPIC and CONSUMER (the
// name in processed_events and consumer_positions, and the group's id) in its
// environment. The tables of the outbox and of the consumer are there, and
//
//	account      (id text primary key, balance bigint not null default 0, version bigint not null default 0)
//	account_view (id text primary key, balance bigint not null, events bigint not null)
//
// with the accounts acct-0 to acct-6.
//
// RUN write N START: for each i from START to START+N-1 one transaction, which
// updates the account acct-(i mod 7) with balance+1 and version+1 and then inserts
// one event with that version into outbox_events: aggregate type account, event
// type Deposited, payload {"amount":1,"n":i}, an id of UUID version 7. Where
// i mod 10 is 9 the transaction is rolled back after the insert. Exit code 0.
//
// RUN consume N: reads TOPIC from the group's committed offset, or from its
// start. Each record is one transaction: insert into processed_events on conflict
// do nothing, and no more if that is no row; the version against
// consumer_positions, where an older one is skipped, the next one or the first one
// seen is taken, and a gap ends the process with exit code 4, a message and
// nothing committed; then the effect,
//
//	insert into account_view (id, balance, events) values (id, amount, 1)
//	on conflict (id) do update set balance = balance + amount, events = events + 1
//
// Then the record's offset is committed. It ends with exit code 0 after N records,
// repeated ones included, or 10 s without one.
//
// CRASH_AFTER=k makes consume end with exit code 42, without any cleaning up, after
// the commit of the k-th record's transaction and before that of its offset.
package contract
