package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/config"
	"github.com/walpost/walpost/internal/relay"
	"github.com/walpost/walpost/internal/wire"
)

func newRunCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Relay until stopped",
		Long: `run streams from the slot and publishes every event to Kafka until it is
stopped. PostgreSQL and Kafka may come and go: it waits, retries for ever and
confirms nothing that is not delivered. A second instance on the same slot waits
and takes over when the first one stops.

SIGTERM or SIGINT stops it softly: no new transaction is begun, what is in
flight is delivered and confirmed (relay.drain_timeout bounds that). A second
signal ends it at once; nothing is lost, the rest is published at the next
start. Exit code 4 means that the slot is missing, lost or not what it was, 5
that another instance took over while this one was cut off.`,
		Example: `  walpost run --dsn postgres://walpost@db/shop --brokers kafka:9092
  WALPOST_DSN=postgres://walpost@db/shop walpost run --sink stdout
  walpost run --config /etc/walpost.yaml --log-level debug`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd) },
	}
	addRelayFlags(cmd)
	return cmd
}

func (a *app) run(cmd *cobra.Command) error {
	cfg, err := a.load(cmd, config.NeedPostgres|config.NeedSink)
	if err != nil {
		return err
	}
	return a.relay(cmd.Context(), cfg)
}

// relay relays until a signal comes.
func (a *app) relay(ctx context.Context, cfg *config.Config) error {
	log, err := a.logger(cfg)
	if err != nil {
		return &cli.Exit{Code: cli.Usage, Err: err}
	}
	info, _ := debug.ReadBuildInfo()
	built := newVersionInfo(info, version, revision)
	intake, hard, stop := signals(ctx, log)
	defer stop()
	translation, err := a.translation(intake, cfg, log)
	if errors.Is(err, wire.ErrStopped) {
		return nil
	}
	if err != nil {
		return err
	}
	instance, err := wire.New(wire.Options{
		Config: cfg, Version: built.Version, Revision: built.Revision,
		Stdout: a.stdout, ReadFile: a.readFile, Translation: translation, Log: log,
	})
	if err != nil {
		return &cli.Exit{Code: cli.Usage, Err: err}
	}
	log.Info("starting", zap.String("version", built.Version), zap.String("slot", cfg.Postgres.Slot))
	err = instance.Run(intake, hard)
	switch {
	case err == nil:
		a.dropOnStop(ctx, cfg, log)
		log.Info("stopped")
		return nil
	case isSetup(err):
		return &cli.Exit{Code: cli.Usage, Err: err}
	case relay.IsFenced(err):
		return &cli.Exit{Code: cli.Fenced, Err: err}
	case relay.NeedsDecision(err):
		return &cli.Exit{Code: cli.Decision, Err: err}
	default:
		return err
	}
}

// signals gives the two contexts of a run: the first signal ends intake, the
// second one ends everything. A third one is not caught: it ends a process whose
// output nobody takes.
func signals(ctx context.Context, log *zap.Logger) (intake, hard context.Context, stop func()) {
	hard, kill := context.WithCancelCause(ctx)
	intake, drain := context.WithCancelCause(hard)
	received := make(chan os.Signal, 2)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for _, end := range []context.CancelCauseFunc{drain, kill} {
			select {
			case s := <-received:
				log.Info("stopping", zap.Stringer("signal", s))
				end(wire.ErrStopped)
			case <-done:
				return
			}
		}
		signal.Stop(received)
	}()
	return intake, hard, func() {
		signal.Stop(received)
		close(done)
		kill(nil)
	}
}

func isSetup(err error) bool {
	_, ok := errors.AsType[*relay.SetupError](err)
	return ok
}
