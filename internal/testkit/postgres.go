package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/testkit/container"
	"github.com/walpost/walpost/internal/testkit/pgserver"
)

// PG is a PostgreSQL server that tests share.
type PG struct {
	// Server is nil if the server is not of this test run.
	Server *pgserver.Server

	config *pgx.ConnConfig // of the superuser
	dsn    string
	source string
	major  int
}

// Majors returns the major versions that a matrix test runs on: the oldest
// supported, 15 and the newest, or what WALPOST_TEST_PG says.
func Majors(t testing.TB) []int {
	t.Helper()
	majors, err := parseMajors(os.Getenv("WALPOST_TEST_PG"))
	if err != nil {
		t.Fatal(err)
	}
	return majors
}

func parseMajors(text string) ([]int, error) {
	all := pgserver.Majors()
	switch text {
	case "":
		return []int{all[0], 15, all[len(all)-1]}, nil
	case "all":
		return all, nil
	}
	var majors []int
	for part := range strings.SplitSeq(text, ",") {
		major, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || !slices.Contains(all, major) {
			return nil, fmt.Errorf("WALPOST_TEST_PG=%q: want all, or some of %v separated by commas", text, all)
		}
		majors = append(majors, major)
	}
	return majors, nil
}

// Postgres returns the shared server of a major version, 0 for any. Tests must
// neither stop it nor change its settings.
func Postgres(t testing.TB, major int) *PG {
	t.Helper()
	needServers(t)
	needMain(t)
	suite.mu.Lock()
	entry := suite.postgres[major]
	if entry == nil {
		entry = &shared[*PG]{}
		suite.postgres[major] = entry
	}
	suite.mu.Unlock()
	pg, err := entry.get(func() (*PG, error) {
		// Not the test's context: the server outlives this test.
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		pg, err := startShared(ctx, major)
		if err == nil {
			suite.use(pg.String())
		}
		return pg, err
	})
	if err != nil {
		fatal(t, err)
	}
	return pg
}

func startShared(ctx context.Context, major int) (*PG, error) {
	if dsn := os.Getenv("WALPOST_TEST_DSN"); dsn != "" {
		pg, err := connected(ctx, dsn, "WALPOST_TEST_DSN")
		if err != nil {
			return nil, fmt.Errorf("use WALPOST_TEST_DSN: %w", err)
		}
		if major == 0 || major == pg.major {
			return pg, nil
		}
	}
	server, err := pgserver.Start(ctx, pgserver.Options{Major: major, FsyncOff: true, Log: say})
	if err == nil {
		suite.onClose(server.Close)
		pg, err := connected(ctx, server.DSN("postgres"), server.String())
		if err != nil {
			return nil, err
		}
		pg.Server = server
		return pg, nil
	}
	var missing *pgserver.NoBinariesError
	if !errors.As(err, &missing) {
		return nil, err
	}
	dsn, stop, dockerErr := container.Postgres(ctx, major)
	if dockerErr != nil {
		return nil, fmt.Errorf("%w; %w", err, dockerErr)
	}
	suite.onClose(stopped(stop))
	return connected(ctx, dsn, "a container")
}

func stopped(stop container.Stop) func() error {
	return func() error {
		ctx, cancel := stopContext()
		defer cancel()
		return stop(ctx)
	}
}

// say is for what takes long; tests that share a server have no log in common.
func say(format string, args ...any) { fmt.Printf("testkit: "+format+"\n", args...) }

func connected(ctx context.Context, dsn, source string) (*PG, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	version := conn.PgConn().ParameterStatus("server_version")
	number, _, _ := strings.Cut(version, " ")
	digits, _, _ := strings.Cut(number, ".")
	major, err := strconv.Atoi(digits)
	if err != nil {
		return nil, fmt.Errorf("server version %q: %w", version, err)
	}
	if !strings.HasPrefix(source, "PostgreSQL") {
		source = "PostgreSQL " + number + " from " + source
	}
	return &PG{config: config, dsn: dsn, source: source, major: major}, nil
}

// String names version and source.
func (p *PG) String() string { return p.source }

// Major returns the major version.
func (p *PG) Major() int { return p.major }

// DSN returns the superuser's connection string for a database.
func (p *PG) DSN(database string) string {
	return p.DSNAs(database, p.config.User, p.config.Password)
}

// DSNAs returns the connection string of any user for a database.
func (p *PG) DSNAs(database, user, password string) string {
	return withDatabase(p.dsn, database, user, password)
}

// NewDB creates a database for the test and returns its connection string. When
// the test ends the database goes, with its slots and whoever is connected.
func (p *PG) NewDB(t testing.TB) string {
	t.Helper()
	name := Unique(t.Name())
	ctx, cancel := stopContext()
	defer cancel()
	if err := p.exec(ctx, "create database "+pgx.Identifier{name}.Sanitize()); err != nil {
		t.Fatalf("create database %q: %v", name, err)
	}
	t.Cleanup(func() {
		ctx, cancel := stopContext()
		defer cancel()
		if err := p.drop(ctx, name); err != nil {
			t.Errorf("drop database %q: %v", name, err)
		}
	})
	return p.DSN(name)
}

const (
	killConnections = `
select count(pg_terminate_backend(pid)) from pg_stat_activity
where datname = $1 and pid <> pg_backend_pid()`
	dropSlots = `
select count(pg_drop_replication_slot(slot_name)) from pg_replication_slots
where database = $1 and not active`
	leftSlots = `select count(*) from pg_replication_slots where database = $1`
)

func (p *PG) drop(ctx context.Context, name string) error {
	conn, err := pgx.ConnectConfig(ctx, p.config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		// A walsender holds its slot until it has noticed; a relay that was not
		// stopped may come back in between.
		left, err := tryDrop(ctx, conn, name)
		if err == nil && left == 0 {
			_, err := conn.Exec(ctx, "drop database if exists "+pgx.Identifier{name}.Sanitize()+" with (force)")
			if err == nil {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%d slots left: %w", left, context.Cause(ctx)), err)
		}
	}
}

func tryDrop(ctx context.Context, conn *pgx.Conn, name string) (left int, err error) {
	for _, sql := range []string{killConnections, dropSlots} {
		if _, err := conn.Exec(ctx, sql, name); err != nil {
			return 0, err
		}
	}
	err = conn.QueryRow(ctx, leftSlots, name).Scan(&left)
	return left, err
}

func (p *PG) exec(ctx context.Context, sql string) error {
	conn, err := pgx.ConnectConfig(ctx, p.config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// PrivatePostgres starts a server for one test alone, which may do with it what
// it wants.
func PrivatePostgres(t testing.TB, opts pgserver.Options) *pgserver.Server {
	t.Helper()
	needServers(t)
	if opts.Log == nil {
		opts.Log = t.Logf
	}
	server, err := pgserver.Start(t.Context(), opts)
	if err != nil {
		fatal(t, err)
	}
	suite.use(server.String())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last lines of %s:\n%s", server, server.LogTail())
		}
		if err := server.Close(); err != nil {
			t.Errorf("close %s: %v", server, err)
		}
	})
	return server
}

// Connect opens a connection that is closed when the test ends.
func Connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := stopContext()
		defer cancel()
		_ = conn.Close(ctx) // the test may have killed the server
	})
	return conn
}

// Exec runs statements, each in a transaction of its own, on a connection of
// their own.
func Exec(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}
