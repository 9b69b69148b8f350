package config

import "time"

// Masked is shown in the place of a secret.
const Masked = "********"

// The values of Config.Sink.
const (
	SinkKafka  = "kafka"
	SinkStdout = "stdout"
)

// The values of Postgres.Snapshot.
const (
	SnapshotNone    = "none"
	SnapshotInitial = "initial"
)

// The SASL mechanisms that can be configured.
const (
	SASLPlain       = "PLAIN"
	SASLScramSHA256 = "SCRAM-SHA-256"
	SASLScramSHA512 = "SCRAM-SHA-512"
)

// Config is the complete configuration, checked.
type Config struct {
	Postgres Postgres
	Kafka    Kafka
	Topic    string // template of the topic name
	Topics   Topics
	Relay    Relay
	Sink     string // SinkKafka or SinkStdout
	Admin    Admin
	Debezium Debezium
	Log      Log

	// File is the configuration file that was read; empty when there was none.
	File string
	// Warnings are worth a line on stderr and stop nothing.
	Warnings []Warning

	origins map[string]Origin
}

// Postgres is what is read from, and how.
type Postgres struct {
	DSN             string // may be empty: the driver then uses the PG* variables alone
	Slot            string
	Publication     string
	Tables          []Table
	StatusInterval  time.Duration // longest time between two status updates
	ConfirmInterval time.Duration // shortest time between two confirmations
	PollInterval    time.Duration // how often slot, publication and tables are looked at
	Snapshot        string        // SnapshotNone or SnapshotInitial
}

// Kafka is where events go.
type Kafka struct {
	Brokers         []string // each host:port
	ClientID        string
	Compression     string // none, gzip, snappy, lz4, zstd
	MaxBatchBytes   Size
	MaxRequestBytes Size
	RequestTimeout  time.Duration
	TLS             TLS
	SASL            SASL
}

// TLS of the connections to the brokers. The files are named, not held: they
// can be replaced while the relay runs.
type TLS struct {
	Enabled            bool
	CAFile             string
	CertFile           string
	KeyFile            string
	ServerName         string
	InsecureSkipVerify bool
}

// SASL of the connections to the brokers; none when Mechanism is empty.
type SASL struct {
	Mechanism      string
	Username       string
	Password       string
	AllowPlaintext bool // PLAIN without TLS
}

// Topics says which topics may be written and created. Partitions and
// ReplicationFactor are -1 where the broker's default holds.
type Topics struct {
	Allow             []string // names, or patterns with *, ? and [a-z]; empty allows all
	Create            bool
	Partitions        int
	ReplicationFactor int
	Configs           map[string]string
}

// Relay bounds the loop.
type Relay struct {
	InFlightBytes Size
	DrainTimeout  time.Duration
}

// Admin is the listener of probes and metrics.
type Admin struct {
	Listen string // empty when there is none
}

// Debezium is a connector's configuration that is used as it is.
type Debezium struct {
	Config           string // its file; empty when there is none
	Worker           string // the Connect worker's file
	Version          string // the version whose records are emulated
	ContextHeaders   bool
	JavaVersion      int // whose text of numbers is reproduced
	ReproduceText    bool
	Properties       map[string]string // the connector's keys, instead of a file
	PropertiesOrigin string            // where they were read, for messages
}

// Enabled says whether a connector's configuration decides about records.
func (d *Debezium) Enabled() bool { return d.Config != "" || len(d.Properties) > 0 }

// Log is what the log looks like.
type Log struct {
	Level  string // debug, info, warn, error
	Format string // auto, console, json
}

// Warning is a line for stderr, with what to do about it.
type Warning struct {
	Text string
	Way  string
}
