package debezium

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/catalog"
	"github.com/walpost/walpost/internal/debezium/column"
	"github.com/walpost/walpost/internal/debezium/connect"
	"github.com/walpost/walpost/internal/debezium/connector"
	"github.com/walpost/walpost/internal/debezium/router"
	"github.com/walpost/walpost/internal/debezium/start"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/internal/retry"
	"github.com/walpost/walpost/internal/route"
	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

// Options of a Translator.
type Options struct {
	Config      *pgx.ConnConfig
	Application string
	Spec        *connector.Spec
	Slot        string
	Tables      []slot.Table // instead of what the connector's lists select
	Look        bool         // makes nothing that is missing
	JavaVersion int          // whose text of numbers is reproduced
	// Allow lists the topics that may be written to, as names or patterns with *, ?
	// and [a-z]; any when it is empty.
	Allow []string
	Log   *zap.Logger
}

// Translator makes the records that Debezium would make. One goroutine uses it.
type Translator struct {
	opt    Options
	router *router.Router
	tables []slot.Table
	known  [][]column.Info // of the tables, as they were last seen
	allow  route.Allow

	allowed map[string]bool // topics that were looked at
}

// Start does what the connector does when it starts, and gives the Translator
// for the tables that it found. Faults of the connection pass (slot.IsPassing);
// others are of the configuration or the database.
func Start(ctx context.Context, opt Options) (*Translator, error) {
	allow, err := route.NewAllow(opt.Allow)
	if err != nil {
		return nil, err
	}
	r, err := newRouter(opt)
	if err != nil {
		return nil, err
	}
	conn, err := pg.Connect(ctx, opt.Config, opt.Application)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	tables, err := start.Run(ctx, conn, start.Options{Spec: opt.Spec, Slot: opt.Slot, Tables: opt.Tables, Look: opt.Look, Log: opt.Log})
	if err != nil {
		return nil, err
	}
	t := &Translator{opt: opt, router: r, tables: tables, allow: allow, known: make([][]column.Info, len(tables)), allowed: map[string]bool{}}
	for i, table := range tables {
		if _, t.known[i], err = catalog.ByName(ctx, conn, table.Schema, table.Name); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func newRouter(opt Options) (*router.Router, error) {
	o := opt.Spec.Router
	var err error
	for _, c := range []struct {
		role connect.Role
		spec connector.ConverterSpec
		into *connect.Converter
	}{
		{connect.RoleKey, opt.Spec.Key, &o.Key},
		{connect.RoleValue, opt.Spec.Value, &o.Value},
		{connect.RoleHeader, opt.Spec.Header, &o.Header},
	} {
		if *c.into, err = connect.New(c.spec.Class, c.role, c.spec.Options, connect.Options{JavaVersion: opt.JavaVersion}); err != nil {
			return nil, err
		}
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	o.NoDebugText = !opt.Spec.ReproduceDebugText
	o.RunID, o.DatabaseName, o.Modes, o.Log = id.String(), opt.Config.Database, opt.Spec.Modes, opt.Log
	return router.New(o)
}

// Selected are the tables that were found.
func (t *Translator) Selected() []slot.Table { return t.tables }

// Lookup implements route.Translator.
func (t *Translator) Lookup(schema, name string) (int, bool) {
	for i, table := range t.tables {
		if table.Schema == schema && table.Name == name {
			return i, true
		}
	}
	return 0, false
}

// Tables implements route.Translator.
func (t *Translator) Tables() []string {
	names := make([]string, len(t.tables))
	for i, table := range t.tables {
		names[i] = table.String()
	}
	return names
}

// Updates implements route.Translator: one that changes the primary key makes a
// record.
func (t *Translator) Updates() bool { return true }

// Message implements route.Translator.
func (t *Translator) Message(c *decoder.Change, rec *sink.Record) (bool, error) {
	return t.router.Message(c, rec)
}

// Observe implements route.Observer.
func (t *Translator) Observe(c *decoder.Change) { t.router.Observe(c) }

// Heartbeat makes the connector's heartbeat.
func (t *Translator) Heartbeat(now time.Time, rec *sink.Record) error {
	return t.router.Heartbeat(now, rec)
}

// Fits says of a relation what its rows would meet.
func (t *Translator) Fits(rel *decoder.Relation) error {
	table, ok := t.Lookup(rel.Namespace, rel.Name)
	if !ok {
		return fmt.Errorf("table %s is not one of the connector's", slot.Table{Schema: rel.Namespace, Name: rel.Name})
	}
	_, err := t.router.Compile(rel, describe(rel, t.known[table]))
	return err
}

// Compile implements route.Translator. It asks the catalog, as long as it takes.
func (t *Translator) Compile(ctx context.Context, rel *decoder.Relation, table int) (route.Plan, error) {
	columns, err := t.columns(ctx, rel, table)
	if err != nil {
		return nil, err
	}
	p, err := t.router.Compile(rel, describe(rel, columns))
	if err != nil {
		return nil, err
	}
	return &plan{t, p, uint32(table)}, nil
}

// describe puts together what the router wants to know of a table.
func describe(rel *decoder.Relation, columns []column.Info) router.Table {
	table := router.Table{Schema: rel.Namespace, Name: rel.Name, Columns: columns}
	var key []column.Info
	for _, c := range columns {
		if c.KeyPlace > 0 {
			key = append(key, c)
		}
	}
	slices.SortFunc(key, func(a, b column.Info) int { return cmp.Compare(a.KeyPlace, b.KeyPlace) })
	for _, c := range key {
		table.Key = append(table.Key, c.Name)
	}
	return table
}

func (t *Translator) columns(ctx context.Context, rel *decoder.Relation, table int) ([]column.Info, error) {
	backoff := retry.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	for {
		columns, err := t.read(ctx, rel.OID)
		switch {
		case err == nil:
			t.known[table] = columns
			return columns, nil
		case errors.Is(err, catalog.ErrNotFound):
			return t.known[table], nil // it is gone; this is what it was
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		t.opt.Log.Warn("cannot look up the columns of a table", zap.String("relation", rel.Namespace+"."+rel.Name), zap.Error(err))
		if err := retry.Wait(ctx, backoff.Next()); err != nil {
			return nil, err
		}
	}
}

func (t *Translator) read(ctx context.Context, oid uint32) ([]column.Info, error) {
	conn, err := pg.Connect(ctx, t.opt.Config, t.opt.Application)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return catalog.Read(ctx, conn, oid)
}

// plan is a router.Plan as a route.Plan.
type plan struct {
	translator *Translator
	plan       *router.Plan
	table      uint32
}

// Record implements route.Plan.
func (p *plan) Record(c *decoder.Change, rec *sink.Record) (bool, error) {
	rec.Tag.Source = p.table
	outcome, err := p.plan.Record(c, rec)
	return p.finish(rec, outcome, err)
}

// SnapshotRecord implements route.SnapshotPlan.
func (p *plan) SnapshotRecord(c *decoder.Change, rec *sink.Record) (bool, error) {
	rec.Tag.Source = p.table
	outcome, err := p.plan.SnapshotRow(c, rec)
	return p.finish(rec, outcome, err)
}

func (p *plan) finish(rec *sink.Record, outcome router.Outcome, err error) (bool, error) {
	if err != nil || outcome != router.Published {
		return false, err
	}
	t := p.translator
	if t.allowed[rec.Topic] {
		return true, nil
	}
	if !t.allow.Has(rec.Topic) {
		reject := t.allow.Reject(rec.Topic)
		reject.Table, reject.EventID = t.tables[p.table].String(), string(p.plan.EventID())
		return false, reject
	}
	if len(t.allowed) >= maxTopics {
		clear(t.allowed)
	}
	t.allowed[rec.Topic] = true
	return true, nil
}

// maxTopics bounds the topic names that are kept.
const maxTopics = 1 << 14

// lookBack is how many of a partition's newest records are looked at where their
// timestamps do not tell when they were written.
const lookBack = 20_000

// Delivered says where Debezium may have left records that it had not confirmed.
// Only the time is left to be found out.
func (t *Translator) Delivered() *sink.Since {
	s := &sink.Since{Topics: topics(&t.opt.Spec.Router)}
	if t.opt.Spec.Router.FieldEventTimestamp != "" && !t.opt.Spec.Server {
		s.Records = lookBack
	}
	return s
}

// topics says which topics the router can have written to. Where its expression
// takes the whole value, they look like the replacement; else like anything.
func topics(o *router.Options) func(string) bool {
	switch o.TopicRegex {
	case "", router.DefaultTopicRegex, "(.*)":
	default:
		return func(string) bool { return true }
	}
	replacement := o.TopicReplace
	if replacement == "" {
		replacement = router.DefaultTopicReplace
	}
	// A value with a line break is not matched, but no topic has one.
	var pattern strings.Builder
	pattern.WriteString("^")
	for rest := replacement; rest != ""; {
		i := strings.IndexAny(rest, `$\`)
		if i < 0 {
			pattern.WriteString(regexp.QuoteMeta(rest))
			break
		}
		pattern.WriteString(regexp.QuoteMeta(rest[:i]))
		c := rest[i]
		rest = rest[i+1:]
		switch {
		case c == '\\' && rest != "":
			pattern.WriteString(regexp.QuoteMeta(rest[:1]))
			rest = rest[1:]
		case strings.HasPrefix(rest, "{"):
			_, rest, _ = strings.Cut(rest, "}")
			pattern.WriteString(".*")
		default:
			rest = strings.TrimLeft(rest, "0123456789")
			pattern.WriteString(".*")
		}
	}
	pattern.WriteString("$")
	return regexp.MustCompile(pattern.String()).MatchString
}
