package config

// The groups of help and reference.
const (
	groupPostgres = "PostgreSQL"
	groupKafka    = "Kafka"
	groupTopics   = "Topics"
	groupRelay    = "Relay"
	groupDebezium = "From Debezium"
	groupLog      = "Log"
)

// The configuration file is the one option that cannot be in the file.
const (
	FileFlag    = "config"
	FileEnv     = "WALPOST_CONFIG"
	DefaultFile = "walpost.yaml"
	fileHelp    = "configuration file; without it ./" + DefaultFile + " is used when it is there"
)

// Options is the table, in the order in which options are shown.
func Options() []Option {
	return []Option{
		{
			Name: "postgres.dsn", Flag: "dsn", Group: groupPostgres, Secret: true, Global: true,
			Help: "connection string, URL or keyword=value; what it leaves out comes from libpq's PG* variables",
			at:   func(c *Config) any { return &c.Postgres.DSN },
		},
		{
			Name: "postgres.slot", Flag: "slot", Group: groupPostgres, Default: "walpost", Global: true,
			Help: "replication slot",
			at:   func(c *Config) any { return &c.Postgres.Slot },
		},
		{
			Name: "postgres.publication", Flag: "publication", Group: groupPostgres, Default: "walpost", Global: true,
			Help: "publication of the outbox tables",
			at:   func(c *Config) any { return &c.Postgres.Publication },
		},
		{
			Name: "postgres.tables", Flag: "table", Group: groupPostgres, Default: "public.outbox_events", Global: true,
			Help: "outbox table, as schema.table; repeatable; columns are mapped in the file",
			at:   func(c *Config) any { return &c.Postgres.Tables },
		},
		{
			Name: "postgres.status_interval", Flag: "status-interval", Group: groupPostgres, Default: "10s",
			Help: "longest time between two status updates to PostgreSQL, at most 10s",
			at:   func(c *Config) any { return &c.Postgres.StatusInterval },
		},
		{
			Name: "postgres.confirm_interval", Flag: "confirm-interval", Group: groupPostgres, Default: "100ms",
			Help: "shortest time between two confirmations to PostgreSQL",
			at:   func(c *Config) any { return &c.Postgres.ConfirmInterval },
		},
		{
			Name: "postgres.poll_interval", Flag: "poll-interval", Group: groupPostgres, Default: "10s",
			Help: "how often slot, publication and tables are looked at, at most 60s",
			at:   func(c *Config) any { return &c.Postgres.PollInterval },
		},
		{
			Name: "postgres.snapshot", Flag: "snapshot", Group: groupPostgres, Default: SnapshotNone, Global: true,
			Enum: []string{SnapshotNone, SnapshotInitial},
			Help: "initial publishes, once, the rows that were in the tables before the slot; none does not",
			at:   func(c *Config) any { return &c.Postgres.Snapshot },
		},

		{
			Name: "kafka.brokers", Flag: "brokers", Group: groupKafka, Global: true,
			Help: "brokers to start from, as host:port; port 9092 when left out",
			at:   func(c *Config) any { return &c.Kafka.Brokers },
		},
		{
			Name: "kafka.client_id", Flag: "kafka-client-id", Group: groupKafka,
			Help: "client id shown by the brokers; walpost-<slot> when empty",
			at:   func(c *Config) any { return &c.Kafka.ClientID },
		},
		{
			Name: "kafka.compression", Flag: "kafka-compression", Group: groupKafka, Default: "none",
			Enum: []string{"none", "gzip", "snappy", "lz4", "zstd"},
			Help: "compression of record batches",
			at:   func(c *Config) any { return &c.Kafka.Compression },
		},
		{
			Name: "kafka.max_batch_bytes", Flag: "kafka-max-batch-bytes", Group: groupKafka, Default: "1MB",
			Help: "largest record batch; keep it below the topics' max.message.bytes",
			at:   func(c *Config) any { return &c.Kafka.MaxBatchBytes },
		},
		{
			Name: "kafka.max_request_bytes", Flag: "kafka-max-request-bytes", Group: groupKafka, Default: "1MB",
			Help: "largest produce request, which carries batches of many partitions; not less than kafka.max_batch_bytes when not set",
			at:   func(c *Config) any { return &c.Kafka.MaxRequestBytes },
		},
		{
			Name: "kafka.request_timeout", Flag: "kafka-request-timeout", Group: groupKafka, Default: "10s",
			Help: "how long one request may take before it is tried again",
			at:   func(c *Config) any { return &c.Kafka.RequestTimeout },
		},
		{
			Name: "kafka.tls.enabled", Flag: "kafka-tls", Group: groupKafka, Default: "false",
			Help: "TLS to the brokers",
			at:   func(c *Config) any { return &c.Kafka.TLS.Enabled },
		},
		{
			Name: "kafka.tls.ca_file", Flag: "kafka-tls-ca-file", Group: groupKafka,
			Help: "PEM file with the certificate authorities; the system's when empty",
			at:   func(c *Config) any { return &c.Kafka.TLS.CAFile },
		},
		{
			Name: "kafka.tls.cert_file", Flag: "kafka-tls-cert-file", Group: groupKafka,
			Help: "PEM file with the client certificate",
			at:   func(c *Config) any { return &c.Kafka.TLS.CertFile },
		},
		{
			Name: "kafka.tls.key_file", Flag: "kafka-tls-key-file", Group: groupKafka,
			Help: "PEM file with the client certificate's key",
			at:   func(c *Config) any { return &c.Kafka.TLS.KeyFile },
		},
		{
			Name: "kafka.tls.server_name", Flag: "kafka-tls-server-name", Group: groupKafka,
			Help: "name to expect in the brokers' certificates; each broker's host when empty",
			at:   func(c *Config) any { return &c.Kafka.TLS.ServerName },
		},
		{
			Name: "kafka.tls.insecure_skip_verify", Flag: "kafka-tls-insecure-skip-verify", Group: groupKafka, Default: "false",
			Help: "accept any certificate: for trying things only",
			at:   func(c *Config) any { return &c.Kafka.TLS.InsecureSkipVerify },
		},
		{
			Name: "kafka.sasl.mechanism", Flag: "kafka-sasl-mechanism", Group: groupKafka,
			Enum: []string{SASLPlain, SASLScramSHA256, SASLScramSHA512},
			Help: "SASL mechanism; none when empty",
			at:   func(c *Config) any { return &c.Kafka.SASL.Mechanism },
		},
		{
			Name: "kafka.sasl.username", Flag: "kafka-sasl-username", Group: groupKafka,
			Help: "SASL user name",
			at:   func(c *Config) any { return &c.Kafka.SASL.Username },
		},
		{
			Name: "kafka.sasl.password", Flag: "kafka-sasl-password", Group: groupKafka, Secret: true, NoFlag: true,
			Help: "SASL password",
			at:   func(c *Config) any { return &c.Kafka.SASL.Password },
		},
		{
			Name: "kafka.sasl.allow_plaintext", Flag: "kafka-sasl-allow-plaintext", Group: groupKafka, Default: "false",
			Help: "let PLAIN send the password over a connection without TLS",
			at:   func(c *Config) any { return &c.Kafka.SASL.AllowPlaintext },
		},

		{
			Name: "topic", Flag: "topic", Group: groupTopics, Default: "outbox.event.<aggregate_type>", Global: true,
			Help: "topic of an event, as a template",
			at:   func(c *Config) any { return &c.Topic },
		},
		{
			Name: "topics.allow", Flag: "topics-allow", Group: groupTopics,
			Help: "topics that may be written, as names or patterns with *, ? and [a-z]; all when empty",
			at:   func(c *Config) any { return &c.Topics.Allow },
		},
		{
			Name: "topics.create", Flag: "topics-create", Group: groupTopics, Default: "false",
			Help: "create a missing topic instead of holding its events",
			at:   func(c *Config) any { return &c.Topics.Create },
		},
		{
			Name: "topics.partitions", Flag: "topics-partitions", Group: groupTopics, Default: "-1",
			Help: "partitions of a created topic; -1 takes the broker's default",
			at:   func(c *Config) any { return &c.Topics.Partitions },
		},
		{
			Name: "topics.replication_factor", Flag: "topics-replication-factor", Group: groupTopics, Default: "-1",
			Help: "replicas of a created topic; -1 takes the broker's default",
			at:   func(c *Config) any { return &c.Topics.ReplicationFactor },
		},
		{
			Name: "topics.configs", Flag: "topics-config", Group: groupTopics,
			Help: "settings of a created topic, such as min.insync.replicas=2; repeatable",
			at:   func(c *Config) any { return &c.Topics.Configs },
		},

		{
			Name: "sink", Flag: "sink", Group: groupRelay, Default: SinkKafka,
			Enum: []string{SinkKafka, SinkStdout},
			Help: "where events go; stdout prints JSON lines and confirms nothing, for trying things",
			at:   func(c *Config) any { return &c.Sink },
		},
		{
			Name: "relay.in_flight_bytes", Flag: "in-flight-bytes", Group: groupRelay, Default: "6MiB",
			Help: "memory for events that are not acknowledged yet, at least 1MiB; events above 1MiB have as much again",
			at:   func(c *Config) any { return &c.Relay.InFlightBytes },
		},
		{
			Name: "relay.drain_timeout", Flag: "drain-timeout", Group: groupRelay, Default: "20s",
			Help: "how long a stop waits for events in flight",
			at:   func(c *Config) any { return &c.Relay.DrainTimeout },
		},
		{
			// 8642 lies outside 9090-9999, where the exporters of the
			// Prometheus world have their ports.
			Name: "admin.listen", Flag: "admin-listen", Group: groupRelay, Default: ":8642",
			Help: "address of probes and metrics; off turns them off",
			at:   func(c *Config) any { return &c.Admin.Listen },
		},

		{
			Name: "debezium.config", Flag: "debezium", Group: groupDebezium, Global: true,
			Help: "a Debezium connector's configuration, used as it is: .json or .properties",
			at:   func(c *Config) any { return &c.Debezium.Config },
		},
		{
			Name: "debezium.worker", Flag: "worker", Group: groupDebezium, Global: true,
			Help: "the Connect worker's .properties, for brokers and converters that the connector leaves to it",
			at:   func(c *Config) any { return &c.Debezium.Worker },
		},
		{
			Name: "debezium.version", Flag: "debezium-version", Group: groupDebezium, Default: "3.6",
			Help: "version of Debezium whose records are reproduced",
			at:   func(c *Config) any { return &c.Debezium.Version },
		},
		{
			Name: "debezium.context_headers", Flag: "debezium-context-headers", Group: groupDebezium, Default: "true",
			Help: "send the __debezium.context headers that this version sends",
			at:   func(c *Config) any { return &c.Debezium.ContextHeaders },
		},
		{
			Name: "debezium.java_version", Flag: "debezium-java-version", Group: groupDebezium, Default: "21",
			Help: "version of Java that the connector ran on; before 19, some very large and small floating-point numbers have another text",
			at:   func(c *Config) any { return &c.Debezium.JavaVersion },
		},
		{
			Name: "debezium.reproduce_debug_text", Flag: "debezium-reproduce-debug-text", Group: groupDebezium, Default: "false",
			Help: "accept configurations whose values are Java's debug text, and reproduce it",
			at:   func(c *Config) any { return &c.Debezium.ReproduceText },
		},
		{
			Name: "debezium.properties", Flag: "debezium-properties", Group: groupDebezium, NoFlag: true,
			Help: "the connector's keys that decide about records, instead of its file",
			at:   func(c *Config) any { return &c.Debezium.Properties },
		},

		{
			Name: "log.level", Flag: "log-level", Group: groupLog, Default: "info", Global: true,
			Enum: []string{"debug", "info", "warn", "error"},
			Help: "least level that is logged",
			at:   func(c *Config) any { return &c.Log.Level },
		},
		{
			Name: "log.format", Flag: "log-format", Group: groupLog, Default: "auto", Global: true,
			Enum: []string{"auto", "console", "json"},
			Help: "log format; auto is console on a terminal and json elsewhere",
			at:   func(c *Config) any { return &c.Log.Format },
		},
	}
}
