package outbox

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Event is one integration event. Write fills ID, SchemaVersion and OccurredAt
// when they are zero, so that the caller can read them afterwards; nothing
// changes an Event once it is written.
type Event struct {
	// ID is a UUID of version 7 if zero. It is made once: an Event that is written
	// again, because its transaction was rolled back, keeps it.
	ID uuid.UUID
	// AggregateType decides the topic: 1 to 200 of the characters A-Z a-z 0-9 . _ -
	AggregateType string
	// AggregateID is the ordering key: 1 to 1024 bytes of UTF-8 without NUL.
	AggregateID string
	// Version of the aggregate that this event makes, from 1 without holes; 0 is
	// an event without one. Several events of one change have several versions.
	Version int64
	// Type says what happened: 1 to 255 bytes of UTF-8 without NUL.
	Type string
	// SchemaVersion of the payload; 1 if zero.
	SchemaVersion int
	// Payload is taken as it is if it is a []byte or a json.RawMessage; anything
	// else goes through WriterOptions.Marshal.
	Payload any
	// OccurredAt is the present time if zero; microseconds are kept.
	OccurredAt time.Time
	// TenantID is that of WriterOptions.Tenant if empty; at most 255 bytes.
	TenantID string
	// Headers become headers of the record. The names that walpost gives and
	// names that begin with walpost- or ce_ are refused.
	Headers map[string]string
}

const (
	maxAggregateType = 200
	maxAggregateID   = 1024
	maxName          = 255
	maxHeaders       = 32 << 10
	maxTrace         = 512
)

// ownHeaders are those that the relay makes of columns.
var ownHeaders = set([]string{
	"id", "aggregate_type", "event_type", "schema_version", "aggregate_version", "occurred_at",
	"traceparent", "tracestate", "tenant_id",
})

// row is an event as its columns hold it; nil is NULL.
type row struct {
	id                    uuid.UUID
	aggregateType         string
	aggregateID           string
	version               *int64
	eventType             string
	schemaVersion         int32
	payload               []byte
	occurredAt            time.Time
	tenant, parent, state *string
	headers               *string
}

// fault begins an EventError of an event.
func (e *Event) fault(index int) func(field, text, way string) error {
	return func(field, text, way string) error {
		about := "nil"
		if e != nil {
			about = fmt.Sprintf("%.60q %.60q %.60q", e.AggregateType, e.AggregateID, e.Type)
		}
		return &EventError{Index: index, Event: about, Field: field, Text: text, Way: way, Kind: ErrInvalid}
	}
}

// check looks at everything but the payload.
func (e *Event) check(fault func(field, text, way string) error) error {
	if e.AggregateType == "" || len(e.AggregateType) > maxAggregateType || strings.IndexFunc(e.AggregateType, notInTopic) >= 0 {
		return fault("AggregateType", fmt.Sprintf("%.220q cannot be part of a topic's name", e.AggregateType),
			"use 1 to 200 of the characters A-Z a-z 0-9 . _ -")
	}
	if why := unfit(e.AggregateID, maxAggregateID); why != "" || e.AggregateID == "" {
		return fault("AggregateID", orEmpty(why), "use 1 to 1024 bytes of UTF-8 without NUL")
	}
	if why := unfit(e.Type, maxName); why != "" || e.Type == "" {
		return fault("Type", orEmpty(why), "use 1 to 255 bytes of UTF-8 without NUL")
	}
	if why := unfit(e.TenantID, maxName); why != "" {
		return fault("TenantID", why, "use at most 255 bytes of UTF-8 without NUL")
	}
	if e.Version < 0 {
		return fault("Version", fmt.Sprintf("%d is negative", e.Version), "count from 1, or leave it 0 for an event without a version")
	}
	if e.SchemaVersion < 0 || int64(e.SchemaVersion) > math.MaxInt32 {
		return fault("SchemaVersion", fmt.Sprintf("%d is out of range", e.SchemaVersion), "count from 1")
	}
	if y := e.OccurredAt.UTC().Year(); !e.OccurredAt.IsZero() && (y < 1 || y > 9999) {
		return fault("OccurredAt", fmt.Sprintf("the year %d is out of range", y), "use a time between the years 1 and 9999, or none")
	}
	return nil
}

func notInTopic(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
}

func orEmpty(why string) string {
	if why == "" {
		return "it is empty"
	}
	return why
}

// unfit says why PostgreSQL would refuse a text, or we do.
func unfit(text string, most int) string {
	switch {
	case len(text) > most:
		return fmt.Sprintf("%d bytes are more than %d", len(text), most)
	case !utf8.ValidString(text):
		return "it is not UTF-8"
	case strings.IndexByte(text, 0) >= 0:
		return "it holds a NUL, which PostgreSQL cannot store"
	}
	return ""
}

// headerText is the headers column; nil for none.
func (e *Event) headerText(fault func(field, text, way string) error) (*string, error) {
	if len(e.Headers) == 0 {
		return nil, nil
	}
	const way = "use names and values of UTF-8 without NUL; names that walpost gives, or that begin with walpost- or ce_, are not free"
	size := 0
	for k, v := range e.Headers {
		field := fmt.Sprintf("Headers[%.60q]", k)
		if k == "" || ownHeaders[k] || strings.HasPrefix(k, "walpost-") || strings.HasPrefix(k, "ce_") {
			return nil, fault(field, "the name is not free", way)
		}
		if why := unfit(k, maxName); why != "" {
			return nil, fault(field, why, way)
		}
		if why := unfit(v, maxHeaders); why != "" {
			return nil, fault(field, why, way)
		}
		size += len(k) + len(v)
	}
	if size > maxHeaders {
		err := fault("Headers", fmt.Sprintf("%d bytes are more than %d", size, maxHeaders), "move what is large into the payload").(*EventError)
		err.Kind = ErrTooLarge
		return nil, err
	}
	b, err := json.Marshal(e.Headers)
	if err != nil {
		return nil, fault("Headers", err.Error(), way)
	}
	text := string(b)
	return &text, nil
}

// optional makes NULL of an empty text.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
