package outbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Header of a record.
type Header struct {
	Key   string `json:"k"`
	Value []byte `json:"v"` // nil is a null header
}

// Record is what any Kafka client gives, without the headers.
type Record struct {
	Topic      string
	Partition  int32
	Offset     int64
	Key, Value []byte
	Time       time.Time
}

// Message is a delivered event, whatever client read it.
type Message struct {
	ID            uuid.UUID
	AggregateType string
	AggregateID   string
	Version       int64 // 0: none
	Type          string
	SchemaVersion int
	OccurredAt    time.Time // zero: not told
	TenantID      string
	Traceparent   string
	Tracestate    string
	Headers       []Header // all of the record's, in order
	Record
}

// The names under which a header may come: walpost's own first, then those that
// Debezium's event router is usually configured to give.
var headerNames = map[string][]string{
	"id":                {"id"},
	"aggregate_type":    {"aggregate_type", "aggregateType", "aggregatetype"},
	"aggregate_version": {"aggregate_version", "aggregateVersion", "aggregateversion"},
	"event_type":        {"event_type", "eventType", "eventtype", "type"},
	"schema_version":    {"schema_version", "schemaVersion", "schemaversion"},
	"occurred_at":       {"occurred_at", "occurredAt", "occurredat"},
	"tenant_id":         {"tenant_id", "tenantId", "tenant"},
	"traceparent":       {"traceparent"},
	"tracestate":        {"tracestate"},
}

// Parse reads the headers that walpost or Debezium's event router give: as text,
// or as the JSON that Kafka Connect's and Debezium Server's converters make of
// it, with or without a schema. Of several headers of one name the first counts.
// The aggregate's id is the key; its type, if no header has it, is what follows
// outbox.event. in the topic's name, or the topic. Value and headers are kept as
// they are. A record without a usable id, or with a version that is no number, is
// ErrNotAnEvent. headers may be nil.
func Parse(rec Record, headers iter.Seq2[string, []byte]) (Message, error) {
	m := Message{Record: rec, SchemaVersion: 1}
	first := map[string]string{}
	if headers != nil {
		for k, v := range headers {
			m.Headers = append(m.Headers, Header{k, v})
			if _, there := first[k]; !there && v != nil {
				first[k] = plain(v)
			}
		}
	}
	get := func(field string) string {
		for _, n := range headerNames[field] {
			if v, there := first[n]; there {
				return v
			}
		}
		return ""
	}
	where := fmt.Sprintf("record at %s/%d offset %d", rec.Topic, rec.Partition, rec.Offset)
	id, err := uuid.Parse(get("id"))
	if err != nil || id == uuid.Nil {
		return m, &Error{
			Text: fmt.Sprintf("%s: the header id is %.60q", where, get("id")),
			Way:  "consume topics that walpost or Debezium's event router writes, with event ids that are UUIDs; others' records are for the caller to skip",
			Kind: ErrNotAnEvent,
		}
	}
	m.ID = id
	number := func(field string) (int64, error) {
		text := get(field)
		if text == "" {
			return 0, nil
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || field == "schema_version" && n > 1<<31-1 {
			return 0, &Error{Text: fmt.Sprintf("%s: the header %s is %.60q", where, field, text), Way: "it must be a number from 1 on, or missing", Kind: ErrNotAnEvent}
		}
		return n, nil
	}
	if m.Version, err = number("aggregate_version"); err != nil {
		return m, err
	}
	schema, err := number("schema_version")
	if err != nil {
		return m, err
	}
	m.SchemaVersion = max(int(schema), 1)
	m.AggregateID = plain(rec.Key)
	m.AggregateType = get("aggregate_type")
	if m.AggregateType == "" {
		m.AggregateType = rec.Topic
		if _, after, found := strings.Cut(rec.Topic, "outbox.event."); found && after != "" {
			m.AggregateType = after
		}
	}
	m.Type, m.TenantID = get("event_type"), get("tenant_id")
	m.Traceparent, m.Tracestate = get("traceparent"), get("tracestate")
	m.OccurredAt = parseTime(get("occurred_at"))
	return m, nil
}

// plain takes a text out of the JSON that a converter made of it. What is not
// such JSON is the text itself.
func plain(v []byte) string {
	if len(v) < 2 || v[0] != '"' && v[0] != '{' {
		return string(v)
	}
	inner := json.RawMessage(v)
	if v[0] == '{' {
		var envelope map[string]json.RawMessage
		if json.Unmarshal(v, &envelope) != nil || len(envelope) != 2 || envelope["schema"] == nil || envelope["payload"] == nil {
			return string(v)
		}
		inner = envelope["payload"]
		if bytes.Equal(inner, []byte("null")) {
			return ""
		}
	}
	var text string
	if json.Unmarshal(inner, &text) == nil {
		return text
	}
	return string(inner)
}

// parseTime reads a time as PostgreSQL prints it, RFC 3339, or the microseconds
// that Debezium makes of a timestamp. A time that it does not know is none: it
// is not worth an event.
func parseTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999Z07:00:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 1e15 && n < 1e17 {
		return time.UnixMicro(n).UTC()
	}
	return time.Time{}
}

// known is the event's own time, which is the same on every delivery. The
// record's is not: a replay has a new one.
func (m *Message) known() *time.Time {
	if t, ok := idTime(m.ID); ok {
		return &t
	}
	if !m.OccurredAt.IsZero() {
		return &m.OccurredAt
	}
	return nil
}

func (m *Message) check() error {
	fault := func(text string) error {
		return &Error{Text: fmt.Sprintf("message at %s/%d offset %d: %s", m.Topic, m.Partition, m.Offset, text), Way: "make messages with Parse, or set ID, AggregateType and AggregateID", Kind: ErrNotAnEvent}
	}
	switch {
	case m.ID == uuid.Nil:
		return fault("it has no event id")
	case m.Version < 0:
		return fault(fmt.Sprintf("version %d is negative", m.Version))
	case m.Version > 0 && (m.AggregateType == "" || m.AggregateID == ""):
		return fault("it has a version, but no aggregate")
	}
	for _, text := range []string{m.AggregateType, m.AggregateID, m.Type, m.TenantID, m.Traceparent, m.Tracestate} {
		if why := unfit(text, 1<<20); why != "" {
			return fault(fmt.Sprintf("%.60q: %s", text, why))
		}
	}
	return nil
}

func (m *Message) String() string {
	return fmt.Sprintf("event %s (%.60q %.60q version %d)", m.ID, m.AggregateType, m.AggregateID, m.Version)
}
