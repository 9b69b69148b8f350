// Conformance runs small scenarios that break outbox relays against any relay,
// and says of each what came of it.
//
//	go run ./test/conformance -relay walpost
//	go run ./test/conformance -relay debezium -pg 18 -scenario copy-crash,quiet
//	go run ./test/conformance -relay 'exec:./my-relay --verbose' -at-least-once
//
// # What is expected of a relay
//
// It reads the inserts of one outbox table from a slot and a publication, both
// made before it starts, and writes one record for each committed row to the
// topic outbox.event.<aggregatetype>, key aggregateid, value payload, with the
// row's id as text in the header "id". The table has Debezium's columns: id,
// aggregatetype, aggregateid, type, payload. Topics exist before it starts.
//
// A command given as exec:COMMAND is run by sh in the current folder with these
// variables:
//
//	PGHOST PGPORT PGUSER PGDATABASE PGSSLMODE   the server, which asks no password
//	DATABASE_URL                                the same as one string
//	KAFKA_BOOTSTRAP                             host:port, separated by commas
//	OUTBOX_SLOT OUTBOX_PUBLICATION OUTBOX_TABLE names; the table as schema.table
//	OUTBOX_STATE_DIR                            a folder that outlives the process
//
// It runs until SIGTERM or SIGKILL. One that ends by itself is started again
// half a second later, as an orchestrator would; the report counts that. After a
// crash it is started with the same variables and what it left in its folder.
//
// # How a scenario is judged
//
// Each scenario has a PostgreSQL server, a slot and topics of its own; the Kafka,
// of three brokers of which one stays away, is the kit's and shared. The rows
// that are committed, and their order, are known because the scenario writes
// them; what Kafka holds afterwards is read back. A topic is held back by wanting
// two replicas in sync when it has one, so that the broker refuses its records
// until it is released. Between relay and server is a recorder that
// reads every status update. The verdicts:
//
//	pass                 nothing of the following
//	lost N               rows that never came, though later ones did
//	phantom N            records of rows that were never committed
//	confirmed-too-early  a flush position above an event that Kafka did not have
//	disordered N         first copies of a key that came after later ones
//	stuck                nothing comes, the slot stays, a server does not stop
//	duplicated N         further copies; with -at-least-once they do not fail
//
// The exit code is 1 if a scenario failed, 2 for a wrong command line, 3 if the
// kit itself could not do its work.
//
// What it does not judge: the bytes of keys and values, headers but the id,
// speed.
package main
