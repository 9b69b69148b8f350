package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/config"
	"github.com/walpost/walpost/internal/event"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/setup"
	"github.com/walpost/walpost/internal/wire"
	"github.com/walpost/walpost/slot"
)

// initFlags are those that only init has.
type initFlags struct {
	createTable bool
	payload     string
	failover    bool
	checkpoint  bool

	wait  time.Duration
	print bool

	consumer bool
}

func newInitCommand(a *app) *cobra.Command {
	f := initFlags{payload: setup.Payloads[0]}
	cmd := &cobra.Command{
		Use:   "init [flags]",
		Short: "Create publication and slot, and the outbox table if asked to",
		Long: `init makes what the relay needs in PostgreSQL: a publication of the inserts of
the outbox tables, and then the replication slot. From then on the server keeps
the WAL until the relay has confirmed it.

It looks at everything first, changes nothing when something does not fit, and
leaves alone what is there: running it again changes nothing. It needs the owner
of the tables, with the right to create in the database and with REPLICATION;
--print shows the statements for somebody else, and needs no connection.`,
		Example: `  walpost init --dsn postgres://owner@db/shop --create-table
  walpost init --create-table --payload json --print
  walpost init --slot orders --publication orders --table sales.outbox`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.init(cmd, f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.createTable, "create-table", false, "create the outbox tables that are missing, append-only")
	flags.Var(&choice{&f.payload, setup.Payloads[:]}, "payload", "type of the payload column of a created table")
	flags.BoolVar(&f.checkpoint, "checkpoint", true, "make the tables that let a restarted relay send nothing twice")
	flags.BoolVar(&f.failover, "failover", true, "let standbys synchronize the slot (PostgreSQL 17 and later)")
	flags.DurationVar(&f.wait, "wait", 30*time.Second, "how long the slot may wait for open transactions")
	flags.BoolVar(&f.print, "print", false, "print the SQL instead of running it")
	flags.BoolVar(&f.consumer, "consumer", false, "with --print, also print the tables that a consumer keeps")
	return cmd
}

func (a *app) init(cmd *cobra.Command, f initFlags) error {
	if f.consumer && !f.print {
		return cli.UsageError("--consumer goes with --print: a consumer's tables belong to its own database",
			"add --print and run the SQL there, or call outbox.Migrate in the consumer")
	}
	need := config.NeedPostgres
	if f.print {
		need = 0
	}
	cfg, err := a.load(cmd, need)
	if err != nil {
		return err
	}
	mapper, err := event.NewMapper(wire.EventTables(cfg.Postgres.Tables))
	if err != nil {
		return &cli.Exit{Code: cli.Usage, Err: err}
	}
	if err := a.fitsConnector(cfg, f); err != nil {
		return err
	}
	opt := setup.Options{
		Slot: cfg.Postgres.Slot, Publication: cfg.Postgres.Publication, Tables: wire.SlotTables(cfg.Postgres.Tables),
		CreateTables: f.createTable, Payload: f.payload, Failover: f.failover, Wait: f.wait, CheckTable: wire.Defined(wire.Fits(mapper)), Checkpoint: f.checkpoint,
		Consumer:  f.consumer,
		LaterSlot: cfg.Postgres.Snapshot == config.SnapshotInitial,
	}
	if f.print {
		return a.printSQL(opt)
	}
	conn, err := pg.ParseDSN(cfg.Postgres.DSN)
	if err != nil {
		return setupExit(err)
	}
	if a.connector != nil {
		if err := a.connectorSetup(cmd.Context(), cfg, &opt); err != nil {
			return setupExit(err)
		}
	}
	result, err := setup.Run(cmd.Context(), conn, opt)
	if err != nil {
		return setupExit(err)
	}
	return a.printSetup(result, followUp(cmd, cfg))
}

func (a *app) printSQL(opt setup.Options) error {
	sql, err := setup.SQL(opt)
	if err != nil {
		return setupExit(err)
	}
	if a.json() {
		return cli.WriteJSON(a.stdout, struct {
			SQL string `json:"sql"`
		}{sql})
	}
	_, err = fmt.Fprint(a.stdout, sql)
	return err
}

func (a *app) printSetup(result *setup.Result, next string) error {
	if a.json() {
		var start *string
		if result.StartLSN != "" {
			start = &result.StartLSN
		}
		return cli.WriteJSON(a.stdout, struct {
			Steps    []setup.Step `json:"steps"`
			StartLSN *string      `json:"start_lsn"` // null when the slot was there
			Next     string       `json:"next"`
		}{result.Steps, start, next})
	}
	table := cli.NewTable(a.stdout)
	for _, s := range result.Steps {
		table.Row(string(s.State), s.Name, s.Object)
		if s.Note != "" {
			table.Row("", "", s.Note)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "next: %s\n", next)
	return err
}

// followUp is the command that comes next, with the flags that init was given.
func followUp(cmd *cobra.Command, cfg *config.Config) string {
	var b strings.Builder
	b.WriteString("walpost run")
	for _, name := range []string{config.FileFlag, "debezium", "worker", "slot", "publication"} {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
			b.WriteString(" --" + name + " " + shellQuote(flag.Value.String()))
		}
	}
	if cmd.Flags().Changed("table") {
		for _, t := range cfg.Postgres.Tables {
			b.WriteString(" --table " + shellQuote(t.String()))
		}
	}
	if len(cfg.Kafka.Brokers) == 0 && cfg.Sink == config.SinkKafka {
		b.WriteString(" --brokers HOST:9092")
	}
	return b.String()
}

func shellQuote(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:-", r)
	}) < 0
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// setupExit gives an error of slot, publication or server its exit code: what
// passes can be tried again, what was set wrong must be set right, and what is
// there but does not fit is somebody's decision.
func setupExit(err error) error {
	code := cli.Failure
	state := pg.SQLState(err)
	e, typed := errors.AsType[*slot.Error](err)
	if typed {
		state = e.SQLState
	}
	switch {
	case typed && (e.Kind == slot.ErrInUse || state == "55P03" || state == "57014"):
	case typed && (e.Kind == slot.ErrTable || e.Kind == slot.ErrServer || e.Kind == slot.ErrDenied):
		code = cli.Usage
	case typed:
		code = cli.Decision
	case strings.HasPrefix(state, "28"), state == "3D000", state == "42501": // role, password, pg_hba, database
		code = cli.Usage
	}
	return &cli.Exit{Code: code, Err: err}
}
