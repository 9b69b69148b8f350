// Package takeover looks at a slot that Debezium streams from, says what taking it
// over would mean, and waits for Debezium to let go of it.
//
// Look changes nothing. It compares the slot with what the connector's
// configuration needs and with the position that Debezium has stored, and says what
// stands in the way (a Finding), what would happen, and in which order (a Step).
// Release waits for the slot, or ends the session that holds it. Neither moves the
// slot: where the relay begins is the slot's own position, and what Debezium had
// published behind that is found in Kafka by the relay itself.
//
// The package does not relay, and knows nothing of Kafka: whoever calls it reads
// the offsets topic.
package takeover
