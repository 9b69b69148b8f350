package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/walpost/walpost/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// wrongs are relays that are wrong on purpose. Each fails the scenario that is
// made for it, with the verdict that fits.
var wrongs = []struct {
	flags, scenario, verdict string
}{
	{"-loses 7", "statements", "lost"},
	{"-repeats 5", "statements", "duplicated"},
	{"-disorders", "statements", "disordered"},
	{"-phantom", "statements", "phantom 1"},
	{"-row-lsn", "copy-crash", "lost"},
	{"-max-ack", "ack-order", "lost 20, confirmed-too-early"},
	{"-keepalive", "keepalive", "lost 3, confirmed-too-early"},
	{"-walstart-len", "walstart-len", "lost 2"},
	{"-commit-lsn -quiet", "end-lsn", "duplicated"},
	{"-quiet", "quiet", "stuck"},
	{"-quiet", "fast-shutdown", "stuck"},
}

// TestConformance runs the kit against walpost, which passes, and against relays
// that must not: a scenario that cannot fail says nothing.
func TestConformance(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs real servers: run without -short")
	}
	ctx, dir := testkit.Context(t), t.TempDir()
	wrong, err := build(ctx, dir, "./test/conformance/wrong")
	if err != nil {
		t.Fatal(err)
	}
	var o options
	if err := o.parse([]string{"-beat", "1s", "-bound", "8s", "-patience", "40s"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	o.log = t.Logf
	if err := o.use(ctx, dir); err != nil {
		t.Fatal(err)
	}
	if o.kafka, err = startKafka(ctx, o.log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.kafka.Close(); err != nil {
			t.Error(err)
		}
	})
	// They wait more than they work: more at a time than there are cores.
	var group errgroup.Group
	group.SetLimit(5)
	for _, s := range catalogue() {
		group.Go(func() error {
			t.Run("walpost/"+s.name, func(t *testing.T) {
				found, err := tried(ctx, t, o.kit, s)
				if err != nil {
					t.Fatal(err)
				}
				if found.failed(false) {
					t.Errorf("%s: %s", found.verdict(), found.explain())
				}
			})
			return nil
		})
	}
	for _, w := range wrongs {
		group.Go(func() error {
			t.Run("wrong/"+w.scenario+w.flags, func(t *testing.T) {
				some, err := chosen(w.scenario)
				if err != nil {
					t.Fatal(err)
				}
				k := o.kit
				k.patience, k.bound = 15*time.Second, 3*time.Second
				k.relay = func() relay { return &execRelay{text: "exec '" + wrong + "' " + w.flags} }
				found, err := tried(ctx, t, k, some[0])
				if err != nil {
					t.Fatal(err)
				}
				if !found.failed(false) || !strings.Contains(found.verdict(), w.verdict) {
					t.Errorf("verdict %q, want %q: %s", found.verdict(), w.verdict, found.explain())
				}
			})
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func tried(ctx context.Context, t *testing.T, k kit, s scenario) (finding, error) {
	k.log = t.Logf
	return k.try(ctx, s)
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-scenario", "nonsense"}, {"-relay", "nonsense"}, {"-relay", "exec: "}, {"-debezium-set", "x"}, {"-parallel", "0"}, {"extra"}, {"-nonsense"},
	} {
		var o options
		err := o.parse(args, io.Discard)
		if err == nil {
			_, err = chosen(o.scenarios)
		}
		if err == nil {
			err = o.use(t.Context(), t.TempDir())
		}
		if err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	if err := new(options).parse([]string{"-help"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-help: %v", err)
	}
	for name := range strings.SplitSeq("copy-crash,savepoint,ack-order,keepalive,walstart-len,end-lsn,publication,slot-back,fast-shutdown,quiet,statements,update-delete", ",") {
		if some, err := chosen(name); err != nil || len(some) != 1 || some[0].what == "" {
			t.Errorf("scenario %s: %d, %v", name, len(some), err)
		}
	}
}

// TestACommandIsStartedAgain: as an orchestrator would, in the folder of the
// caller, with the kit's variables.
func TestACommandIsStartedAgain(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "starts")
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh")
	}
	c := &command{path: "/bin/sh", args: []string{"-c", `echo x >> "$FILE"`}, env: append(os.Environ(), "FILE="+file), log: file + ".log"}
	if err := c.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "a second start", func() bool {
		content, _ := os.ReadFile(file)
		return strings.Count(string(content), "x") >= 2
	})
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	if n, why := c.ends(); n < 1 || why != "<nil>" {
		t.Errorf("ended %d times, %s", n, why)
	}
}

func TestReportIsATable(t *testing.T) {
	t.Parallel()
	got := report([]string{"-relay", "exec:a b"}, []result{
		{scenario: scenario{name: "quiet"}, found: finding{
			server: "PostgreSQL 17.1", events: 3, records: 2, lost: 1, lostFrom: 2, lostTo: 2, notes: []string{"a|b"},
		}, took: 1500 * time.Millisecond},
	})
	want := "`go run ./test/conformance -relay 'exec:a b'` (PostgreSQL 17.1, Kafka 4.4.0)\n\n" +
		"| scenario | verdict | what was seen | seconds |\n|---|---|---|---|\n" +
		"| quiet | lost 1 | 3 events, 2 records; lost between no. 2 and no. 2 in commit order; a\\|b | 2 |\n"
	if got != want {
		t.Errorf("report:\n%s\nwant:\n%s", got, want)
	}
}
