package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/config"
	"github.com/walpost/walpost/internal/debezium/takeover"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/wire"
	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

// takeoverFlags are those that only takeover has.
type takeoverFlags struct {
	plan        bool
	terminate   bool
	wait        time.Duration
	settle      time.Duration
	offsetFile  string
	offsetTopic string
}

func newTakeoverCommand(a *app) *cobra.Command {
	f := takeoverFlags{}
	cmd := &cobra.Command{
		Use:   "takeover FILE [flags]",
		Short: "Take a live slot over from Debezium, and relay",
		Long: `takeover waits until Debezium lets go of the slot that FILE names, and then runs
as "walpost run --debezium FILE" does, without a snapshot: from the slot's own
position, where Debezium stopped confirming. What Debezium has published behind
that position is found at the ends of the topics' partitions by its id and not
sent again.

Debezium keeps its slot until the connector is stopped; one that is paused keeps
it too. --terminate ends the session that has the slot, and again if it comes
back, which it does until the connector is stopped or paused.

--plan prints what there is, what would happen and in which order, and changes
nothing. Debezium's stored offset is read from where the connector's or the
worker's file says, or from --offset-file or --offset-topic.

Exit codes of --plan: 0 it can be done, 3 it can be done and there is something
that you should know, 4 it takes a decision first (slot missing, lost, not fit), 2
the configuration is refused.`,
		Example: `  walpost debezium takeover connector.json --worker connect-distributed.properties --plan
  walpost debezium takeover connector.json --brokers kafka:9092 --offset-topic connect-offsets --plan -o json
  walpost debezium takeover application.properties --wait 5m
  walpost debezium takeover connector.json --worker connect.properties --terminate`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error { return a.takeover(cmd, args[0], f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.plan, "plan", false, "print what would happen, and change nothing")
	flags.BoolVar(&f.terminate, "terminate", false, "end the session that has the slot, and again if it comes back")
	flags.DurationVar(&f.wait, "wait", 0, "how long to wait until the slot is let go; 0 is as long as it takes")
	flags.DurationVar(&f.settle, "settle", 5*time.Second, "how long to wait then, for what Debezium's producer has in hand")
	flags.StringVar(&f.offsetFile, "offset-file", "", "file of Debezium's stored offsets (offset.storage.file.filename)")
	flags.StringVar(&f.offsetTopic, "offset-topic", "", "topic of Kafka Connect's stored offsets (offset.storage.topic)")
	addRelayFlags(cmd)
	return cmd
}

// takeoverName is the application_name of the sessions before the relay's. It does
// not begin like a relay's, which would be taken for one.
const takeoverName = "walpost-takeover"

func (a *app) takeover(cmd *cobra.Command, file string, f takeoverFlags) error {
	if s := cmd.Flags().Lookup("snapshot"); s != nil && s.Changed && s.Value.String() != config.SnapshotNone {
		return cli.UsageError("takeover goes on where Debezium stopped, and makes no snapshot",
			`"walpost run --debezium FILE --snapshot initial" publishes all rows of the table first`)
	}
	if f.offsetFile != "" && f.offsetTopic != "" {
		return cli.UsageError("--offset-file and --offset-topic are both set", "keep one of them")
	}
	if f.wait < 0 || f.settle < 0 {
		return cli.UsageError("a time to wait is not negative", "write something like --wait 5m")
	}
	for name, value := range map[string]string{"debezium": file, "snapshot": config.SnapshotNone} {
		if err := cmd.Flags().Set(name, value); err != nil {
			return err
		}
	}
	cfg, err := a.load(cmd, config.NeedPostgres|config.NeedSink)
	if err != nil {
		return err
	}
	if cfg.Sink != config.SinkKafka {
		return cli.UsageError("takeover takes the slot from Debezium, and only prints events with --sink "+cfg.Sink,
			"leave --sink out; --plan looks without taking")
	}
	if a.connector.SnapshotMode == "initial_only" {
		return cli.UsageError(file+": snapshot.mode=initial_only: this connector does not stream, so there is nothing to take over",
			`"walpost run --debezium FILE" publishes the rows of the table and ends`)
	}
	conn, err := pg.ParseDSN(cfg.Postgres.DSN)
	if err != nil {
		return &cli.Exit{Code: cli.Usage, Err: err}
	}
	if f.plan {
		return a.printPlan(cmd, cfg, conn, f)
	}
	release := &takeover.Release{
		Config: conn, Application: takeoverName, Slot: cfg.Postgres.Slot, Terminate: f.terminate, Wait: f.wait, Settle: f.settle,
	}
	if release.Log, err = a.logger(cfg); err != nil {
		return &cli.Exit{Code: cli.Usage, Err: err}
	}
	plan, err := takeover.Look(cmd.Context(), a.lookOptions(cmd, cfg, conn, f))
	if err != nil {
		return setupExit(err)
	}
	for _, found := range plan.Findings {
		if found.Level == takeover.LevelDecision {
			return &cli.Exit{Code: cli.Decision, Err: errors.New(found.Text), Way: found.Way}
		}
		if found.Level == takeover.LevelFinding {
			cli.PrintWarning(a.stderr, found.Text, found.Way)
		}
	}
	if err := await(cmd.Context(), release); err != nil {
		if errors.Is(err, context.Canceled) {
			release.Log.Info("stopped")
			return nil
		}
		return setupExit(err)
	}
	if f.terminate {
		guarding, stop := context.WithCancel(cmd.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			release.Guard(guarding)
		}()
		defer func() { stop(); <-ended }()
	}
	return a.relay(cmd.Context(), cfg)
}

// await waits for the slot until a signal comes.
func await(ctx context.Context, release *takeover.Release) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := release.Await(ctx)
	if ctx.Err() != nil {
		return context.Canceled
	}
	return err
}

func (a *app) lookOptions(cmd *cobra.Command, cfg *config.Config, conn *pgx.ConnConfig, f takeoverFlags) takeover.Options {
	opt := takeover.Options{
		Config: conn, Application: takeoverName, Spec: a.connector, Slot: cfg.Postgres.Slot, Publication: cfg.Postgres.Publication,
		ReadFile: a.readFile, ReadTopic: a.readTopic(cfg), Terminate: f.terminate, Settle: f.settle,
		Command: "walpost debezium takeover " + shellQuote(cfg.Debezium.Config),
	}
	if cfg.Debezium.Worker != "" {
		opt.Command += " --worker " + shellQuote(cfg.Debezium.Worker)
	}
	if f.terminate {
		opt.Command += " --terminate"
	}
	if _, report, _, err := a.readConnector(cmd, cfg.Debezium.Config); err == nil {
		opt.Storage, opt.KeepAlives = takeover.Locate(report), takeover.KeepAlives(report)
	}
	if f.offsetFile != "" || f.offsetTopic != "" {
		opt.Storage = takeover.Storage{File: f.offsetFile, Topic: f.offsetTopic}
	}
	return opt
}

// readTopic reads a compacted topic with the relay's own connection to Kafka.
func (a *app) readTopic(cfg *config.Config) func(context.Context, string, func([]byte) bool) (map[string][]byte, error) {
	return func(ctx context.Context, topic string, keep func([]byte) bool) (map[string][]byte, error) {
		if len(cfg.Kafka.Brokers) == 0 {
			return nil, errors.New("no brokers are named")
		}
		security, err := wire.Security(&cfg.Kafka, a.readFile)
		if err != nil {
			return nil, err
		}
		return sink.LastValues(ctx, sink.Options{
			Brokers: cfg.Kafka.Brokers, ClientID: cfg.Kafka.ClientID, RequestTimeout: cfg.Kafka.RequestTimeout, Security: security,
		}, topic, keep)
	}
}

// dropOnStop does what slot.drop.on.stop asks for, after a clean stop. What is
// printed was not delivered, so that the slot is still needed.
func (a *app) dropOnStop(ctx context.Context, cfg *config.Config, log *zap.Logger) {
	if a.connector == nil || !a.connector.SlotDropOnStop || cfg.Sink == config.SinkStdout {
		return
	}
	conn, err := pg.ParseDSN(cfg.Postgres.DSN)
	if err != nil {
		return // it was right when the relay began
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	if err := takeover.Drop(ctx, conn, "walpost/"+cfg.Postgres.Slot+"/stop", cfg.Postgres.Slot); err != nil {
		log.Warn("slot not dropped, although slot.drop.on.stop=true", zap.String("slot", cfg.Postgres.Slot), zap.Error(err))
		return
	}
	log.Warn("slot dropped, as slot.drop.on.stop says: what is committed until the next start is not published", zap.String("slot", cfg.Postgres.Slot))
}

// planExit gives the plan's worst finding its exit code.
func planExit(p *takeover.Plan) error {
	for _, f := range p.Findings {
		switch f.Level {
		case takeover.LevelDecision:
			return &cli.Exit{Code: cli.Decision, Err: errors.New("it takes a decision first: " + f.Text), Way: f.Way}
		case takeover.LevelFinding:
			n := 0
			for _, f := range p.Findings {
				if f.Level == takeover.LevelFinding {
					n++
				}
			}
			return &cli.Exit{Code: cli.Findings, Err: errors.New("it can be done, with " + plural(n, "finding")), Way: "see the lines that begin with finding"}
		}
	}
	return nil
}

// printPlan is takeover --plan.
func (a *app) printPlan(cmd *cobra.Command, cfg *config.Config, conn *pgx.ConnConfig, f takeoverFlags) error {
	plan, err := takeover.Look(cmd.Context(), a.lookOptions(cmd, cfg, conn, f))
	if err != nil {
		return setupExit(err)
	}
	if a.json() {
		err = cli.WriteJSON(a.stdout, newPlanReport(cfg.Debezium.Config, plan))
	} else {
		err = writePlan(a.stdout, plan)
	}
	if err != nil {
		return err
	}
	return planExit(plan)
}

// tableNames as people write them.
func tableNames(tables []slot.Table) []string {
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.String()
	}
	return names
}
