package config

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

const dsnWay = "write postgres://user@host:5432/database or \"host=… dbname=… user=…\"; in a URL, percent-encode @ : / ? # % in user and password"

// checkDSN never quotes the connection string, nor what the driver says about
// it: in a broken one any part can be the password.
func (l *loader) checkDSN() {
	const name = "postgres.dsn"
	if l.bad[name] {
		return
	}
	if l.cfg.Postgres.DSN == "" {
		if l.needs(NeedPostgres) && l.env["PGHOST"] == "" && l.env["PGSERVICE"] == "" {
			l.failAt(name, "no PostgreSQL server is named", "set --dsn-file, WALPOST_DSN or --dsn; or libpq's PGHOST or PGSERVICE")
		}
		return
	}
	if bad := parseDSN(l.cfg.Postgres.DSN); bad != nil {
		l.failAt(name, bad.what, bad.way)
	}
}

func parseDSN(dsn string) *fault {
	scheme, _, hasScheme := strings.Cut(dsn, "://")
	isURL := scheme == "postgres" || scheme == "postgresql"
	if hasScheme && !isURL && !strings.ContainsAny(scheme, "= '") {
		what := "the connection string is not a PostgreSQL URL"
		if scheme == "jdbc:postgresql" {
			return &fault{what + " but a JDBC one", "remove jdbc: in front, and put user and password before the host: postgres://user@host:5432/database"}
		}
		return &fault{what, dsnWay}
	}
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return dsnFault(err)
	}
	hosts := []string{cfg.Host}
	for _, f := range cfg.Fallbacks {
		hosts = append(hosts, f.Host)
	}
	for _, host := range hosts {
		// The rest of a password with an @ in it lands in the host.
		if isURL && strings.Contains(host, "@") {
			return &fault{"the connection string has an @ in its host", dsnWay}
		}
	}
	return nil
}

// dsnFault recognises what the driver reports, by fixed parts of its texts.
func dsnFault(err error) *fault {
	text := ""
	var parseErr *pgconn.ParseConfigError
	if errors.As(err, &parseErr) {
		// What stands before the cause can quote the string; what is looked for
		// below are the driver's own words, and none of the string is printed.
		text = err.Error()
	}
	switch {
	case strings.Contains(text, "sslmode is invalid"):
		return &fault{"the connection string has an unknown sslmode", "use disable, allow, prefer, require, verify-ca or verify-full"}
	case strings.Contains(text, "failed to configure TLS"):
		return &fault{"the TLS settings of the connection string cannot be used", "check that sslrootcert, sslcert and sslkey name readable PEM files"}
	case strings.Contains(text, "failed to read service"):
		return &fault{"the service of the connection string is not known", "check PGSERVICEFILE and the service's name in it"}
	case strings.HasSuffix(text, "`: invalid port"):
		return &fault{"the connection string has an invalid port", dsnWay}
	default:
		return &fault{"the connection string cannot be read", dsnWay}
	}
}
