package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	rounds     int
	seed       uint64
	faults     string
	pg         int
	brokers    int
	report     string
	keep       bool
	judgeEvery int
	pairs      float64
	writers    int
	patience   time.Duration
}

func main() { os.Exit(run()) }

func run() int {
	var o options
	flag.IntVar(&o.rounds, "rounds", 20, "number of `rounds`")
	flag.Uint64Var(&o.seed, "seed", 1, "`seed` of the schedule")
	flag.StringVar(&o.faults, "faults", "", "only these faults, as a comma-separated `list` of names or prefixes; \"help\" lists them")
	flag.IntVar(&o.pg, "pg", 0, "PostgreSQL major `version`, 14 to 18; 0 takes what is installed")
	flag.IntVar(&o.brokers, "brokers", 1, "`number` of Kafka brokers, 1 or 3")
	flag.StringVar(&o.report, "report", "", "Markdown `file` for the report")
	flag.BoolVar(&o.keep, "keep", false, "keep the relays' logs also after a success")
	flag.IntVar(&o.judgeEvery, "judge-every", 20, "judge after so many `rounds`")
	flag.Float64Var(&o.pairs, "pairs", 0.35, "`share` of the rounds that have two faults")
	flag.IntVar(&o.writers, "writers", 5, "`number` of concurrent writers")
	flag.DurationVar(&o.patience, "patience", 3*time.Minute, "how long the relay may take to catch up after a fault")
	flag.Parse()
	if flag.NArg() > 0 || o.brokers != 1 && o.brokers != 3 || o.judgeEvery < 1 || o.writers < 1 {
		flag.Usage()
		return 2
	}
	if o.faults == "help" {
		for _, f := range catalogue() {
			fmt.Printf("%-22s %s\n", f.name, f.what)
		}
		return 0
	}
	deck, err := chosen(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b, err := newBench(ctx, o)
	if err == nil {
		err = b.run(ctx, deck)
	}
	if b != nil {
		err = errors.Join(err, b.finish(err))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: FAILED: %v\n", err)
		fmt.Fprintf(os.Stderr, "chaos: again: go run ./test/chaos %s\n", strings.Join(os.Args[1:], " "))
		if b != nil && len(b.suspects) > 0 {
			fmt.Fprintf(os.Stderr, "chaos: shorter: go run ./test/chaos -seed %d -brokers %d -pg %d -rounds 30 -pairs 1 -judge-every 5 -faults %s\n",
				o.seed, o.brokers, o.pg, strings.Join(slices.Sorted(maps.Keys(b.suspects)), ","))
		}
		return 1
	}
	return 0
}
