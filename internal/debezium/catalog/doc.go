// Package catalog reads what PostgreSQL's catalog says about the columns of a
// table: package column makes Connect schemas of it.
//
// Guarantee: Read and ByName see one state of the catalog, with names and
// literals in the form that the session of a Debezium connector would see (time
// zone UTC), whatever the settings of the connection, which they leave as they
// were. They take part in a transaction that is open, and hold no lock afterwards.
//
// What can be known about a default. A row's Relation message has the names, the
// types and the type modifiers that were in force when the row was written, since
// logical decoding reads the catalog of that time. It has no defaults, no
// nullability, no enum labels and no primary key: these can be read only from the
// catalog as it is now, and there is no way to ask it about the past. So
//
//   - what is read when a Relation message arrives is what was in force when the
//     row was written, unless it changed between then and now: the window is the
//     lag. After a pause it is the length of the pause.
//   - PostgreSQL sends a new Relation message before the first row after DDL on
//     the table, also after a change of a default or of nullability, so a reader
//     that reads again at each Relation message never keeps a stale default.
//   - rows written before the DDL and read after it get the new default. Debezium
//     reads the catalog at the same moments and has the same window; at the end
//     of it, both agree for the same lag.
//   - a change to a type (a new enum label, a domain's base) sends a Relation
//     message of the table only if the table's own definition changes too.
//
// A partition is read as itself: its columns may be in another order than its
// root's, and may have defaults of their own. Whether rows come as those of the
// partition or of the root is for the publication to say
// (publish_via_partition_root), and the Relation message has the OID to ask for.
//
// The package does not convert and keeps nothing.
package catalog
