package pg

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// Describe turns the error of a connection attempt, or of a connection that
// broke, into one that says what to do. An *Error is returned as it is.
func Describe(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if ce, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return describeConnect(err, ce.Config)
	}
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok {
		text, way := describeServer(pe, nil)
		return &Error{Text: "PostgreSQL: " + text, Way: way, SQLState: pe.Code, Err: err, permanent: !IsPassing(err)}
	}
	text, way := describeNetwork(err)
	return &Error{Text: "the connection to PostgreSQL broke: " + text, Way: way, Err: err}
}

// describeConnect leaves the driver's own error out of the chain, because that
// holds the configuration and with it the password.
func describeConnect(err error, cfg *pgconn.Config) *Error {
	if ce, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		err = ce.Unwrap()
	}
	e := &Error{Err: err, SQLState: SQLState(err), permanent: !IsPassing(err)}
	var what string
	switch pe, ok := errors.AsType[*pgconn.PgError](err); {
	case throughPooler(err):
		what = "a connection pooler answers instead of the server"
		if ok {
			what += ": " + pe.Message
		}
		e.Way = "use the direct endpoint of the server in --dsn: poolers do not pass replication on"
	case ok:
		what, e.Way = describeServer(pe, cfg)
	default:
		what, e.Way = describeNetwork(err)
	}
	e.Text = scrub("connect to PostgreSQL at "+addresses(cfg)+": "+what, cfg.Password)
	e.Err = &scrubbed{err: err, password: cfg.Password}
	return e
}

func describeServer(pe *pgconn.PgError, cfg *pgconn.Config) (what, way string) {
	what = fmt.Sprintf("%s (SQLSTATE %s)", pe.Message, pe.Code)
	user, database := "the role", "the database"
	if cfg != nil {
		user, database = QuoteIdent(cfg.User), QuoteIdent(cfg.Database)
	}
	switch pe.Code {
	case "28P01":
		way = "check the password of role " + user + " in --dsn, WALPOST_DSN (or _FILE), PGPASSWORD or the password file"
	case "28000":
		way = describeRefusal(pe.Message, user, database)
	case "3D000":
		way = "name an existing database in --dsn, or create it: create database " + database
	case "42501":
		if strings.Contains(strings.ReplaceAll(strings.ToLower(pe.Message), " ", ""), "walsender") {
			way = "alter role " + user + " replication; on a managed service grant the provider's replication role instead"
		} else {
			way = "grant connect on database " + database + " to " + user
		}
	case "53300":
		if strings.Contains(pe.Message, "max_wal_senders") || strings.Contains(pe.Message, "standby connections") {
			way = "raise max_wal_senders and restart the server, or end a replication client that is not needed"
		} else {
			way = "raise max_connections, or the connection limit of the role or database, or close connections that are not needed"
		}
	case "57P03":
		way = "wait until the server has started, or until it accepts connections again"
	case "57P01", "57P02":
		way = "the server stopped or an administrator ended the connection; it can be opened again once the server is up"
	case "42704", "22023":
		if strings.Contains(pe.Message, "parameter") {
			way = "take the parameter that the server does not know out of --dsn"
		}
	}
	return what, way
}

func describeRefusal(message, user, database string) string {
	if strings.Contains(message, "is not permitted to log in") {
		return "alter role " + user + " login"
	}
	if !strings.Contains(message, "pg_hba.conf") {
		return "check role " + user + ": it must exist, and pg_hba.conf must let it use this kind of authentication"
	}
	line := "add to the server's pg_hba.conf, and reload it: hostssl " + database + " " + user + " <client address>/32 scram-sha-256"
	if strings.Contains(message, "no encryption") || strings.Contains(message, "SSL off") {
		return "the server may take TLS connections only: set sslmode=require; or " + line
	}
	return line
}

func describeNetwork(err error) (what, way string) {
	// sslmode=prefer tries twice, and the second error is the one that counts.
	if what := tlsFault(err); what != "" && !isNetwork(err) {
		if strings.Contains(what, "refused TLS") {
			return what, "turn TLS on there (ssl=on), or set sslmode=disable on a network that you trust"
		}
		return what, "name the authority's certificate in sslrootcert and the server as its certificate does in host"
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return fmt.Sprintf("no such host %q", dns.Name), "check the host in --dsn and the name server"
		}
		return fmt.Sprintf("looking up host %q: %s", dns.Name, dns.Err), "check the host in --dsn and the name server"
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused", "start the server, or check host and port in --dsn and listen_addresses of the server"
	case errors.Is(err, syscall.ENOENT):
		return "no socket there", "start the server, or give a host in --dsn: without one the local socket is tried"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to the host", "check host in --dsn, routes and firewalls"
	case notChosen(err):
		return "no server in the list is what target_session_attrs asks for", "name the primary, or all hosts of the cluster, in --dsn"
	case errors.Is(err, context.Canceled):
		return "cancelled", ""
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return "no answer in time", "check host and port in --dsn and firewalls; connect_timeout in --dsn allows more time"
	case isNetwork(err):
		return "the connection was closed", "check that a PostgreSQL server listens there, and its log"
	}
	return oneLine(err.Error()), "check --dsn, and the log of the server"
}

func isTimeout(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}

// tlsFault says what is wrong with TLS, or nothing.
func tlsFault(err error) string {
	if strings.Contains(err.Error(), "server refused TLS connection") {
		return "the server refused TLS"
	}
	for e := err; e != nil; {
		switch fault := e.(type) {
		case x509.UnknownAuthorityError, x509.HostnameError, x509.CertificateInvalidError, *tls.CertificateVerificationError, tls.RecordHeaderError:
			return "TLS: " + oneLine(fault.Error())
		}
		if ne, ok := e.(net.Error); ok && isTLSAlert(ne) {
			return "TLS: " + oneLine(ne.Error())
		}
		switch u := e.(type) {
		case interface{ Unwrap() error }:
			e = u.Unwrap()
		case interface{ Unwrap() []error }:
			for _, inner := range u.Unwrap() {
				if text := tlsFault(inner); text != "" {
					return text
				}
			}
			return ""
		default:
			return ""
		}
	}
	return ""
}

// isTLSAlert says whether err is the other side's refusal inside the TLS
// handshake, which crypto/tls dresses up as a network error.
func isTLSAlert(err net.Error) bool {
	op, ok := err.(*net.OpError)
	return ok && (op.Op == "remote error" || op.Op == "local error")
}

// scrubbed is a cause without the password in its text.
type scrubbed struct {
	err      error
	password string
}

func (s *scrubbed) Error() string { return scrub(oneLine(s.err.Error()), s.password) }
func (s *scrubbed) Unwrap() error { return s.err }

// scrub takes the password out of a text made by somebody else. One shorter
// than four characters is left: it would be found in ordinary words, and no
// text above is made of it.
func scrub(text, password string) string {
	if len(password) < 4 {
		return text
	}
	return strings.ReplaceAll(text, password, "********")
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
