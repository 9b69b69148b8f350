package router

import (
	"time"

	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/debezium/column"
	"github.com/walpost/walpost/internal/debezium/connect"
)

// Options of the router, by the names of io.debezium.transforms.outbox.EventRouter,
// and of what surrounds it in the connector. New checks them; the zero value of
// a string is the option's default.
type Options struct {
	FieldEventID            string // table.field.event.id; id
	FieldEventKey           string // table.field.event.key; aggregateid
	FieldEventPayload       string // table.field.event.payload; payload
	FieldEventTimestamp     string // table.field.event.timestamp; none
	FieldEventSchemaVersion string // table.field.event.schema.version; none
	// Placement is table.fields.additional.placement as written; HasPlacement
	// tells an empty one, which is an error, from none.
	Placement      string
	HasPlacement   bool
	MissingIgnored bool   // table.field.additional.missing=ignore, or the older error.on.missing=false
	OpInvalid      string // table.op.invalid.behavior: warn, error, fatal
	ExpandJSON     bool   // table.expand.json.payload
	JSONNull       string // table.json.payload.null.behavior: ignore, optional_bytes
	JSONEmptyArray string // table.json.payload.empty.array.behavior: ignore, optional_string (3.7)
	RouteByField   string // route.by.field; aggregatetype
	TopicRegex     string // route.topic.regex; (?<routedByValue>.*)
	TopicReplace   string // route.topic.replacement; outbox.event.${routedByValue}
	TombstoneEmpty bool   // route.tombstone.on.empty.payload
	TopicPrefix    string // topic.prefix of the connector
	ContextHeaders int    // 0, 3 or 4: the __debezium.context.* headers of the emulated version
	TaskID         string // 0
	ConnectorName  string // postgresql
	RunID          string // the fourth context header
	Server         bool   // Debezium Server: no partition, no timestamp, null headers left out
	Modes          column.Modes
	Key            connect.Converter
	Value          connect.Converter
	Header         connect.Converter
	// NoDebugText refuses tables whose bytes or structs StringConverter would print
	// as Java's debug text.
	NoDebugText    bool
	MessageTopics  bool // publish pg_logical_emit_message on <topic.prefix>.message
	HeartbeatTopic string
	DatabaseName   string // for the source block of a logical message
	Version        string // of the emulated Debezium, for the same; DefaultVersion
	TopicDelimiter string // topic.delimiter; "."
	// Unavailable is unavailable.value.placeholder, which stands for a TOASTed value
	// that an update of the key did not send; DefaultUnavailable.
	Unavailable string
	// Now is the clock that stamps records; time.Now.
	Now func() time.Time
	// Log gets what Debezium would log of a row; nil: nothing.
	Log *zap.Logger
}

// What the empty Options mean.
const (
	DefaultVersion      = "3.6.1.Final"
	DefaultTopicRegex   = "(?<routedByValue>.*)"
	DefaultTopicReplace = "outbox.event.${routedByValue}"
	DefaultUnavailable  = "__debezium_unavailable_value"
)

// Table is what the catalog says about an outbox table when a plan is compiled.
type Table struct {
	Schema  string
	Name    string
	Columns []column.Info // of the relation, in any order; matched by name
	// Key names the columns of the primary key in its order. When it is empty, they
	// are the columns with Info.Key, in the relation's order.
	Key []string
}
