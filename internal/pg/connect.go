package pg

import (
	"context"
	"maps"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// What holds where the DSN says nothing.
const (
	connectTimeout   = 10 * time.Second
	statementTimeout = "10s"
)

// pinned decides the text form of values. Roles, databases and the
// configuration file can all change it; a header must not change with them.
var pinned = map[string]string{
	"client_encoding":    "UTF8",
	"DateStyle":          "ISO, MDY",
	"IntervalStyle":      "postgres",
	"TimeZone":           "UTC",
	"extra_float_digits": "1", // any value above 0 gives the shortest exact form
	"bytea_output":       "hex",
}

// Connect opens an ordinary connection. application is its application_name.
// An error is an *Error.
func Connect(ctx context.Context, cfg *pgx.ConnConfig, application string) (*pgx.Conn, error) {
	cfg = cfg.Copy()
	prepare(&cfg.Config, application)
	if _, ok := cfg.RuntimeParams["statement_timeout"]; !ok {
		cfg.RuntimeParams["statement_timeout"] = statementTimeout
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, describeConnect(err, &cfg.Config)
	}
	return conn, nil
}

// ReplicationConfig makes the configuration of a logical replication
// connection. wal_sender_timeout is left to the caller.
func ReplicationConfig(cfg *pgx.ConnConfig, application string) *pgconn.Config {
	repl := cfg.Config.Copy()
	prepare(repl, application)
	repl.RuntimeParams["replication"] = "database"
	// A role's statement_timeout must not end what is meant to run for ever.
	repl.RuntimeParams["statement_timeout"] = "0"
	// From 18 on the server only warns that it leaves rows out. A role may not
	// want to hear warnings; who streams must.
	set(repl.RuntimeParams, "client_min_messages", "warning")
	return repl
}

// ConnectReplication opens a connection with what ReplicationConfig made. An
// error is an *Error.
func ConnectReplication(ctx context.Context, cfg *pgconn.Config) (*pgconn.PgConn, error) {
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, describeConnect(err, cfg)
	}
	return conn, nil
}

func prepare(cfg *pgconn.Config, application string) {
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTimeout
	}
	if cfg.RuntimeParams == nil {
		cfg.RuntimeParams = map[string]string{}
	}
	cfg.DialFunc = dial
	for name, value := range pinned {
		set(cfg.RuntimeParams, name, value)
	}
	cfg.RuntimeParams["application_name"] = application
}

// set replaces what the DSN says, in whatever case it writes the name. A
// parameter wins over the one named options, over the role and the database.
func set(parameters map[string]string, name, value string) {
	maps.DeleteFunc(parameters, func(other, _ string) bool { return strings.EqualFold(other, name) })
	parameters[name] = value
}

func address(host string, port uint16) string {
	if strings.HasPrefix(host, "/") {
		return host + ":" + strconv.Itoa(int(port))
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
