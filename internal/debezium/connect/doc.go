// Package connect makes the bytes that Kafka Connect's converters make, for the
// keys, values and headers of a connector that walpost takes over.
//
// A Schema and a Value stand for what a Debezium connector hands to a converter;
// New builds the converter that a Connect worker would load for a Java class and
// its options. The output is the same byte for byte: Jackson's escapes, the order
// of a schema's members, Java's text of numbers, the debug text of structs. A
// consumer cannot tell the difference, and a key lands in the same partition.
//
// Where Connect would fail the task for a value, Convert returns an *Error that
// says so, and the row is poison. Where Debezium prints text that differs from
// one run to the next (the address of a byte array, a java.util.Date in the JVM's
// time zone), Convert returns an *Error as well, with Refused set: there is
// nothing to be equal to.
//
// Number text depends on the Java that Debezium runs on. Since Java 19
// Double.toString and Float.toString print the shortest digits that identify a
// number (JDK-4511638); before, they did not always. The text differs for a few
// large or tiny numbers: real 1.1e10 is 1.10000005E10 before Java 19 and 1.1E10
// since, double precision 1e23 is 9.999999999999999E22 and 1.0E23. Money-like
// values, and doubles of up to 15 digits below 10^15, are the same in both.
// Options.JavaVersion chooses. The default is 21, the Java of Debezium's own
// container images (their base installs java-21-openjdk); a Connect worker that
// still runs on 17 or 11 needs the setting. Both texts are tested against the
// output of OpenJDK 17 and 25.
//
// Temporal logical types of Connect itself (time.precision.mode=connect) are
// printed by SimpleHeaderConverter in the JVM's default time zone; walpost prints
// them in UTC, which is what containers run in.
//
// Strings hold UTF-8, except that an unpaired surrogate, which a Java string can
// hold and UTF-8 cannot, is kept as its three bytes ED A0..BF xx.
//
// The package does not read values from PostgreSQL, does not route, and knows no
// schema registry.
package connect
