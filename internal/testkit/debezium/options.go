package debezium

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Versions of what the pom names.
const (
	Version        = "3.6.1.Final"
	ConnectVersion = "4.3.1"
)

// Options says what worker to start.
type Options struct {
	// Name is the connector's; "" means "outbox". Offsets are kept by name.
	Name string
	// Connector is the connector's configuration; see Outbox. Required.
	Connector map[string]string
	// Brokers are Kafka's addresses. Required unless Worker has
	// bootstrap.servers.
	Brokers []string
	// Worker is added to the worker's properties and wins over our own.
	Worker map[string]string
	// Dir holds configuration, log and offsets and stays; "" means a temporary
	// folder that Close deletes.
	Dir string
	// Home is a folder of jars (Connect, Debezium and a logging backend); ""
	// means those that Maven resolves from the pom.
	Home string
	// Heap is the JVM's limit, such as "512m"; "" means 2g, as Connect's own
	// start script has.
	Heap string
	// Log receives what is worth saying; nil drops it.
	Log func(format string, args ...any)
}

func (o *Options) complete() error {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Name == "" {
		o.Name = "outbox"
	}
	if o.Heap == "" {
		o.Heap = "2g"
	}
	if len(o.Connector) == 0 {
		return errors.New("no connector configuration: fill Options.Connector, for instance from Outbox")
	}
	if len(o.Brokers) == 0 && o.Worker["bootstrap.servers"] == "" {
		return errors.New("no Kafka: fill Options.Brokers")
	}
	return nil
}

// worker returns the worker's properties.
func (o *Options) worker(offsets string, port int) string {
	const converter = "org.apache.kafka.connect.storage.StringConverter"
	p := map[string]string{
		"bootstrap.servers":            strings.Join(o.Brokers, ","),
		"key.converter":                converter,
		"value.converter":              converter,
		"offset.storage.file.filename": offsets,
		"listeners":                    fmt.Sprintf("http://127.0.0.1:%d", port),
	}
	maps.Copy(p, o.Worker)
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&out, "%s=%s\n", name, strings.ReplaceAll(p[name], `\`, `\\`))
	}
	return out.String()
}

// Outbox returns the configuration of a connector with the outbox event router
// for one table ("public.outboxevent") in Debezium's own column names, to be
// changed as wanted. It takes no snapshot, and uses the slot and the publication
// as they are.
func Outbox(dsn, slot, publication, table string) (map[string]string, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the connection string: %w", err)
	}
	return map[string]string{
		"connector.class":             "io.debezium.connector.postgresql.PostgresConnector",
		"tasks.max":                   "1",
		"topic.prefix":                "app",
		"database.hostname":           config.Host,
		"database.port":               fmt.Sprint(config.Port),
		"database.user":               config.User,
		"database.password":           config.Password,
		"database.dbname":             config.Database,
		"plugin.name":                 "pgoutput",
		"slot.name":                   slot,
		"publication.name":            publication,
		"publication.autocreate.mode": "disabled",
		"snapshot.mode":               "no_data",
		"table.include.list":          table,
		"tombstones.on.delete":        "false",
		"transforms":                  "outbox",
		"transforms.outbox.type":      "io.debezium.transforms.outbox.EventRouter",
	}, nil
}
