// Package router makes of changed rows what Debezium's PostgreSQL connector and
// its outbox event router (io.debezium.transforms.outbox.EventRouter) make of
// them: the same topic, partition, key, headers, value and tombstones, byte for
// byte.
//
// A Router is made of the router's options, a Plan of one relation and what the
// catalog says about its table. What makes Debezium fail for every row is refused
// by New or Compile; what makes it fail for one row is an *event.Reject from
// Record, which names table, column and event: a row is never skipped because of a
// fault, and never published in another form (I3). An insert, a row of a snapshot,
// and an update that changes the primary key make a record; deletes, truncates and
// other updates make none, which the Outcome says.
//
// Peculiarities that are kept, because consumers see them:
//
//   - The SQL default takes the place of NULL in the id, the key, the payload,
//     headers and envelope fields; not in the columns that give topic, timestamp,
//     partition and schema version.
//   - The schema of an envelope is kept by the payload's schema, or by the version
//     column alone; so it has the name and the fields that it got first.
//   - The old key of an update comes before all other headers.
//   - With the replica identity of another index than the primary key, the old key
//     has zeros in place of what the index does not have.
//   - A TOASTed value that such an update did not send becomes
//     unavailable.value.placeholder, unless the replica identity is full.
//
// Not kept: a timestamp column of a type that fails is refused also when it is
// always NULL; a value converter that never takes the payload's type is refused at
// the start. When a column has changed its type since the row was written, the
// catalog no longer says what the type was: built-in types are known by their
// number, others are refused. Defaults are those that the catalog has now.
//
// Nothing here is safe for concurrent use. The package does no I/O.
package router
