package event

import "time"

// Event is the application's message as one outbox row holds it. The byte
// slices point into the decoded change and live as long as it does; nil means
// SQL NULL.
type Event struct {
	Table         string // the configured name of the outbox table, for people
	Source        uint32 // index of that table in the Mapper
	ID            []byte
	AggregateType []byte
	AggregateID   []byte
	Type          []byte
	Payload       []byte
	Partition     []byte    // text of the partition column, when one is mapped
	Time          time.Time // record timestamp
	TimeFallback  bool      // the timestamp column could not be used; Time is the commit time
	Headers       []Header  // in the order in which they are configured, without the id
}

// Header of an event, from a column that is not NULL.
type Header struct {
	Name  string
	Value []byte
}
