// Package expand turns the JSON text of a payload into structured data, as the
// option table.expand.json.payload of Debezium's outbox router does.
//
// Expand parses what Jackson's ObjectMapper parses (trailing text after the root
// is not looked at, duplicate members keep the first place and the last value),
// infers a Connect schema from the document, and makes the value that goes with
// it. Its outcome is one of three, because Debezium has three: the text is kept,
// it is expanded, or the schema is replaced while the value stays text, which is
// what happens when Debezium notices too late that the value does not fit. The
// last is passed on as it is: most converters refuse it, StringConverter prints
// the text.
//
// Types are those of the document: integers of 32 and 64 bits, doubles, booleans,
// strings, arrays of one type, objects. Everything is optional. Members that are
// null or an empty array are dropped unless Options say otherwise. A struct is
// named by the path that leads to it.
//
// Objects in one array that do not have the same members in the same order are
// merged into one struct. Debezium takes them from a Java hash set whose order
// changes with every start of its JVM; so do the order of the merged members and,
// where two objects disagree about a member, whose type wins. Here the order is
// that of first appearance. This is the one place where output may differ from a
// given run of Debezium, and it differs between any two of its runs.
//
// Schemas of one shape are one pointer, as long as the cache holds them, so a
// converter can key what it derives by the pointer.
//
// The package does not rename members (field.name.adjustment.mode).
package expand
