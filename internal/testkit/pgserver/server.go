package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/testkit/certs"
	"github.com/walpost/walpost/internal/testkit/proc"
)

// Server is a PostgreSQL server of ours. Its methods may be called from any
// goroutine.
type Server struct {
	opts     Options
	binaries Binaries
	user     proc.User
	dir      *proc.Dir
	certs    *certs.Files
	reserved *proc.Port // nil if the caller chose the port
	port     int

	mu      sync.Mutex // held while the server is started or stopped
	process *proc.Process
}

// Start starts a server and returns when it answers queries.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.Log == nil {
		opts.Log = func(string, ...any) {}
	}
	server, err := start(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return server, nil
}

func start(ctx context.Context, opts Options) (*Server, error) {
	user, err := proc.Unprivileged()
	if err != nil {
		return nil, err
	}
	binaries, err := Find(ctx, opts.Major, opts.Log)
	if err != nil {
		return nil, err
	}
	dir, err := proc.NewDir(ctx, "pg")
	if err != nil {
		return nil, err
	}
	s := &Server{opts: opts, binaries: binaries, user: user, dir: dir}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.StartAgain(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if opts.Password != "" {
		if err := s.setPassword(ctx); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	opts.Log("%s on port %d", s, s.port)
	return s, nil
}

// prepare makes everything that has to be there before the first start.
func (s *Server) prepare(ctx context.Context) error {
	s.port = s.opts.Port
	if s.port == 0 {
		port, err := proc.ReservePort()
		if err != nil {
			return err
		}
		s.reserved, s.port = port, port.Number
	}
	if s.opts.TLS {
		files, err := certs.Write(s.dir.Path, Superuser)
		if err != nil {
			return err
		}
		s.certs = files
	}
	// initdb, which runs as that user, creates the data directory in there.
	if err := s.user.Own(s.dir.Path); err != nil {
		return err
	}
	if err := s.initialise(ctx); err != nil {
		return err
	}
	conf := filepath.Join(s.path("data"), "postgresql.conf")
	file, err := os.OpenFile(conf, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "include '%s'\n", s.path("walpost.conf"))
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.WriteFile(s.path("walpost.conf"), []byte(s.config()), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(s.path("pg_hba.conf"), []byte(s.hba()), 0o600); err != nil {
		return err
	}
	return s.user.Own(s.dir.Path)
}

func (s *Server) setPassword(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.SocketDSN("postgres"))
	if err != nil {
		return fmt.Errorf("set the password: %w", err)
	}
	defer conn.Close(ctx)
	// A utility statement takes no parameters; the quoting is PostgreSQL's own.
	quoted := strings.ReplaceAll(strings.ReplaceAll(s.opts.Password, `\`, `\\`), "'", "''")
	if _, err := conn.Exec(ctx, "alter role "+Superuser+" password E'"+quoted+"'"); err != nil {
		return fmt.Errorf("set the password: %w", err)
	}
	return nil
}

// String names version and source, such as "PostgreSQL 17.10 from Maven artifacts".
func (s *Server) String() string {
	return "PostgreSQL " + s.binaries.Version + " from " + s.binaries.Source
}

// Version returns the version, such as 17.10.
func (s *Server) Version() string { return s.binaries.Version }

// Major returns the major version.
func (s *Server) Major() int { return s.binaries.Major }

// Port returns the TCP port on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// Addr returns host and port.
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// Dir returns the data directory.
func (s *Server) Dir() string { return s.path("data") }

// CAFile returns the certificate of the authority that signed the server's, if
// TLS is on.
func (s *Server) CAFile() string {
	if s.certs == nil {
		return ""
	}
	return s.certs.CA
}

// DSN returns the superuser's connection string for a database over TCP.
func (s *Server) DSN(database string) string {
	return s.DSNAs(database, Superuser, s.opts.Password)
}

// DSNAs returns the connection string of any user; an empty password is left out.
func (s *Server) DSNAs(database, user, password string) string {
	return s.DSNVia(s.Addr(), database, user, password)
}

// DSNVia is DSNAs through another address, such as a proxy's.
func (s *Server) DSNVia(addr, database, user, password string) string {
	mode := "disable"
	if s.opts.TLS {
		mode = "prefer"
	}
	dsn := url.URL{
		Scheme:   "postgres",
		User:     url.User(user),
		Host:     addr,
		Path:     "/" + database,
		RawQuery: "sslmode=" + mode,
	}
	if password != "" {
		dsn.User = url.UserPassword(user, password)
	}
	return dsn.String()
}

// SocketDSN returns the superuser's connection string over the unix socket,
// which needs no password.
func (s *Server) SocketDSN(database string) string {
	return fmt.Sprintf("host=%s port=%d user=%s dbname=%s", s.dir.Path, s.port, Superuser, database)
}

// LogTail returns the last lines of the server's log.
func (s *Server) LogTail() string {
	content, err := os.ReadFile(s.path("postgres.log"))
	if err != nil {
		return err.Error()
	}
	return tail(content, 20)
}

func tail(content []byte, lines int) string {
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func (s *Server) path(name string) string { return filepath.Join(s.dir.Path, name) }

// answers asks whether the server takes queries.
func (s *Server) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.SocketDSN("postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}
