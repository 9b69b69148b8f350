package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/walpost/walpost/internal/drill"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/pgserver"
)

const drillLeft = `select (select count(*) from pg_namespace where nspname like 'walpost\_drill%')
  + (select count(*) from pg_replication_slots) + (select count(*) from pg_publication)`

// TestDrills runs every drill with the real binary, and interrupts one.
func TestDrills(t *testing.T) {
	if testing.Short() {
		t.Skip("needs servers: run without -short")
	}
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "walpost")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	srv, err := pgserver.Start(t.Context(), pgserver.Options{FsyncOff: true, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	cluster, err := kafkaserver.Start(t.Context(), kafkaserver.Options{Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Close() })
	cfg, err := pg.ParseDSN(srv.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pg.Connect(t.Context(), cfg, "walpost/test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	command := func(args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
		cmd := exec.Command(binary, append([]string{"drill"}, args...)...)
		cmd.Env = append(os.Environ(), "WALPOST_DSN="+srv.DSN("postgres"), "WALPOST_BROKERS="+cluster.Addr()[0])
		var out, log bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &log
		return cmd, &out, &log
	}
	nothingLeft := func() {
		t.Helper()
		var left int
		if err := conn.QueryRow(t.Context(), drillLeft).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d things left, %v", left, err)
		}
	}
	for _, d := range drill.List() {
		cmd, out, log := command("run", d.Name, "--events", "40", "-o", "json")
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v\n%s%s", d.Name, err, out, log)
			continue
		}
		var report drill.Report
		if err := json.Unmarshal(out.Bytes(), &report); err != nil || !report.Held() || report.Drill != d.Name {
			t.Errorf("%s: %v: %s", d.Name, err, out)
		}
		t.Logf("%s: %.1f s, %v", d.Name, report.Seconds, report.Observed)
		nothingLeft()
	}

	cmd, out, log := command("run", "kill-relay-after-ack", "--events", "2000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	made := false
	for deadline := time.Now().Add(30 * time.Second); !made && time.Now().Before(deadline); {
		if err := conn.QueryRow(t.Context(), "select exists (select from pg_replication_slots where active)").Scan(&made); err != nil {
			t.Error(err)
			break
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !made {
		t.Errorf("interrupted: %v, slot made %v\n%s%s", err, made, out, log)
	}
	nothingLeft()
}
