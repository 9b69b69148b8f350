package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/walpost/walpost/checkpoint"
	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/config"
	"github.com/walpost/walpost/internal/event"
	"github.com/walpost/walpost/internal/metrics"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/relay"
	"github.com/walpost/walpost/internal/route"
	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

// Options are what the configuration does not say.
type Options struct {
	Config   *config.Config
	Version  string
	Revision string
	Stdout   io.Writer // of the stdout sink
	ReadFile func(path string) ([]byte, error)
	// Translation takes the place of the configuration's own tables and topic; nil:
	// it does not.
	Translation *Translation
	// Dial takes the place of the dialer to the brokers; nil: it does not.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	Log  *zap.Logger
}

// Translation says what makes records, and how the relay begins.
type Translation struct {
	Translator route.Translator
	Tables     []slot.Table
	Fits       func(*decoder.Relation) error // says why rows of a table make no records
	Messages   bool                          // logical messages make records too
	// SnapshotMode is one of Debezium's: no_data, initial, initial_only, always,
	// when_needed. Empty leaves it to the configuration.
	SnapshotMode string
	Failover     bool // for a slot that is made
	ConfirmNone  bool // the slot stays where it is
	DropsSlot    bool // after a clean stop, so that it is missing at the start
	// Delivered says in which topics another tool has published from the slot
	// before, and its Records how far to look back where the records' timestamps
	// mean something else than when; nil: none has.
	Delivered *sink.Since
	// Heartbeat is a record that is sent now and then, with a query beside it; may
	// be nil, and empty.
	Heartbeat      *relay.Heartbeat
	HeartbeatQuery string
	AskTopics      bool // let a broker make missing topics, if it is set to
}

// Instance is a relay with its admin listener, ready to run.
type Instance struct {
	relay *relay.Relay
	admin *admin.Server // nil: off
	// beside runs as long as the relay; may be nil.
	beside func(context.Context)
}

// New builds an instance. It connects to nothing; its errors are faults of the
// configuration.
func New(opt Options) (*Instance, error) {
	cfg, log := opt.Config, opt.Log
	conn, err := pg.ParseDSN(cfg.Postgres.DSN)
	if err != nil {
		return nil, err
	}
	translation := opt.Translation
	if translation == nil {
		if translation, err = own(cfg); err != nil {
			return nil, err
		}
	}
	m := metrics.New(metrics.Options{Slot: cfg.Postgres.Slot, Version: opt.Version, Revision: opt.Revision})
	instance := strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	name := "walpost/" + cfg.Postgres.Slot + "/" + instance
	w := &wiring{opt: opt, conn: conn, name: name, translation: translation, metrics: m}
	w.store = checkpoint.NewStore(conn, cfg.Postgres.Slot, name)
	r, err := relay.New(relay.Options{
		SlotName:       cfg.Postgres.Slot,
		Instance:       instance,
		Open:           w.open,
		NewSink:        w.sink,
		NewMonitor:     w.monitor,
		Initial:        w.initial,
		Predecessor:    func() *sink.Since { return w.delivered },
		Store:          w.store,
		Translator:     translation.Translator,
		Heartbeat:      translation.Heartbeat,
		Metrics:        m,
		DrainTimeout:   cfg.Relay.DrainTimeout,
		ConfirmNothing: w.unmoved(),
		InitialOnly:    translation.SnapshotMode == modeInitialOnly,
		Log:            log,
	})
	if err != nil {
		return nil, err
	}
	i := &Instance{relay: r}
	if translation.Heartbeat != nil && translation.HeartbeatQuery != "" {
		i.beside = w.action
	}
	if cfg.Admin.Listen != "" {
		if i.admin, err = admin.New(admin.Options{
			Listen: cfg.Admin.Listen, Snapshot: r.Snapshot, Live: r.Live, Metrics: m, Log: log,
		}); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// own is what walpost's own configuration says.
func own(cfg *config.Config) (*Translation, error) {
	mapper, err := event.NewMapper(EventTables(cfg.Postgres.Tables))
	if err != nil {
		return nil, err
	}
	router, err := route.New(route.Options{Topic: cfg.Topic, Allow: cfg.Topics.Allow})
	if err != nil {
		return nil, err
	}
	return &Translation{
		Translator: route.NewRows(mapper, router), Tables: SlotTables(cfg.Postgres.Tables), Fits: Fits(mapper),
	}, nil
}

// Run relays until intake ends and everything is delivered, or hard ends.
func (i *Instance) Run(intake, hard context.Context) error {
	CollectEarly()
	var group errgroup.Group
	hard, stop := context.WithCancel(hard)
	intake, stopIntake := context.WithCancelCause(intake)
	defer stopIntake(nil)
	group.Go(func() error { Processors(hard); return nil })
	group.Go(func() error {
		defer stop()
		return i.relay.Run(intake, hard)
	})
	if i.beside != nil {
		group.Go(func() error { i.beside(hard); return nil })
	}
	if i.admin != nil {
		group.Go(func() error {
			err := i.admin.Run(hard)
			if err != nil {
				stopIntake(err)
				stop()
			}
			return err
		})
	}
	return group.Wait()
}

// Snapshot tells how things are.
func (i *Instance) Snapshot() relay.Snapshot { return i.relay.Snapshot() }

// wiring makes the parts when the relay asks for them.
type wiring struct {
	opt         Options
	conn        *pgx.ConnConfig
	name        string // application_name
	translation *Translation
	metrics     *metrics.Metrics
	store       *checkpoint.Store
	// delivered is found out before the first session.
	delivered *sink.Since
}

func (w *wiring) open(ctx context.Context, known slot.History, remembered func() (slot.History, error), expected *slot.Published) (relay.Stream, error) {
	p := &w.opt.Config.Postgres
	s, err := slot.Open(ctx, slot.StreamOptions{
		Config: w.conn, Slot: p.Slot, Publication: p.Publication, Application: w.name,
		Known: known, Remembered: remembered, Tables: w.translation.Tables, Expected: expected, Fits: Defined(w.translation.Fits),
		Messages: w.translation.Messages, Unmoved: w.unmoved(),
		StatusInterval: p.StatusInterval, ConfirmInterval: p.ConfirmInterval, Log: w.opt.Log,
	})
	if err != nil {
		return nil, err // not a typed nil in the interface
	}
	return s, nil
}

// unmoved says that nothing is confirmed. What is printed is not delivered.
func (w *wiring) unmoved() bool {
	return w.opt.Config.Sink == config.SinkStdout || w.translation.ConfirmNone
}

func (w *wiring) monitor(broken func(error), shutdown func()) relay.Monitor {
	p := &w.opt.Config.Postgres
	m := slot.NewMonitor(slot.MonitorOptions{
		Config: w.conn, Slot: p.Slot, Publication: p.Publication, Tables: w.translation.Tables,
		Application: w.name, Interval: p.PollInterval, Log: w.opt.Log,
	})
	m.OnPublicationBroken(broken)
	m.OnServerShutdown(shutdown)
	return m
}

func (w *wiring) sink(acked func([]sink.Ack)) (sink.Sink, error) {
	cfg := w.opt.Config
	if cfg.Sink == config.SinkStdout {
		return sink.NewStdout(w.opt.Stdout, acked), nil
	}
	security, err := Security(&cfg.Kafka, w.opt.ReadFile)
	if err != nil {
		return nil, err
	}
	s, err := sink.New(sink.Options{
		Brokers:         cfg.Kafka.Brokers,
		ClientID:        cfg.Kafka.ClientID,
		Security:        security,
		Compression:     cfg.Kafka.Compression,
		LimitBytes:      int64(cfg.Relay.InFlightBytes),
		MaxBatchBytes:   int(cfg.Kafka.MaxBatchBytes),
		MaxRequestBytes: int(cfg.Kafka.MaxRequestBytes),
		RequestTimeout:  cfg.Kafka.RequestTimeout,
		Dial:            w.opt.Dial,
		Topics: sink.TopicPolicy{
			Create: cfg.Topics.Create, Ask: w.translation.AskTopics && !cfg.Topics.Create, Partitions: cfg.Topics.Partitions,
			ReplicationFactor: cfg.Topics.ReplicationFactor, Configs: cfg.Topics.Configs,
		},
		AwaitRecovery: true,
		Acked:         acked, Observer: w.metrics, Log: w.opt.Log,
	})
	if err != nil {
		return nil, err
	}
	if w.opt.Translation == nil && !strings.Contains(cfg.Topic, "<") {
		s.Expect([]string{cfg.Topic})
	}
	return s, nil
}

// Security of the connections to the brokers, with the files that are named.
func Security(cfg *config.Kafka, readFile func(path string) ([]byte, error)) (sink.Security, error) {
	tlsConfig, err := cfg.TLS.ClientConfig(readFile)
	if err != nil {
		return sink.Security{}, fmt.Errorf("kafka.tls: %w", err)
	}
	return sink.Security{TLS: tlsConfig, Mechanism: cfg.SASL.Mechanism, Username: cfg.SASL.Username, Password: cfg.SASL.Password}, nil
}

// SlotTables are the configured tables as the catalog names them.
func SlotTables(configured []config.Table) []slot.Table {
	list := make([]slot.Table, len(configured))
	for i, t := range configured {
		list[i] = slot.Table{Schema: t.Schema, Name: t.Name}
	}
	return list
}

// EventTables are the configured tables with their mapping.
func EventTables(configured []config.Table) []event.Table {
	list := make([]event.Table, len(configured))
	for i, t := range configured {
		list[i] = event.Table{Name: t.String(), Schema: t.Schema, Table: t.Name, Columns: event.Columns(t.Columns)}
		for _, h := range t.Headers {
			list[i].Headers = append(list[i].Headers, event.HeaderColumn(h))
		}
	}
	return list
}

// Fits says of a relation what the mapper would say of its first row.
func Fits(mapper *event.Mapper) func(*decoder.Relation) error {
	return func(rel *decoder.Relation) error {
		index, ok := mapper.Lookup(rel.Namespace, rel.Name)
		if !ok {
			return fmt.Errorf("table %s is not configured", slot.Table{Schema: rel.Namespace, Name: rel.Name})
		}
		_, err := mapper.Compile(rel, index)
		return err
	}
}

// Defined asks the same of a table in the catalog.
func Defined(fits func(*decoder.Relation) error) func(*slot.Definition) error {
	return func(def *slot.Definition) error { return fits(relay.RelationOf(def)) }
}

// ErrStopped is the cause with which a signal ends intake.
var ErrStopped = errors.New("stopped by a signal")
