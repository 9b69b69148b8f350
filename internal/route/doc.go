// Package route decides where an event goes: topic, partition, key, headers,
// value and timestamp of its record.
//
// The topic comes from a template, by default outbox.event.<aggregate_type>. Its
// placeholders are <aggregate_type>, <event_type>, <table> (the outbox table's
// configured name) and <header:NAME> (the first header of that name). The key is
// the aggregate id, so that the events of an aggregate keep their order (I2).
// The value is the payload, byte for byte (I8). The header id comes first, then
// the event's headers in their documented order.
//
// A topic that Kafka would refuse, that belongs to Kafka itself, or that the
// configuration does not allow is an *event.Reject before anything is sent (I3).
// Such a reject has no LSN: an event does not know its own.
//
// Topic names are kept, so that an event costs no allocation; how many is
// bounded (I7). The package does no I/O and does not know which topics exist.
package route
