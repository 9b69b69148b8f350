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
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	rounds     int
	seed       uint64
	faults     string
	schedule   string
	repeat     int
	shrink     int
	freeze     time.Duration
	walpost    string
	pg         int
	brokers    int
	report     string
	keep       bool
	judgeEvery int
	pairs      float64
	writers    int
	patience   time.Duration
	out        io.Writer // for what is said
}

func main() { os.Exit(run(os.Args[1:])) }

func parse(args []string) (options, error) {
	o := options{out: os.Stderr}
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 20, "number of `rounds`")
	flags.Uint64Var(&o.seed, "seed", 1, "`seed` of the schedule")
	flags.StringVar(&o.faults, "faults", "", "only these faults, as a comma-separated `list` of names or prefixes; \"help\" lists them")
	flags.StringVar(&o.schedule, "schedule", "", "run these `rounds` instead of drawn ones, such as 3:relay-kill+pg-cut,7:kafka-cut")
	flags.IntVar(&o.repeat, "repeat", 1, "run the schedule so many `times`")
	flags.IntVar(&o.shrink, "shrink", 6, "after a failure, look for a shorter schedule that fails with at most so many `runs`")
	flags.DurationVar(&o.freeze, "freeze", 0, "how long relay-zombie freezes, always with events in flight; it must end by itself then. 0 draws it")
	flags.StringVar(&o.walpost, "walpost", "", "`binary` to test instead of one that is built now")
	flags.IntVar(&o.pg, "pg", 0, "PostgreSQL major `version`, 14 to 18; 0 takes what is installed")
	flags.IntVar(&o.brokers, "brokers", 1, "`number` of Kafka brokers, 1 or 3")
	flags.StringVar(&o.report, "report", "", "Markdown `file` for the report")
	flags.BoolVar(&o.keep, "keep", false, "keep the relays' logs also after a success")
	flags.IntVar(&o.judgeEvery, "judge-every", 20, "judge after so many `rounds`")
	flags.Float64Var(&o.pairs, "pairs", 0.35, "`share` of the rounds that have two faults")
	flags.IntVar(&o.writers, "writers", 5, "`number` of concurrent writers")
	flags.DurationVar(&o.patience, "patience", 3*time.Minute, "how long the relay may take to catch up after a fault")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 || o.brokers != 1 && o.brokers != 3 || o.judgeEvery < 1 || o.writers < 1 || o.rounds < 1 || o.repeat < 1 || o.shrink < 0 || o.freeze < 0 {
		flags.Usage()
		return o, errors.New("wrong flags")
	}
	if o.walpost != "" { // its processes run in another folder
		var err error
		if o.walpost, err = filepath.Abs(o.walpost); err != nil {
			return o, err
		}
	}
	return o, nil
}

// rounds are those of -schedule, or drawn.
func rounds(o options) (schedule, error) {
	if o.schedule != "" {
		return parseSchedule(o.schedule, o.brokers)
	}
	deck, err := chosen(o)
	if err != nil {
		return nil, err
	}
	return draw(o.seed, o.rounds, deck, o.pairs), nil
}

func run(args []string) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	if o.faults == "help" {
		for _, f := range catalogue() {
			fmt.Printf("%-22s %s\n", f.name, f.what)
		}
		return 0
	}
	s, err := rounds(o)
	if err != nil {
		fmt.Fprintln(o.out, "chaos:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	f := execute(ctx, o, s)
	if f == nil {
		return 0
	}
	say := func(format string, args ...any) { fmt.Fprintf(o.out, "chaos: "+format+"\n", args...) }
	say("FAILED: %v", f.err)
	say("again: go run ./test/chaos %s", strings.Join(args, " "))
	if !isFinding(f.err) || ctx.Err() != nil || o.shrink == 0 {
		return 1
	}
	shorter := shrinker{tries: o.shrink, say: say, again: func(s schedule) *failure {
		again := o
		again.report, again.repeat, again.judgeEvery = "", s.passes(), max(len(s), 1)
		f := execute(ctx, again, s)
		if f != nil && !isFinding(f.err) {
			say("the bench itself failed: %v", f.err)
			return nil
		}
		return f
	}}
	if shortest := shorter.shrink(f); shortest != f {
		f = shortest
		say("shortest failure, of %d round(s): %v", len(f.schedule), f.err)
	} else {
		say("no shorter schedule was found")
	}
	say("seed %d, schedule %s", o.seed, f.schedule)
	say("shortest: %s", o.command(f.schedule))
	return 1
}

// execute runs a schedule on servers of its own; nil means that all is well.
func execute(ctx context.Context, o options, s schedule) *failure {
	b, err := newBench(ctx, o)
	if err == nil {
		err = b.run(ctx, s)
	}
	if b == nil {
		return &failure{schedule: s, err: err}
	}
	if err = errors.Join(err, b.finish(err)); err == nil {
		return nil
	}
	f := &failure{schedule: s[:min(len(s), len(b.rounds))], suspects: b.suspects, err: err}
	if n := len(b.rounds); n > 0 && len(f.suspects) == 0 {
		f.suspects = map[int]bool{b.rounds[n-1].step.number: true} // what was going on
	}
	return f
}
