package pg

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// refuse is a server that answers every start-up with one error.
func refuse(t *testing.T, code, message string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			backend := pgproto3.NewBackend(conn, conn)
			if _, err := backend.ReceiveStartupMessage(); err == nil {
				backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: code, Message: message})
				_ = backend.Flush()
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

func TestConnectSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code, message string
		text, way     string
		passing       bool
	}{
		"wrong password": {
			code: "28P01", message: `password authentication failed for user "relay"`,
			text: `password authentication failed for user "relay" (SQLSTATE 28P01)`,
			way:  `check the password of role "relay" in --dsn, WALPOST_DSN (or _FILE), PGPASSWORD or the password file`,
		},
		"password in the message": {
			code: "28P01", message: "no such secret: " + secret,
			text: "no such secret: ******** (SQLSTATE 28P01)",
			way:  `check the password of role "relay" in --dsn, WALPOST_DSN (or _FILE), PGPASSWORD or the password file`,
		},
		"pg_hba": {
			code: "28000", message: `no pg_hba.conf entry for host "10.0.0.9", user "relay", database "app", SSL encryption`,
			text: `no pg_hba.conf entry for host "10.0.0.9", user "relay", database "app", SSL encryption (SQLSTATE 28000)`,
			way:  `add to the server's pg_hba.conf, and reload it: hostssl "app" "relay" <client address>/32 scram-sha-256`,
		},
		"pg_hba without TLS": {
			code: "28000", message: `no pg_hba.conf entry for host "10.0.0.9", user "relay", database "app", no encryption`,
			text: `no pg_hba.conf entry for host "10.0.0.9", user "relay", database "app", no encryption (SQLSTATE 28000)`,
			way:  `the server may take TLS connections only: set sslmode=require; or add to the server's pg_hba.conf, and reload it: hostssl "app" "relay" <client address>/32 scram-sha-256`,
		},
		"no login": {
			code: "28000", message: `role "relay" is not permitted to log in`,
			text: `role "relay" is not permitted to log in (SQLSTATE 28000)`,
			way:  `alter role "relay" login`,
		},
		"no database": {
			code: "3D000", message: `database "app" does not exist`,
			text: `database "app" does not exist (SQLSTATE 3D000)`,
			way:  `name an existing database in --dsn, or create it: create database "app"`,
		},
		"no replication right": {
			code: "42501", message: "must be superuser or replication role to start walsender",
			text: "must be superuser or replication role to start walsender (SQLSTATE 42501)",
			way:  `alter role "relay" replication; on a managed service grant the provider's replication role instead`,
		},
		"no connect right": {
			code: "42501", message: `permission denied for database "app"`,
			text: `permission denied for database "app" (SQLSTATE 42501)`,
			way:  `grant connect on database "app" to "relay"`,
		},
		"too many connections": {
			code: "53300", message: "sorry, too many clients already",
			text:    "sorry, too many clients already (SQLSTATE 53300)",
			way:     "raise max_connections, or the connection limit of the role or database, or close connections that are not needed",
			passing: true,
		},
		"too many walsenders": {
			code: "53300", message: "number of requested standby connections exceeds max_wal_senders (currently 10)",
			text:    "number of requested standby connections exceeds max_wal_senders (currently 10) (SQLSTATE 53300)",
			way:     "raise max_wal_senders and restart the server, or end a replication client that is not needed",
			passing: true,
		},
		"starting": {
			code: "57P03", message: "the database system is starting up",
			text:    "the database system is starting up (SQLSTATE 57P03)",
			way:     "wait until the server has started, or until it accepts connections again",
			passing: true,
		},
		"parameter": {
			code: "42704", message: `unrecognized configuration parameter "foo"`,
			text: `unrecognized configuration parameter "foo" (SQLSTATE 42704)`,
			way:  "take the parameter that the server does not know out of --dsn",
		},
		"PgBouncer": {
			code: "08P01", message: "unsupported startup parameter: replication",
			text: "a connection pooler answers instead of the server: unsupported startup parameter: replication",
			way:  "use the direct endpoint of the server in --dsn: poolers do not pass replication on",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := refuse(t, tc.code, tc.message)
			cfg, err := ParseDSN("postgres://relay:" + secret + "@" + at + "/app?sslmode=disable")
			if err != nil {
				t.Fatal(err)
			}
			_, err = Connect(t.Context(), cfg, "walpost/x/test")
			e, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("got %v, want an *Error", err)
			}
			if want := "connect to PostgreSQL at " + at + ": " + tc.text; e.Error() != want {
				t.Errorf("got  %s\nwant %s", e.Error(), want)
			}
			if e.Hint() != tc.way {
				t.Errorf("got  %s\nwant %s", e.Hint(), tc.way)
			}
			if SQLState(err) != tc.code {
				t.Errorf("SQLSTATE %s", SQLState(err))
			}
			if IsPassing(err) != tc.passing {
				t.Errorf("passing is %v", IsPassing(err))
			}
			if text := fmt.Sprintf("%v %+v", e, e.Err); strings.Contains(text, secret) {
				t.Errorf("the password is in %s", text)
			}
		})
	}
}

func TestConnectUnreachable(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	_ = l.Close() // nobody listens there any more
	cfg, err := ParseDSN("postgres://relay:" + secret + "@" + at + "/app")
	if err != nil {
		t.Fatal(err)
	}
	_, err = ConnectReplication(t.Context(), ReplicationConfig(cfg, "walpost/x/stream"))
	if want := "connect to PostgreSQL at " + at + ": connection refused"; err == nil || err.Error() != want {
		t.Fatalf("got %v, want %s", err, want)
	}
	e := Describe(err)
	if want := "start the server, or check host and port in --dsn and listen_addresses of the server"; e.Hint() != want {
		t.Errorf("hint %q", e.Hint())
	}
	if !IsPassing(err) {
		t.Error("an unreachable server does not pass")
	}
}
