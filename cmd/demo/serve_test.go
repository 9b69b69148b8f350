package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/testkit/topic"
)

// TestServe: a shell can read what is printed, both servers answer there, and they
// are gone afterwards.
func TestServe(t *testing.T) {
	t.Parallel()
	needServers(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout output
	stderr := output{want: "until Ctrl-C"}
	ready := make(chan struct{}) // closed by the first write after which it is there
	stderr.seen = func() {
		select {
		case <-ready:
		default:
			close(ready)
		}
	}
	ended := make(chan int, 1) // one value, by run
	go func() { ended <- run(ctx, []string{"--serve"}, &stdout, &stderr) }()
	select {
	case <-ready:
	case code := <-ended:
		t.Fatalf("exit code %d: %s", code, &stderr)
	}

	shell := exec.CommandContext(t.Context(), "sh", "-c", stdout.String()+`printf '%s\n' "$DATABASE_URL" "$KAFKA_BROKERS"`)
	text, err := shell.Output()
	if err != nil {
		t.Fatal(err)
	}
	dsn, brokers, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatalf("connect to %q: %v", dsn, err)
	}
	var level string
	if err := conn.QueryRow(t.Context(), `show wal_level`).Scan(&level); err != nil || level != "logical" {
		t.Errorf("wal_level %q, %v", level, err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := topic.List(t.Context(), strings.Split(brokers, ",")); err != nil {
		t.Errorf("brokers %q: %v", brokers, err)
	}

	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
	gone(t, stderr.String())
}

func TestQuoted(t *testing.T) {
	t.Parallel()
	if got, want := quoted(`it's`), `'it'\''s'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
