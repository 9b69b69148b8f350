// Package debezium relays with a Debezium connector's configuration: it finds
// the tables, makes what the connector would make when it starts, and makes the
// records that Debezium would make.
//
// The parts are in its subpackages: connector reads the configuration, start does
// what comes first, router makes records, with the help of column (PostgreSQL's
// types), connect (converters), expand (JSON) and javaregex. This package puts
// them together as a route.Translator.
//
// What a row's column means is asked from the catalog when the stream describes
// the table: at the first row of every connection, and after every change of the
// table. A default that was changed between the writing of a row and that moment
// is not known any more; a table that is gone since is taken as it was when it was
// last seen, or at the start.
package debezium
