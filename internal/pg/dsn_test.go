package pg

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const secret = "s3cr3tpw"

func TestParseDSNRefusesWithoutQuoting(t *testing.T) {
	t.Parallel()
	const neither = "the DSN cannot be read: it is neither a URL nor a list of keyword=value"
	for name, tc := range map[string]struct{ dsn, want string }{
		"other scheme":        {"mysql://u:" + secret + "@h/db?sslmode=disable", "the DSN cannot be read: it does not begin with postgres://"},
		"typing error":        {"postgre://u:" + secret + "@h/db", "the DSN cannot be read: it does not begin with postgres://"},
		"no scheme":           {"u:" + secret + "@h/db?sslmode=disable", neither},
		"words":               {secret, neither},
		"open quote":          {"host=h password='" + secret, neither},
		"slash in password":   {"postgres://u:a/" + secret + "@h:5432/db", "the DSN cannot be read: the port is not a number"},
		"digits before slash": {"postgres://u:12/" + secret + "@h:5432/db", "the DSN cannot be read: the database name holds an @"},
		"at in password":      {"postgres://u:a@" + secret + "@h:5432/db", "the DSN cannot be read: a host name holds a character that none can have"},
		"port":                {"host=h port=" + secret, "the DSN cannot be read: the port is not a number"},
		"ports":               {"host=a,b,c port=1,2 password=" + secret, "the DSN cannot be read: there are not as many ports as hosts"},
		"timeout":             {"host=h connect_timeout=" + secret, "the DSN cannot be read: connect_timeout is not a number of seconds"},
		"sslmode":             {"host=h sslmode=" + secret, "the DSN cannot be read: sslmode is none of disable, allow, prefer, require, verify-ca, verify-full"},
		"attributes":          {"host=h target_session_attrs=" + secret, "the DSN cannot be read: target_session_attrs is none of any, read-write, read-only, primary, standby, prefer-standby"},
		"authority":           {"host=h sslmode=verify-ca sslrootcert=/nowhere/" + secret, "the DSN cannot be read: the file of sslrootcert cannot be read"},
		"service":             {"service=" + secret, "the DSN cannot be read: the service is not in the service file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseDSN(tc.dsn)
			e, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("got %v, want an *Error", err)
			}
			if e.Error() != tc.want {
				t.Errorf("got  %s\nwant %s", e.Error(), tc.want)
			}
			if e.Hint() != dsnWay {
				t.Errorf("hint %q", e.Hint())
			}
			if errors.Unwrap(err) != nil {
				t.Errorf("the cause %v is in the chain and may hold the DSN", errors.Unwrap(err))
			}
			if IsPassing(err) {
				t.Error("a broken DSN passes")
			}
		})
	}
}

func TestParseDSN(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		dsn, address string
		primary      bool
	}{
		"url":           {"postgres://u:p@db.example.com:6432/orders?sslmode=require", "db.example.com:6432", false},
		"keywords":      {"host=db.example.com port=6432 user=u dbname=orders", "db.example.com:6432", false},
		"ipv6":          {"postgres://u@[::1]:5432/orders", "[::1]:5432", false},
		"socket":        {"host=/run/postgresql user=u dbname=orders", "/run/postgresql:5432", false},
		"several hosts": {"postgres://u@a,b:5433/orders", "a:5432, b:5433", true},
		"any of them":   {"postgres://u@a/orders?target_session_attrs=primary", "a:5432", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := ParseDSN(tc.dsn)
			if err != nil {
				t.Fatal(err)
			}
			if got := Address(cfg); got != tc.address {
				t.Errorf("address %q, want %q", got, tc.address)
			}
			if got := cfg.ValidateConnect != nil; got != tc.primary {
				t.Errorf("asks for a primary: %v, want %v", got, tc.primary)
			}
			if cfg.User != "u" || cfg.Database != "orders" {
				t.Errorf("user %q, database %q", cfg.User, cfg.Database)
			}
			if cfg.DefaultQueryExecMode != pgx.QueryExecModeExec {
				t.Errorf("statements are prepared: %v", cfg.DefaultQueryExecMode)
			}
		})
	}
}

func TestParseDSNWithoutADatabase(t *testing.T) {
	t.Parallel()
	cfg, err := ParseDSN("postgres://relay@h")
	if err != nil || cfg.Database != "relay" {
		t.Errorf("database %q, %v; the server takes the user's name", cfg.Database, err)
	}
}

func TestReplicationConfigPinsTheTextForm(t *testing.T) {
	t.Parallel()
	cfg, err := ParseDSN("postgres://u@h/db?datestyle=German&TimeZone=Asia/Tokyo&application_name=x&statement_timeout=5s&lock_timeout=1s&Client_Min_Messages=error")
	if err != nil {
		t.Fatal(err)
	}
	repl := ReplicationConfig(cfg, "walpost/orders/stream")
	want := map[string]string{
		"replication": "database", "application_name": "walpost/orders/stream", "statement_timeout": "0", "client_min_messages": "warning",
		"client_encoding": "UTF8", "DateStyle": "ISO, MDY", "IntervalStyle": "postgres", "TimeZone": "UTC",
		"extra_float_digits": "1", "bytea_output": "hex", "lock_timeout": "1s",
	}
	for name, value := range want {
		if got := repl.RuntimeParams[name]; got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	if len(repl.RuntimeParams) != len(want) {
		t.Errorf("parameters %v", repl.RuntimeParams)
	}
	if _, ok := cfg.RuntimeParams["replication"]; ok {
		t.Error("the configuration of side connections was changed too")
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ got, want string }{
		{QuoteIdent(`My "App"`), `"My ""App"""`},
		{QuoteQualified("public", "Out.Box"), `"public"."Out.Box"`},
		{QuoteLiteral(`it's`), `'it''s'`},
		{QuoteLiteral(`a\b'c`), `E'a\\b''c'`},
	} {
		if tc.got != tc.want {
			t.Errorf("got %s, want %s", tc.got, tc.want)
		}
	}
}

func TestIsPassing(t *testing.T) {
	t.Parallel()
	state := func(code string) error { return &pgconn.PgError{Severity: "FATAL", Code: code, Message: "m"} }
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":              {nil, false},
		"cancelled by us":      {context.Canceled, false},
		"deadline":             {context.DeadlineExceeded, true},
		"shutdown":             {state("57P01"), true},
		"crash":                {state("57P02"), true},
		"starting":             {state("57P03"), true},
		"too many connections": {state("53300"), true},
		"slots used up":        {state("53400"), false},
		"active slot":          {state("55006"), true},
		"connection failure":   {state("08006"), true},
		"password":             {state("28P01"), false},
		"no database":          {state("3D000"), false},
		"lost slot":            {state("55000"), false},
		"internal error":       {state("XX000"), false},
		"pooler":               {&pgconn.PgError{Code: "08P01", Message: "unsupported startup parameter: replication"}, false},
		"host named pooler":    {&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("db-pooler:5432: connection refused")}, true},
		"closed":               {pgconn.ErrConnClosed, true},
		"unknown":              {errors.New("what is this"), false},
		"wrapped":              {errors.Join(errors.New("x"), state("57P01")), true},
	} {
		if got := IsPassing(tc.err); got != tc.want {
			t.Errorf("%s: passing is %v, want %v", name, got, tc.want)
		}
	}
}

func TestDescribeBrokenConnection(t *testing.T) {
	t.Parallel()
	e := Describe(&pgconn.PgError{Code: "57P01", Message: "terminating connection due to administrator command"})
	if want := "PostgreSQL: terminating connection due to administrator command (SQLSTATE 57P01)"; e.Error() != want {
		t.Errorf("got %q", e.Error())
	}
	if !IsPassing(e) || e.SQLState != "57P01" || !strings.Contains(e.Hint(), "once the server is up") {
		t.Errorf("passing %v, state %s, hint %q", IsPassing(e), e.SQLState, e.Hint())
	}
	if Describe(nil) != nil {
		t.Error("no error is described")
	}
}
