// Command demo shows walpost at work: a PostgreSQL, a Kafka, an order service,
// and between them the relay that "walpost run" runs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/logging"
	"github.com/walpost/walpost/internal/pg"
)

func main() {
	// A terminal that is closed is a Ctrl-C too, unless nohup says otherwise. A
	// second one changes nothing: the end is bounded, and what was started has to
	// be taken away.
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	// Without this a closed stdout, as of "demo | head", would end us at once;
	// so it is an error of the write.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opt, err := parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Fprint(stdout, help, newFlags(&options{}).FlagUsages())
		return cli.OK
	}
	if err == nil {
		d := &demonstration{opt: opt, stdout: stdout, stderr: stderr}
		err = d.run(ctx)
	}
	cli.PrintError(stderr, err, logging.Scrub)
	return cli.ExitCode(err)
}

const help = `demo starts a throw-away PostgreSQL and an in-process Kafka broker, creates an
outbox, lets a small order service write to it, relays with the code of
"walpost run", and prints what arrives on Kafka, until Ctrl-C.

With --events it goes as fast as it can, stops after that many committed events,
reads everything back from Kafka and checks it: nothing may be missing, doubled,
out of order within its order, altered, or there although it was rolled back.

With --serve it only starts the servers, prints how to reach them, as two lines for
a shell, and keeps them until Ctrl-C: something to try walpost and a service on,
as docs/quickstart.md does.

With --dsn and --brokers it uses servers that run already. There it makes things
of its own, named walpost_demo_ and a random number (a schema, a publication, a
slot, a topic), and drops them at the end. Nothing is read from the environment
or from walpost.yaml.

Results go to stdout, everything else to stderr. Exit codes: 0 ok, 1 the check
failed or something else went wrong, 2 usage.

Usage:
  go run ./cmd/demo [flags]

Examples:
  go run ./cmd/demo
  go run ./cmd/demo --events 5000 --kafka maven
  go run ./cmd/demo --serve
  go run ./cmd/demo --events 5000 --dsn postgres://owner@db/shop --brokers kafka:9092

Flags:
`

// The values of --kafka.
const (
	kafkaFake  = "fake"
	kafkaMaven = "maven"
)

// options are the flags.
type options struct {
	events  int
	serve   bool
	dsn     string
	brokers []string
	kafka   string
	verbose bool
}

// external says that something of somebody else is used.
func (o *options) external() bool { return o.dsn != "" || len(o.brokers) > 0 }

func newFlags(o *options) *pflag.FlagSet {
	fs := pflag.NewFlagSet("demo", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.IntVar(&o.events, "events", 0, "stop after `N` committed events and check them; 0 goes on until Ctrl-C")
	fs.BoolVar(&o.serve, "serve", false, "start PostgreSQL and Kafka only, print their addresses, and keep them until Ctrl-C")
	fs.StringVar(&o.dsn, "dsn", "", "use the PostgreSQL of this `DSN`; needs wal_level = logical, and a role that may create schemas and replicate")
	fs.StringSliceVar(&o.brokers, "brokers", nil, "use this Kafka, as `host:port`, comma separated or repeated; a listener without TLS and SASL")
	fs.StringVar(&o.kafka, "kafka", kafkaFake, "broker to start, `fake|maven`: in this process, or a real one from Maven artifacts (needs Java and Maven)")
	fs.BoolVarP(&o.verbose, "verbose", "v", false, "show the relay's log from info on")
	return fs
}

func parse(args []string) (*options, error) {
	o := &options{}
	fs := newFlags(o)
	fs.Usage = func() {}
	const way = `see "go run ./cmd/demo --help"`
	err := fs.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return nil, err
	case err != nil:
		return nil, cli.UsageError(err.Error(), way)
	case fs.NArg() > 0:
		return nil, cli.UsageError(fmt.Sprintf("demo takes no argument, got %q", fs.Arg(0)), way)
	case o.events < 0:
		return nil, cli.UsageError(fmt.Sprintf("--events: %d is less than 0", o.events), "name the number of events to commit")
	case o.serve && fs.Changed("events"):
		return nil, cli.UsageError("--serve and --events are both set", "keep one of them: --serve writes no events")
	case o.serve && o.external():
		return nil, cli.UsageError("--serve starts servers, and --dsn and --brokers name some that run", "leave out --serve, or --dsn and --brokers")
	case o.kafka != kafkaFake && o.kafka != kafkaMaven:
		return nil, cli.UsageError(fmt.Sprintf("--kafka: unknown value %q", o.kafka), "use fake or maven")
	case fs.Changed("kafka") && len(o.brokers) > 0:
		return nil, cli.UsageError("--kafka and --brokers are both set", "keep one of them")
	}
	if o.dsn != "" {
		if _, err := pg.ParseDSN(o.dsn); err != nil {
			return nil, &cli.Exit{Code: cli.Usage, Err: fmt.Errorf("--dsn: %w", err)}
		}
	}
	for i, b := range o.brokers {
		if !strings.Contains(b, ":") {
			o.brokers[i] = b + ":9092"
		}
	}
	return o, nil
}
