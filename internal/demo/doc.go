// Package demo is the application of the demo: an order service that writes
// its rows and its events in one transaction, and the check that compares what
// Kafka holds with what was committed.
//
// The service shows what an outbox asks of an application. It locks the order's
// row before it writes the event, so the events of an order are committed in
// the order of their versions. Some of its transactions are rolled back, some to
// a savepoint; nothing of these may ever arrive.
//
// The check takes the outbox table as the truth. It knows nothing of the relay.
package demo
