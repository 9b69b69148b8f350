package connector

import (
	"time"

	"github.com/walpost/walpost/internal/debezium/column"
	"github.com/walpost/walpost/internal/debezium/router"
)

// ConverterSpec is a converter by its Java class, with its options, prefix
// removed.
type ConverterSpec struct {
	Class   string
	Options map[string]string
}

// Database says how to connect.
type Database struct {
	Hostname, User, Password, Name string
	Port                           int
	SSLMode                        string
	SSLRootCert, SSLCert, SSLKey   string
	SSLPassword                    string
	KeepAlive                      bool
	InitialStatements              string
}

// Kafka is what the file, or the worker's, says about the producer.
type Kafka struct {
	Brokers         []string
	Producer        map[string]string // producer settings of Kafka's Java client that are honoured, prefix removed
	CreateTopics    bool
	TopicPartitions int
	TopicReplicas   int
	TopicConfigs    map[string]string
}

// Spec is a connector's configuration as walpost understands it.
type Spec struct {
	Name     string // of the connector
	Server   bool   // it is Debezium Server's file
	Partial  bool   // only what Convert keeps: connection, slot, publication and brokers are walpost's own options
	Database Database
	Kafka    Kafka

	SlotName              string
	SlotDropOnStop        bool
	SlotFailover          bool
	SlotRetries           int
	SlotRetryDelay        time.Duration
	StatusInterval        time.Duration
	PublicationName       string
	PublicationAutocreate string // disabled, all_tables, filtered, no_tables
	PublishViaRoot        bool
	SkippedOperations     string // as written; t
	HasSkipped            bool

	// Tables selects tables: lists of regular expressions over schema.table (and
	// schema), whole name, without regard to case.
	SchemaInclude, SchemaExclude []string
	TableInclude, TableExclude   []string
	PredicateTopic               string // the pattern of the router's TopicNameMatches predicate; empty: none
	PredicateNegate              bool

	SnapshotMode string // initial, no_data, initial_only, always, when_needed

	HeartbeatInterval time.Duration
	HeartbeatQuery    string
	FlushManual       bool // lsn.flush.mode=manual: nothing is confirmed

	Key, Value, Header ConverterSpec
	Router             router.Options // without the converters, RunID and DatabaseName
	Modes              column.Modes
	Version            string // emulated: see debezium.version
	// ReproduceDebugText allows StringConverter on what it prints as Java's debug
	// text: bytea, and structs.
	ReproduceDebugText bool

	noContextHeaders bool

	overlay []Overlay
	kept    []keptKey
	unread  []keptKey // values for walpost's own options that could not be read here
}
