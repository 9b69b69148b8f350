// Package start does what Debezium's connector does when it starts: it finds
// the tables that the connector's lists of regular expressions select, and makes
// the publication and, without a snapshot, the slot.
//
// It makes what is missing and adds tables that a publication lacks; it never
// removes anything. Where Debezium would publish tables that are no outbox, it
// refuses and names them: their rows would stop the router.
//
// It does not read rows: see package snapshot for the snapshot that precedes
// the stream.
package start
