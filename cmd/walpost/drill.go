package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/config"
	"github.com/walpost/walpost/internal/drill"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/wire"
)

// childCommand is the hidden command that a drill's children run.
const childCommand = "drill-child"

func newDrillCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drill",
		Short: "Inject a fault and see what held",
		Long: `drill breaks something on purpose, in a schema, slot, publication and topic of
its own, and says what held. It removes them afterwards, also after Ctrl-C.
Nothing of yours is touched: it may run on a shared server.`,
		Args: noCommand,
		RunE: showHelp,
	}
	cmd.AddCommand(newDrillListCommand(a), newDrillRunCommand(a), newDrillCleanCommand(a), newDrillChildCommand(a))
	return cmd
}

func newDrillListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the drills, and what killed ones have left",
		Long: `list names the drills and what each shows. Where a database is configured it
also names what drills that were killed have left in it.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.drillList(cmd) },
	}
}

func newDrillRunCommand(a *app) *cobra.Command {
	events, keep := 200, false
	cmd := &cobra.Command{
		Use:   "run NAME [flags]",
		Short: "Run a drill",
		Long: `run makes a schema, slot, publication and topic of its own, injects the fault,
and prints what had to hold, what was expected and what was seen.

The role needs CREATE on the database and REPLICATION; the Kafka principal must
be allowed to create, write, read and delete topics walpost.drill.* and to use
groups of that name.

Exit codes: 0 everything held, 3 something did not hold.`,
		Example: `  walpost drill run kill-relay-after-ack --dsn postgres://walpost@db/shop --brokers kafka:9092
  walpost drill run repeat-message --config walpost.yaml --events 50 -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.UsageError("drill run takes the name of one drill", `see "walpost drill list" for the names`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.drillRun(cmd, args[0], events, keep) },
	}
	cmd.Flags().IntVar(&events, "events", events, "how many events to commit")
	cmd.Flags().BoolVar(&keep, "keep", keep, "leave schema, slot, publication and topic where they are; the slot holds WAL until it is dropped")
	addRelayFlags(cmd)
	return cmd
}

func newDrillCleanCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove what killed or kept drills have left",
		Long: `clean removes the schemas, slots, publications, topics and groups of drills that
do not run any more. A drill that runs is left alone.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.drillClean(cmd) },
	}
	addRelayFlags(cmd)
	return cmd
}

func newDrillChildCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: childCommand, Short: "Be a drill's service or relay", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.drillChild(cmd.Context(), args[0]) },
	}
}

func (a *app) drillOptions(cmd *cobra.Command) (drill.Options, error) {
	var opt drill.Options
	cfg, err := a.load(cmd, config.NeedPostgres|config.NeedSink)
	if err != nil {
		return opt, err
	}
	if len(cfg.Kafka.Brokers) == 0 {
		return opt, cli.UsageError("a drill needs Kafka, and no brokers are named", "set --brokers or WALPOST_BROKERS")
	}
	opt.Brokers = cfg.Kafka.Brokers
	if opt.Conn, err = pg.ParseDSN(cfg.Postgres.DSN); err != nil {
		return opt, &cli.Exit{Code: cli.Usage, Err: err}
	}
	security, err := wire.Security(&cfg.Kafka, a.readFile)
	if err != nil {
		return opt, &cli.Exit{Code: cli.Usage, Err: err}
	}
	opt.TLS = security.TLS
	if opt.SASL, err = security.SASL(); err != nil {
		return opt, &cli.Exit{Code: cli.Usage, Err: err}
	}
	if opt.Config, err = json.Marshal(cfg); err != nil {
		return opt, err
	}
	opt.Command = func(role string) (*exec.Cmd, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		return exec.Command(self, "drill", childCommand, role), nil
	}
	return opt, nil
}

func (a *app) drillRun(cmd *cobra.Command, name string, events int, keep bool) error {
	if err := drill.Validate(name, events); err != nil {
		return &cli.Exit{Code: cli.Usage, Err: err}
	}
	opt, err := a.drillOptions(cmd)
	if err != nil {
		return err
	}
	opt.Events, opt.Keep = events, keep
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, err := drill.Run(ctx, name, opt)
	if err != nil {
		return err
	}
	if a.json() {
		err = cli.WriteJSON(a.stdout, report)
	} else {
		err = writeDrill(a.stdout, report)
	}
	if err != nil {
		return err
	}
	if !report.Held() {
		return &cli.Exit{Code: cli.Findings, Err: errors.New("not everything held"), Way: "see the lines that end with NOT HELD"}
	}
	return nil
}

func writeDrill(out io.Writer, r *drill.Report) error {
	t := cli.NewTable(out)
	t.Row("HAD TO HOLD", "EXPECTED", "SEEN", "VERDICT")
	for _, c := range r.Checks {
		verdict := "held"
		if !c.Held {
			verdict = "NOT HELD"
		}
		t.Row(c.Must, c.Expected, c.Seen, verdict)
	}
	for _, what := range slices.Sorted(maps.Keys(r.Observed)) {
		t.Row(what, "", r.Observed[what], "")
	}
	if r.Kept {
		t.Row()
		t.Row(fmt.Sprintf("kept: %s, topic %s; remove with walpost drill clean", r.Name, r.Topic))
	}
	return t.Flush()
}

func (a *app) drillList(cmd *cobra.Command) error {
	result := struct {
		Drills    []drill.Info `json:"drills"`
		Leftovers []string     `json:"leftovers"`
	}{Drills: drill.List(), Leftovers: []string{}}
	cfg, err := a.load(cmd, 0)
	if err != nil {
		return err
	}
	if cfg.Postgres.DSN != "" {
		conn, err := pg.ParseDSN(cfg.Postgres.DSN)
		if err != nil {
			return &cli.Exit{Code: cli.Usage, Err: err}
		}
		left, err := drill.Leftovers(cmd.Context(), conn)
		if err != nil {
			return err
		}
		result.Leftovers = append(result.Leftovers, left...)
	}
	if a.json() {
		return cli.WriteJSON(a.stdout, result)
	}
	t := cli.NewTable(a.stdout)
	for _, i := range result.Drills {
		t.Row(i.Name, i.Shows)
	}
	for _, name := range result.Leftovers {
		t.Row("leftover "+name, "remove with walpost drill clean")
	}
	return t.Flush()
}

func (a *app) drillClean(cmd *cobra.Command) error {
	opt, err := a.drillOptions(cmd)
	if err != nil {
		return err
	}
	left, err := drill.Leftovers(cmd.Context(), opt.Conn)
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := drill.Clean(cmd.Context(), opt, name); err != nil {
			return fmt.Errorf("clean up %s: %w", name, err)
		}
		if !a.json() {
			fmt.Fprintln(a.stdout, "removed", name)
		}
	}
	if a.json() {
		return cli.WriteJSON(a.stdout, struct {
			Removed []string `json:"removed"`
		}{append([]string{}, left...)})
	}
	return nil
}

// drillChild is a child's whole life, which ends with its standard input.
func (a *app) drillChild(ctx context.Context, role string) error {
	// Ctrl-C goes to the whole process group; the drill says when to end.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	in := bufio.NewReader(a.stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return cli.UsageError("this command is for drills alone", `see "walpost drill --help"`)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	var spec drill.Spec
	var cfg config.Config
	if err := json.Unmarshal(line, &spec); err != nil {
		return fmt.Errorf("read what to do: %w", err)
	}
	if err := json.Unmarshal(spec.Config, &cfg); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	switch role {
	case drill.RoleService:
		conn, err := pg.ParseDSN(cfg.Postgres.DSN)
		if err != nil {
			return err
		}
		return drill.Service(ctx, conn, spec, a.stdout)
	case drill.RoleRelay:
		return a.drillRelay(ctx, &cfg, spec)
	default:
		return cli.UsageError(fmt.Sprintf("unknown role %q", role), `see "walpost drill --help"`)
	}
}

// drillRelay relays as run does, with the drill's names.
func (a *app) drillRelay(ctx context.Context, cfg *config.Config, spec drill.Spec) error {
	cfg.Postgres.Slot, cfg.Postgres.Publication, cfg.Postgres.Snapshot = spec.Name, spec.Name, config.SnapshotNone
	cfg.Postgres.Tables = []config.Table{{Schema: spec.Name, Name: "outbox_events"}}
	cfg.Topic, cfg.Topics = spec.Topic, config.Topics{Partitions: -1, ReplicationFactor: -1}
	cfg.Sink, cfg.Admin, cfg.Debezium = config.SinkKafka, config.Admin{}, config.Debezium{}
	log, err := a.logger(cfg)
	if err != nil {
		return err
	}
	instance, err := wire.New(wire.Options{
		Config: cfg, Stdout: a.stdout, ReadFile: a.readFile, Dial: drill.Via(spec.Proxy), Log: log,
	})
	if err != nil {
		return err
	}
	return instance.Run(ctx, ctx)
}
