package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The phases, in the order in which they run.
const (
	phaseBacklog = "backlog"
	phaseSingle  = "single"
	phaseBig     = "big"
	phaseLatency = "latency"
	phaseCrash   = "crash"
)

var phases = []string{phaseBacklog, phaseSingle, phaseBig, phaseLatency, phaseCrash}

type options struct {
	events, single, big, warmUp, runs int
	latency                           time.Duration
	rates                             []int
	only                              []string
	json, profile, profiles           string
	against, baseline, chart, from    string
	ownReader, quick, growth          bool
	away                              time.Duration
	application                       bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code: 1 when a floor was missed or something failed, 2
// for wrong flags.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opt, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 2
	}
	if opt.from != "" {
		if err := drawChart(opt.from, opt.chart); err != nil {
			fmt.Fprintln(stderr, "error:", err)
			return 1
		}
		return 0
	}
	var baseline *Report
	if opt.baseline != "" { // before half an hour has passed
		if baseline, err = readReport(opt.baseline); err != nil {
			fmt.Fprintln(stderr, "error:", err)
			return 2
		}
	}
	report, err := bench(ctx, opt, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	if err := report.print(stdout); err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	code := 0
	if opt.chart != "" {
		if err := os.WriteFile(opt.chart, []byte(chart(report)), 0o644); err != nil {
			fmt.Fprintln(stderr, "error:", err)
			return 1
		}
	}
	if baseline != nil {
		list := compare(baseline, report)
		if err := printComparison(stdout, list); err != nil {
			fmt.Fprintln(stderr, "error:", err)
			return 1
		}
		for i := range list {
			if list[i].worse() {
				code = 1
			}
		}
		return code // its floors are for the full size
	}
	for _, f := range report.Floors {
		if f.missed() {
			fmt.Fprintf(stderr, "error: floor missed: %s is %s, must be %s\n", f.Name, optional(f.Value, 2), f.bound())
			code = 1
		}
	}
	return code
}

func parse(args []string, stderr io.Writer) (options, error) {
	var opt options
	var only string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&opt.events, "events", 500_000, "rows of the backlog, 100 in a transaction")
	flags.IntVar(&opt.single, "single", 100_000, "transactions of one row")
	flags.IntVar(&opt.big, "big", 1_000_000, "rows of the one large transaction")
	flags.DurationVar(&opt.latency, "latency", 30*time.Second, "how long latency is measured, 0 not at all")
	flags.DurationVar(&opt.away, "away", 0, "stop Kafka for so long while the rows of -events are written, look at the relay's memory, and measure nothing else that -only does not name; 0 not at all")
	opt.rates = []int{latencyRate, 20 * latencyRate}
	flags.Func("rate", "events a second for latency, separated by commas (default 1000,20000)", func(list string) (err error) {
		opt.rates, err = parseRates(list)
		return err
	})
	flags.IntVar(&opt.warmUp, "warm-up", 100_000, "rows that are drained before, so that the broker is warm; 0 none")
	flags.StringVar(&only, "only", "", "phases to run, separated by commas: "+strings.Join(phases, ", "))
	flags.IntVar(&opt.runs, "repeat", 1, "how often each drains the backlogs; minimum, median and maximum are printed")
	flags.IntVar(&opt.runs, "runs", 1, "the same as -repeat")
	flags.StringVar(&opt.against, "against", "", "debezium: a real Debezium drains the same backlogs, with its defaults and tuned")
	flags.BoolVar(&opt.quick, "quick", false, "small backlogs and no latency, for -baseline")
	flags.BoolVar(&opt.growth, "growth", false, "measure how cost grows with rows, transaction size, aggregates, payload, partitions and topics, and nothing else that -only does not name")
	flags.BoolVar(&opt.application, "application", false, "measure package outbox, with PostgreSQL alone, and nothing else that -only or -growth does not name; at least 25 rounds")
	flags.StringVar(&opt.baseline, "baseline", "", "results to compare with; the exit code is 1 if ratios or counts are worse")
	flags.StringVar(&opt.chart, "chart", "", "file for a picture (SVG) of the results; with -from nothing is measured")
	flags.StringVar(&opt.from, "from", "", "results to draw")
	flags.StringVar(&opt.json, "json", "", "file for the results")
	flags.StringVar(&opt.profile, "cpuprofile", "", "file for a CPU profile of the relay into the discarding sink, of its last drain")
	flags.StringVar(&opt.profiles, "profile", "", "folder for a CPU profile of each run of the product into Kafka; profiling costs a few percent")
	flags.BoolVar(&opt.ownReader, "own-reader", false, "measure the limit with our own reader, even if there is a pg_recvlogical")
	if err := flags.Parse(args); err != nil {
		return opt, err
	}
	if flags.NArg() > 0 {
		return opt, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if opt.events < 1 || opt.single < 1 || opt.big < 1 || opt.runs < 1 || opt.warmUp < 0 || opt.latency < 0 {
		return opt, errors.New("numbers must be positive")
	}
	if opt.events%rowsPerTx != 0 || opt.warmUp%rowsPerTx != 0 {
		return opt, fmt.Errorf("-events and -warm-up must be multiples of %d", rowsPerTx)
	}
	if opt.against != "" && opt.against != againstDebezium {
		return opt, fmt.Errorf("-against %q: there is only %s", opt.against, againstDebezium)
	}
	if opt.from != "" && opt.chart == "" {
		return opt, errors.New("-from needs -chart")
	}
	if opt.quick {
		opt.events, opt.single, opt.big, opt.warmUp, opt.latency = 100_000, 20_000, 200_000, 20_000, 0
	}
	for _, path := range []*string{&opt.profile, &opt.profiles} { // our children run in another folder
		if *path == "" {
			continue
		}
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return opt, err
		}
	}
	opt.only = phases
	if opt.growth || opt.application || opt.away > 0 {
		opt.only = nil
	}
	if opt.quick {
		opt.only = []string{phaseBacklog, phaseSingle, phaseBig}
	}
	if only != "" {
		opt.only = strings.Split(only, ",")
		for _, name := range opt.only {
			if !slices.Contains(phases, name) {
				return opt, fmt.Errorf("there is no phase %q; there are %s", name, strings.Join(phases, ", "))
			}
		}
	}
	return opt, nil
}

const (
	rowsPerTx       = 100
	againstDebezium = "debezium"
)

// bench runs the phases. Nothing is left behind, whatever happens.
func bench(ctx context.Context, opt options, stderr io.Writer) (report *Report, err error) {
	begun := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(stderr, "%5.1f s  %s\n", time.Since(begun).Seconds(), fmt.Sprintf(format, args...))
	}
	machine := describeMachine()
	var application *Application
	if opt.application {
		if application, machine.Postgres, err = benchApplication(ctx, opt, say); err != nil {
			return nil, fmt.Errorf("application: %w", err)
		}
	}
	if len(opt.only) == 0 && !opt.growth && opt.away == 0 {
		report = &Report{At: time.Now().UTC(), Machine: machine, Application: application, Floors: applicationFloors(application)}
		return report, report.writeTo(opt.json)
	}
	r, err := newRig(ctx, opt, say)
	defer func() { err = errors.Join(err, r.close()) }()
	if err != nil {
		return nil, err
	}
	machine.Postgres, machine.Kafka, machine.Receiver = r.pg.String(), r.cluster.String(), byReceiver
	limit := byReceiver
	if r.receiver == "" {
		limit, machine.Receiver = byReader, byReader
	}
	three := []string{limit, byDiscard, byKafka}
	want := func(name string) bool { return slices.Contains(opt.only, name) }
	if opt.warmUp > 0 {
		if _, err := r.backlog(ctx, phase{"warmup", opt.warmUp, rowsPerTx, 1, three}); err != nil {
			return nil, err
		}
	}
	drainers := three
	if opt.against == againstDebezium {
		drainers = append(slices.Clone(three), byTuned, byDefault)
	}
	var drains []Drain
	for _, p := range []phase{
		{phaseBacklog, opt.events, rowsPerTx, opt.runs, drainers},
		{phaseSingle, opt.single, 1, opt.runs, drainers},
		{phaseBig, opt.big, opt.big, 1, []string{limit, byKafka}}, // how long the server decodes before it sends
	} {
		if !want(p.name) {
			continue
		}
		done, err := r.backlog(ctx, p)
		if err != nil {
			return nil, err
		}
		drains = append(drains, done...)
	}
	var latency *Latency
	var latencies []*Latency
	if want(phaseLatency) && opt.latency > 0 {
		for _, rate := range opt.rates {
			l, err := r.latency(ctx, opt.latency, rate)
			if err != nil {
				return nil, fmt.Errorf("latency at %d/s: %w", rate, err)
			}
			if rate == latencyRate {
				latency = l
			} else {
				latencies = append(latencies, l)
			}
		}
	}
	var crash *Crash
	if want(phaseCrash) {
		if crash, err = r.crash(ctx); err != nil {
			return nil, fmt.Errorf("crash: %w", err)
		}
	}
	var grown []Growth
	if opt.growth {
		if grown, err = r.growth(ctx); err != nil {
			return nil, err
		}
	}
	report = newReport(machine, drains, latency, crash)
	if opt.away > 0 {
		if report.Away, err = r.away(ctx, opt.events, opt.away); err != nil {
			return nil, fmt.Errorf("kafka away: %w", err)
		}
	}
	report.Latencies, report.Growth, report.Application = latencies, grown, application
	report.Floors = append(report.Floors, applicationFloors(application)...)
	return report, report.writeTo(opt.json)
}
