package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/config"
	"github.com/walpost/walpost/internal/debezium"
	"github.com/walpost/walpost/internal/debezium/connector"
	"github.com/walpost/walpost/internal/debezium/start"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/relay"
	"github.com/walpost/walpost/internal/retry"
	"github.com/walpost/walpost/internal/setup"
	"github.com/walpost/walpost/internal/wire"
	"github.com/walpost/walpost/slot"
)

// foreign reads a connector's configuration for config.Load, and keeps it.
func (a *app) foreign(d config.Debezium) ([]config.Value, []config.Warning, error) {
	spec, report, err := connector.Read(connector.Options{
		Config: d.Config, Worker: d.Worker, Properties: d.Properties, PropertiesName: d.PropertiesOrigin,
		Version: d.Version, NoContextHeaders: !d.ContextHeaders, ReproduceDebugText: d.ReproduceText,
		ReadFile: a.readFile, Environ: a.environ,
	})
	if err != nil {
		return nil, nil, err
	}
	a.connector = spec
	var values []config.Value
	for _, o := range spec.Overlay() {
		values = append(values, config.Value{Name: o.Name, Text: o.Text, Origin: o.Origin})
	}
	var warnings []config.Warning
	for _, e := range report.Sorted() {
		if e.Severity == connector.SeverityDiffers {
			warnings = append(warnings, config.Warning{Text: e.Key + ": " + e.Does + "; " + e.Difference, Way: e.Way})
		}
	}
	return values, warnings, nil
}

// translation does what a connector does at its start, as long as PostgreSQL
// takes, and gives what the relay needs to go on; nil without a connector.
func (a *app) translation(ctx context.Context, cfg *config.Config, log *zap.Logger) (*wire.Translation, error) {
	spec := a.connector
	if spec == nil {
		return nil, nil
	}
	conn, err := pg.ParseDSN(cfg.Postgres.DSN)
	if err != nil {
		return nil, &cli.Exit{Code: cli.Usage, Err: err}
	}
	backoff := retry.Backoff{Min: 200 * time.Millisecond, Max: 10 * time.Second}
	var t *debezium.Translator
	var probed *waiting
	defer func() { probed.end() }()
	for {
		t, err = debezium.Start(ctx, a.startOptions(cfg, conn, log))
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil, wire.ErrStopped
		}
		if !slot.IsPassing(err) {
			return nil, startExit(err)
		}
		if probed == nil {
			var fault error
			if probed, fault = newWaiting(context.WithoutCancel(ctx), cfg, log); fault != nil {
				return nil, fault
			}
		}
		probed.failed(err)
		wait := backoff.Next()
		log.Warn("cannot start yet", zap.Error(err), zap.Duration("retry_in", wait))
		if retry.Wait(ctx, wait) != nil {
			return nil, wire.ErrStopped
		}
	}
	translation := &wire.Translation{
		Translator: t, Tables: t.Selected(), Fits: t.Fits, Messages: spec.Router.MessageTopics,
		SnapshotMode: spec.SnapshotMode, Failover: spec.SlotFailover, ConfirmNone: spec.FlushManual, DropsSlot: spec.SlotDropOnStop,
		Delivered: t.Delivered(), HeartbeatQuery: spec.HeartbeatQuery, AskTopics: true,
	}
	if spec.HeartbeatInterval > 0 {
		translation.Heartbeat = &relay.Heartbeat{Every: spec.HeartbeatInterval, Record: t.Heartbeat}
	}
	return translation, nil
}

func (a *app) startOptions(cfg *config.Config, conn *pgx.ConnConfig, log *zap.Logger) debezium.Options {
	a.connector.PublicationName = cfg.Postgres.Publication
	return debezium.Options{
		Config: conn, Application: "walpost/" + cfg.Postgres.Slot + "/start", Spec: a.connector, Slot: cfg.Postgres.Slot,
		Tables: a.namedTables(cfg), Look: cfg.Sink == config.SinkStdout, JavaVersion: cfg.Debezium.JavaVersion, Allow: cfg.Topics.Allow, Log: log,
	}
}

// namedTables are walpost's own, where they take the place of the connector's
// lists; nil where they do not.
func (a *app) namedTables(cfg *config.Config) []slot.Table {
	if a.connector == nil || a.connector.Partial && len(a.connector.TableInclude) == 0 {
		return wire.SlotTables(cfg.Postgres.Tables)
	}
	return nil
}

// tables are the outbox tables: the configured ones, or those that a connector
// selects.
func (a *app) tables(ctx context.Context, conn *pgx.Conn, cfg *config.Config) ([]slot.Table, error) {
	if named := a.namedTables(cfg); named != nil {
		return named, nil
	}
	a.connector.PublicationName = cfg.Postgres.Publication
	return start.Tables(ctx, conn, a.connector)
}

// fitsConnector refuses what init cannot do for a connector.
func (a *app) fitsConnector(cfg *config.Config, f initFlags) error {
	switch {
	case a.connector == nil:
		return nil
	case f.createTable:
		return cli.UsageError("--create-table: it makes walpost's own table, and a connector has columns of its own",
			"make the table that the connector expects, and run init without it")
	case f.print && a.namedTables(cfg) == nil && cfg.Origin("postgres.tables") == "default":
		return cli.UsageError("--print: which tables the connector selects is known only by looking at the database",
			"leave --print away, or name the tables in table.include.list as they are")
	}
	return nil
}

// connectorSetup does what a connector does at its start, and leaves the rest to
// init.
func (a *app) connectorSetup(ctx context.Context, cfg *config.Config, opt *setup.Options) error {
	conn, err := pg.ParseDSN(cfg.Postgres.DSN)
	if err != nil {
		return err
	}
	t, err := debezium.Start(ctx, a.startOptions(cfg, conn, zap.NewNop()))
	if err != nil {
		return err
	}
	opt.Tables, opt.CheckTable, opt.Wider, opt.Failover = t.Selected(), wire.Defined(t.Fits), true, a.connector.SlotFailover
	opt.LaterSlot = cfg.Postgres.Snapshot == config.SnapshotInitial ||
		cfg.Origin("postgres.snapshot") == "default" && a.connector.SnapshotMode != "no_data"
	return nil
}

// startExit gives a fault of the start its exit code: what only a person can
// decide about the slot is a decision, the rest is the configuration's fault.
func startExit(err error) error {
	code := cli.Usage
	if e, ok := errors.AsType[*slot.Error](err); ok && (e.Kind == slot.ErrPublication || e.Kind == slot.ErrUnfit) {
		code = cli.Decision
	}
	return &cli.Exit{Code: code, Err: err}
}
