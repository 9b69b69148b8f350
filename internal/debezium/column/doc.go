// Package column makes Kafka Connect schemas and values of PostgreSQL columns as
// Debezium's PostgreSQL connector makes them, for a connector that walpost takes
// over.
//
// New turns what the catalog says about a column, and the connector's modes, into
// a Column: its Connect schema with name, version, parameters, optionality and
// default, and a Value method that reads the text which pgoutput sends. A type
// that Debezium leaves out gives no Column, unless include.unknown.datatypes is
// set, which delivers its text as bytes.
//
// The text has to come from a session with client_encoding UTF8, DateStyle ISO,
// IntervalStyle postgres, TimeZone UTC, extra_float_digits 1 and bytea_output hex.
// Money comes as lc_monetary formats it and is read as Debezium reads it: one
// currency character in front, commas between thousands.
//
// What Debezium cannot convert falls into three groups, and Value keeps them
// apart. A value that fails in a converter is up to
// event.converting.failure.handling.mode: null and a line in Scratch.Lost, or an
// error. A value that its converter does not recognise is null in an optional
// column whatever the mode. A text that cannot be read at all fails Debezium's
// task whatever the mode, and is an error here.
//
// Peculiarities that are kept because consumers see them: elements of time[] and
// timetz[] have milliseconds only; the elements of a multidimensional array are
// null; a name column is null unless it comes from a snapshot; null in a NOT NULL
// column becomes the default or the zero of its type; hstore is in the order of a
// Java hash map; defaults are read by pattern, so that 'a' || 'b' is "a" and
// now() is the zero of its type. Where Debezium prints the address of an object,
// which differs from one run to the next, Value returns an error with Refused set.
//
// Assumed: Debezium's JVM runs in UTC, as its container images do; elsewhere it
// shifts arrays of dates and times.
//
// A Debezium of version 3.6.1 does not start on a database that has a domain over
// an enum. Here a column of one is that enum.
//
// The package reads nothing from a database: package catalog does.
package column
