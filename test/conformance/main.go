package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/walpost/walpost/internal/testkit/debezium"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
)

// kit is what scenarios have in common.
type kit struct {
	relay       func() relay // a new one
	kafka       *kafkaserver.Cluster
	pg          int
	patience    time.Duration // until something is stuck
	beat        time.Duration // for a relay to save and confirm
	bound       time.Duration // of what has to happen by itself
	atLeastOnce bool
	keep        bool
	log         func(format string, args ...any)
}

// options are the flags.
type options struct {
	kit
	relayName, scenarios, report, home string
	set, workerSet                     pairs
	parallel                           int
	verbose                            bool
}

// pairs is a flag that may be given more than once.
type pairs map[string]string

func (p pairs) String() string { return "" }

func (p pairs) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("want name=value")
	}
	p[name] = value
	return nil
}

const usage = `Usage: go run ./test/conformance -relay walpost|debezium|'exec:COMMAND' [flags]

Runs small scenarios that break outbox relays against one, and says what came of
each. What a COMMAND has to do, and its environment, is in the package's
documentation: go doc ./test/conformance

`

func (o *options) parse(args []string, out io.Writer) error {
	o.set, o.workerSet = pairs{}, pairs{}
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
		fmt.Fprintln(flags.Output(), "\nScenarios:")
		for _, s := range catalogue() {
			fmt.Fprintf(flags.Output(), "  %-14s %s\n", s.name, s.what)
		}
	}
	flags.StringVar(&o.relayName, "relay", "walpost", "`relay` to test: walpost, debezium or exec:COMMAND")
	flags.StringVar(&o.scenarios, "scenario", "", "only these, a comma-separated `list`")
	flags.IntVar(&o.pg, "pg", 0, "PostgreSQL major `version`, 14 to 18; 0 takes what is installed")
	flags.StringVar(&o.report, "report", "", "Markdown `file` for the result")
	flags.BoolVar(&o.atLeastOnce, "at-least-once", false, "further copies of an event are no failure")
	flags.DurationVar(&o.patience, "patience", time.Minute, "how long the relay may take for a step")
	flags.DurationVar(&o.beat, "beat", 3*time.Second, "how long it may take to save and confirm what was acked")
	flags.DurationVar(&o.bound, "bound", 20*time.Second, "within which a shutdown ends, a quiet slot follows, a relay holds")
	flags.IntVar(&o.parallel, "parallel", 2, "`number` of scenarios at a time")
	flags.BoolVar(&o.keep, "keep", false, "keep the relays' folders")
	flags.BoolVar(&o.verbose, "v", false, "say more, and the relay's last words after a failure")
	flags.StringVar(&o.home, "debezium-home", "", "`folder` of jars; empty lets Maven resolve them")
	flags.Var(o.set, "debezium-set", "`name=value` for the connector; repeatable")
	flags.Var(o.workerSet, "debezium-worker", "`name=value` for the worker; repeatable")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.parallel < 1 || o.patience <= 0 || o.bound <= 0 || o.beat < 0 {
		return errors.New("-parallel, -patience and -bound have to be more than zero")
	}
	return nil
}

// chosen returns the scenarios of a list.
func chosen(list string) ([]scenario, error) {
	all := catalogue()
	if list == "" {
		return all, nil
	}
	var some []scenario
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(all, func(s scenario) bool { return s.name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("no scenario %q: -help lists them", name)
		}
		some = append(some, all[i])
	}
	return some, nil
}

// use finds the relay; dir is for what has to be built.
func (o *options) use(ctx context.Context, dir string) error {
	text, isExec := strings.CutPrefix(o.relayName, "exec:")
	switch {
	case isExec && strings.TrimSpace(text) != "":
		o.relay = func() relay { return &execRelay{text: text} }
	case o.relayName == "walpost":
		binary, err := build(ctx, dir, "./cmd/walpost")
		if err != nil {
			return err
		}
		o.relay = func() relay { return &walpostRelay{binary: binary} }
	case o.relayName == "debezium":
		// The download is not the first scenario's affair.
		if _, err := debezium.Jars(ctx, o.home, o.log); err != nil {
			return err
		}
		o.relay = func() relay {
			return &debeziumRelay{home: o.home, connector: o.set, worker: o.workerSet}
		}
	default:
		return fmt.Errorf("no relay %q: want walpost, debezium or exec:COMMAND", o.relayName)
	}
	return nil
}

// build makes a program of the module.
func build(ctx context.Context, dir, what string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	path := filepath.Join(dir, filepath.Base(what))
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, what)
	cmd.Dir = strings.TrimSpace(string(root))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", what, err, out)
	}
	return path, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
	exitBroken = 3
)

func run(ctx context.Context, args []string) int {
	var o options
	if err := o.parse(args, os.Stderr); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		fmt.Fprintln(os.Stderr, "conformance:", err)
		return exitUsage
	}
	some, err := chosen(o.scenarios)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		return exitUsage
	}
	o.log = func(format string, args ...any) {
		if o.verbose {
			fmt.Fprintf(os.Stderr, format+"\n", args...)
		}
	}
	results, err := o.all(ctx, some)
	failed := false
	for _, r := range results {
		failed = failed || r.found.failed(o.atLeastOnce)
	}
	if o.report != "" && len(results) > 0 {
		err = errors.Join(err, os.WriteFile(o.report, []byte(report(args, results)), 0o644))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		var hinted interface{ Hint() string }
		if errors.As(err, &hinted) {
			fmt.Fprintln(os.Stderr, hinted.Hint())
		}
		return exitBroken
	}
	if failed {
		return exitFailed
	}
	return 0
}

// all runs scenarios and prints each as it ends; results are in their order.
func (o *options) all(ctx context.Context, some []scenario) (results []result, err error) {
	dir, err := os.MkdirTemp("", "walpost-conformance-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := o.use(ctx, dir); err != nil {
		return nil, err
	}
	if o.kafka, err = startKafka(ctx, o.log); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.kafka.Close()) }()
	results = make([]result, len(some))
	group, trying := errgroup.WithContext(ctx)
	group.SetLimit(o.parallel)
	for i, s := range some {
		group.Go(func() error {
			began := time.Now()
			found, err := o.try(trying, s)
			if err != nil {
				return err
			}
			results[i] = result{scenario: s, found: found, took: time.Since(began)}
			fmt.Printf("%-14s %-24s %s\n", s.name, found.verdict(), found.explain())
			return nil
		})
	}
	err = group.Wait()
	results = slices.DeleteFunc(results, func(r result) bool { return r.scenario.name == "" })
	return results, err
}
