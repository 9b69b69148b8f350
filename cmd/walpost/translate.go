package main

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/config"
	"github.com/walpost/walpost/internal/debezium"
	"github.com/walpost/walpost/internal/debezium/connector"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/relay"
	"github.com/walpost/walpost/internal/retry"
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
	spec.PublicationName = cfg.Postgres.Publication
	var tables []slot.Table
	if spec.Partial && len(spec.TableInclude) == 0 {
		tables = wire.SlotTables(cfg.Postgres.Tables)
	}
	backoff := retry.Backoff{Min: 200 * time.Millisecond, Max: 10 * time.Second}
	var t *debezium.Translator
	for {
		t, err = debezium.Start(ctx, debezium.Options{
			Config: conn, Application: "walpost/" + cfg.Postgres.Slot + "/start", Spec: spec, Slot: cfg.Postgres.Slot,
			Tables: tables, JavaVersion: cfg.Debezium.JavaVersion, Allow: cfg.Topics.Allow, Log: log,
		})
		if err == nil {
			break
		}
		if ctx.Err() != nil || !slot.IsPassing(err) {
			return nil, startExit(err)
		}
		wait := backoff.Next()
		log.Warn("PostgreSQL cannot be reached", zap.Error(err), zap.Duration("retry_in", wait))
		if retry.Wait(ctx, wait) != nil {
			return nil, wire.ErrStopped
		}
	}
	translation := &wire.Translation{
		Translator: t, Tables: t.Selected(), Fits: t.Fits, Messages: spec.Router.MessageTopics,
		SnapshotMode: spec.SnapshotMode, Failover: spec.SlotFailover, ConfirmNone: spec.FlushManual,
		Delivered: t.Delivered(), HeartbeatQuery: spec.HeartbeatQuery,
	}
	if spec.HeartbeatInterval > 0 {
		translation.Heartbeat = &relay.Heartbeat{Every: spec.HeartbeatInterval, Record: t.Heartbeat}
	}
	return translation, nil
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
