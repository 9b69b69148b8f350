package outbox

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// bouncer puts PgBouncer in transaction mode before the database, with fewer
// connections than clients, so that transactions change places.
func bouncer(t *testing.T, dsn string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs real servers: run without -short")
	}
	binary, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("pgbouncer is not installed (Debian package pgbouncer)")
	}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	dir, err := os.MkdirTemp("", "walpost-bouncer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ini := filepath.Join(dir, "pgbouncer.ini")
	args := []string{ini}
	text := fmt.Sprintf(`[databases]
%s = host=%s port=%d user=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 100
ignore_startup_parameters = extra_float_digits
`, cfg.Database, cfg.Host, cfg.Port, cfg.User, port)
	if os.Geteuid() == 0 { // which PgBouncer refuses to run as
		if _, err := user.Lookup("nobody"); err != nil {
			t.Skip("pgbouncer does not run as root, and there is no user nobody")
		}
		args = append([]string{"-u", "nobody"}, args...)
	}
	if err := os.WriteFile(ini, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var out strings.Builder
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("pgbouncer:\n%s", out.String())
		}
	})
	through := fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", url.PathEscape(cfg.User), port, url.PathEscape(cfg.Database))
	deadline, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		conn, err := pgx.Connect(deadline, through)
		if err == nil {
			_ = conn.Close(deadline)
			return through
		}
		if sleep(deadline, 20*time.Millisecond) != nil {
			t.Fatalf("pgbouncer does not answer: %v", err)
		}
	}
}

// Writer, migrations and consumer work through PgBouncer's transaction mode, in
// both of the modes that pgx has for it.
func TestThroughPgBouncer(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]pgx.QueryExecMode{"exec": pgx.QueryExecModeExec, "simple protocol": pgx.QueryExecModeSimpleProtocol} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, check := range []invariant{
				func(b *bench, _ variant) error { return invariantO1(b, b.writer(WriterOptions{}).Write) },
				func(b *bench, _ variant) error { return invariantO2(b, writers(b.writer(WriterOptions{}))["Copy"]) },
				invariantO3, invariantO6, invariantO7, invariantO8, invariantO10, invariantO11,
			} {
				b := setup(t)
				b.pool = newPool(t, bouncer(t, b.dsn))
				b.pool.mode = mode
				if err := check(b, variant{}); err != nil {
					t.Error(err)
				}
				if r, err := Migrate(b.ctx, b.pool, MigrateOptions{}); err != nil || r.Changed() {
					t.Errorf("%+v, %v", r, err)
				}
			}
		})
	}
}
