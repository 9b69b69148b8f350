package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// options are the flags.
type options struct {
	golden, regenerate, importFrom, out, names, binary, home string
	swap, verbose                                            bool
	seed                                                     int64
	configs, rows, lanes, pg                                 int
	log                                                      func(format string, args ...any)
}

const usage = `Usage: go run ./test/compat -golden DIR | -seed N | -swap | -regenerate DIR | -import DIR [flags]

Compares walpost with Debezium on real servers; go doc ./test/compat says how.
Exit code 1: a difference was found; 2: wrong usage; 3: it could not be tried.

`

func (o *options) parse(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("compat", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		fmt.Fprint(out, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.golden, "golden", "", "run the corpora of this `folder` through walpost")
	flags.StringVar(&o.regenerate, "regenerate", "", "run the corpora of this `folder` through Debezium and write what came of them")
	flags.StringVar(&o.importFrom, "import", "", "write the corpora of this `folder` in our own form")
	flags.StringVar(&o.out, "out", "test/compat/testdata", "`folder` that -regenerate and -import write to")
	flags.BoolVar(&o.swap, "swap", false, "Debezium under load, then walpost on its slot, then Debezium again")
	flags.Int64Var(&o.seed, "seed", 0, "run random configurations of this `seed` through both, live")
	flags.IntVar(&o.configs, "configs", 20, "`number` of random configurations")
	flags.IntVar(&o.rows, "rows", 0, "`number` of rows for each, or of each phase of -swap; 0 means 200, or 10000")
	flags.StringVar(&o.names, "run", "", "only these corpora, or these numbers of random configurations: `names` separated by commas")
	flags.IntVar(&o.lanes, "lanes", 2, "`number` of Kafka clusters, and so of corpora at a time")
	flags.IntVar(&o.pg, "pg", 0, "PostgreSQL's major `version`; 0 takes an installed one")
	flags.StringVar(&o.binary, "walpost", "", "walpost's binary; empty builds it")
	flags.StringVar(&o.home, "debezium-home", "", "`folder` of jars of Connect and Debezium; empty lets Maven resolve them")
	flags.BoolVar(&o.verbose, "v", false, "print both sides of the first difference, and what servers are started")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.rows == 0 {
		if o.rows = 200; o.swap {
			o.rows = 10_000
		}
	}
	modes := 0
	for _, set := range []bool{o.golden != "", o.regenerate != "", o.importFrom != "", o.swap, o.seed != 0} {
		if set {
			modes++
		}
	}
	if modes != 1 {
		return errors.New("want exactly one of -golden, -seed, -swap, -regenerate and -import; -help explains them")
	}
	if o.lanes < 1 || o.configs < 1 || o.rows < 1 {
		return errors.New("-lanes, -configs and -rows have to be more than zero")
	}
	return nil
}

func (o *options) selected() []string {
	if o.names == "" {
		return nil
	}
	return strings.Split(o.names, ",")
}

// Exit codes.
const (
	exitDiffers = 1
	exitUsage   = 2
	exitBroken  = 3
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := start(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func start(ctx context.Context, args []string) int {
	var o options
	if err := o.parse(args, os.Stderr); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		fmt.Fprintln(os.Stderr, "compat:", err)
		return exitUsage
	}
	o.log = func(format string, args ...any) {
		if o.verbose {
			fmt.Fprintf(os.Stderr, format+"\n", args...)
		}
	}
	failed, err := o.do(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		var hinted interface{ Hint() string }
		if errors.As(err, &hinted) {
			fmt.Fprintln(os.Stderr, hinted.Hint())
		}
		return exitBroken
	}
	if failed > 0 {
		return exitDiffers
	}
	return 0
}

func (o *options) do(ctx context.Context) (failed int, err error) {
	if o.importFrom != "" {
		all, err := loadAll(o.importFrom, o.selected())
		if err != nil {
			return 0, err
		}
		return 0, importAll(all, o.out)
	}
	dir, err := os.MkdirTemp("", "walpost-compat-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if o.binary == "" && o.regenerate == "" {
		if o.binary, err = buildWalpost(ctx, dir); err != nil {
			return 0, err
		}
	}
	switch {
	case o.golden != "":
		return o.runGolden(ctx)
	case o.regenerate != "":
		return 0, o.runRegenerate(ctx, dir)
	case o.swap:
		return o.runSwap(ctx, dir)
	default:
		return o.runDifferential(ctx, dir, os.Stdout)
	}
}

func (o *options) runGolden(ctx context.Context) (failed int, err error) {
	all, err := loadAll(o.golden, o.selected())
	if err != nil {
		return 0, err
	}
	s, err := startServers(ctx, o.pg, min(o.lanes, len(all)), o.log)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return compareAll(ctx, &product{o.binary, s}, all, o.verbose, os.Stdout)
}
