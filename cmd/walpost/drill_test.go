package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/walpost/walpost/internal/drill"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/internal/testkit/topic"
)

const drillLeft = `select (select count(*) from pg_namespace where nspname like 'walpost\_drill%')
  + (select count(*) from pg_replication_slots) + (select count(*) from pg_publication)`

// TestDrills runs every drill with the real binary, and interrupts one.
func TestDrills(t *testing.T) {
	t.Parallel()
	srv := testkit.PrivatePostgres(t, pgserver.Options{FsyncOff: true})
	cluster := testkit.PrivateKafka(t, kafkaserver.Options{})
	binary := filepath.Join(t.TempDir(), "walpost")
	testkit.Build(t, binary, "cmd/walpost")
	conn := testkit.Connect(t, srv.DSN("postgres"))
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

	// What is kept, or was killed, is named and removed.
	kept, out, log := command("run", "versions-out-of-order", "--keep", "-o", "json")
	var report drill.Report
	if err := kept.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out, log)
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	killed, _, _ := command("run", "kill-relay-after-ack", "--events", "2000")
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	var name string
	testkit.Await(t, "the drill's relay", func() bool {
		err := conn.QueryRow(t.Context(), "select slot_name from pg_replication_slots where active").Scan(&name)
		return err == nil
	})
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	var left struct{ Leftovers, Removed []string }
	want := []string{name, report.Name}
	slices.Sort(want)
	testkit.Await(t, "both drills to be left over", func() bool { // the lock goes with the connection
		list, out, log := command("list", "-o", "json")
		if err := errors.Join(list.Run(), json.Unmarshal(out.Bytes(), &left)); err != nil {
			t.Fatalf("%v\n%s%s", err, out, log)
		}
		return slices.Equal(left.Leftovers, want)
	})
	clean, out, log := command("clean", "-o", "json")
	if err := errors.Join(clean.Run(), json.Unmarshal(out.Bytes(), &left)); err != nil || !slices.Equal(left.Removed, want) {
		t.Errorf("clean: %v, removed %q, want %q\n%s%s", err, left.Removed, want, out, log)
	}
	nothingLeft()
	topics, err := topic.List(t.Context(), cluster.Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range topics {
		if strings.HasPrefix(name, "walpost.drill.") {
			t.Errorf("topic %s is left", name)
		}
	}

	interrupted, out, log := command("run", "kill-relay-after-ack", "--events", "2000")
	if err := interrupted.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "the drill's relay", func() bool {
		var active bool
		err := conn.QueryRow(t.Context(), "select exists (select from pg_replication_slots where active)").Scan(&active)
		return err == nil && active
	})
	if err := interrupted.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := interrupted.Wait(); err == nil {
		t.Errorf("it ended well\n%s%s", out, log)
	}
	nothingLeft()

	// A broken product: somebody moves the slot on while the relay is away.
	stop := make(chan struct{})
	var mover sync.WaitGroup
	mover.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = conn.Exec(t.Context(), `select pg_replication_slot_advance(slot_name, pg_current_wal_lsn())
					from pg_replication_slots where slot_name like 'walpost\_drill\_%' and not active`)
			}
		}
	})
	broken, out, log := command("run", "stop-service-after-commit", "--events", "20")
	err = broken.Run()
	close(stop)
	mover.Wait()
	if broken.ProcessState.ExitCode() != 3 || !strings.Contains(out.String(), "NOT HELD") {
		t.Errorf("a moved slot: %v\n%s%s", err, out, log)
	}
	nothingLeft()
}
