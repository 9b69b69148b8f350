// Package connector reads the configuration of a Debezium PostgreSQL connector
// with an outbox router: Kafka Connect's JSON, a properties file, or the file of
// Debezium Server.
//
// It guarantees that no key is passed over in silence. One table says for each
// key whether walpost does what Debezium does (honoured), does not need it
// (ignored, with the reason), or cannot run with it (refused, with the way
// out). A key that is in no table is refused: it may be misspelt, and a
// misspelt option of Debezium is the usual cause of records in the wrong form.
// Whatever decides about bytes and has no default, such as a converter, is never
// guessed. Secrets leave the package in the Spec and its Overlay alone, never in
// a report, an error or a converted file.
//
// The package does not connect to anything: what depends on tables and columns
// is for those who have looked at the catalog.
package connector
