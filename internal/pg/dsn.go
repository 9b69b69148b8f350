package pg

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const dsnWay = `write it as "postgres://user@host:5432/database?sslmode=verify-full" or "host=… dbname=… user=…"; ` +
	`in a URL, escape : / ? # @ of a password as %3A %2F %3F %23 %40`

// dsnFaults are the driver's words for what is wrong with a DSN. Only these are
// passed on: everything else in its errors may be a piece of the DSN, and a
// piece of a broken DSN may be a password.
var dsnFaults = []struct{ driver, ours string }{
	{"invalid port", "the port is not a number"},
	{"port numbers to", "there are not as many ports as hosts"},
	{"invalid connect_timeout", "connect_timeout is not a number of seconds"},
	{"sslmode is invalid", "sslmode is none of disable, allow, prefer, require, verify-ca, verify-full"},
	{"unknown target_session_attrs", "target_session_attrs is none of any, read-write, read-only, primary, standby, prefer-standby"},
	{"failed to read service", "the service is not in the service file"},
	{"sslpassword", "the client key cannot be read with sslpassword"},
	{"unable to add CA to cert pool", "sslrootcert holds no certificate"},
	{"unable to read CA file", "the file of sslrootcert cannot be read"},
	{"unable to read cert", "the files of sslcert and sslkey cannot be read"},
	{"unable to load cert", "the files of sslcert and sslkey cannot be read"},
	{"unable to read sslkey", "the file of sslkey cannot be read"},
	{`both "sslcert" and "sslkey" are required`, "sslcert and sslkey go together"},
	{"failed to configure TLS", "its TLS settings do not fit together"},
}

// parameterName is what a run-time parameter can be called. Anything else in
// its place is a DSN that was split at the wrong character.
var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_$]*)?$`)

// hostName is a name, an address or the directory of a socket.
var hostName = regexp.MustCompile(`^(/.*|[\pL\pN._:%-]+)$`)

// ParseDSN reads a DSN in URL or keyword=value form. What it leaves out comes
// from libpq's PG* variables, the service file and the password file. The
// error never quotes the DSN.
func ParseDSN(dsn string) (*pgx.ConnConfig, error) {
	if strings.HasPrefix(dsn, "jdbc:postgresql://") {
		return nil, badDSN("it is a JDBC URL: remove jdbc: in front, and put user and password before the host")
	}
	if scheme, _, ok := strings.Cut(dsn, "://"); ok && scheme != "postgres" && scheme != "postgresql" && !strings.ContainsAny(scheme, "= ") {
		return nil, badDSN("it does not begin with postgres://")
	}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, badDSN(dsnFault(err))
	}
	for name := range cfg.RuntimeParams {
		if !parameterName.MatchString(name) {
			return nil, badDSN("it is neither a URL nor a list of keyword=value")
		}
	}
	// A password that was not escaped ends up in the host or the database; as
	// such it would be printed and looked up.
	for _, host := range hostNames(&cfg.Config) {
		if !hostName.MatchString(host) {
			return nil, badDSN("a host name holds a character that none can have")
		}
	}
	if strings.Contains(cfg.Database, "@") {
		return nil, badDSN("the database name holds an @")
	}
	if cfg.Database == "" {
		cfg.Database = cfg.User // as the server would
	}
	// No prepared statements: they would outlive the table definitions they were
	// made for.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	if cfg.ValidateConnect == nil && len(servers(&cfg.Config)) > 1 {
		// Of several hosts the primary is meant; the others are there for the
		// day after a switch-over.
		cfg.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	return cfg, nil
}

func badDSN(reason string) error {
	return &Error{Text: "the DSN cannot be read: " + reason, Way: dsnWay, permanent: true}
}

func dsnFault(err error) string {
	// The DSN comes first in the driver's text, so the last match is the
	// driver's and not the DSN's.
	text, best, found := err.Error(), "it is neither a URL nor a list of keyword=value", -1
	for _, f := range dsnFaults {
		if i := strings.LastIndex(text, f.driver); i > found {
			best, found = f.ours, i
		}
	}
	return best
}

func hostNames(cfg *pgconn.Config) []string {
	names := []string{cfg.Host}
	for _, f := range cfg.Fallbacks {
		names = append(names, f.Host)
	}
	return names
}

// Address names the server of a DSN, for people.
func Address(cfg *pgx.ConnConfig) string {
	if cfg == nil {
		return "PostgreSQL"
	}
	return addresses(&cfg.Config)
}

func addresses(cfg *pgconn.Config) string { return strings.Join(servers(cfg), ", ") }

// servers lists the different addresses; sslmode=prefer has each twice.
func servers(cfg *pgconn.Config) []string {
	list := []string{address(cfg.Host, cfg.Port)}
	for _, f := range cfg.Fallbacks {
		if a := address(f.Host, f.Port); !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// notChosen recognises the driver's answers when target_session_attrs refuses a
// server.
func notChosen(err error) bool {
	return errors.Is(err, pgconn.ErrReadOnlyConnection) || errors.Is(err, pgconn.ErrStandbyConnection) ||
		errors.Is(err, pgconn.ErrPrimaryConnection) || errors.Is(err, pgconn.ErrReadWriteConnection)
}
