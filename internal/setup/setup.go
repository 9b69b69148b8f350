package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/slot"
)

// Options say what there shall be.
type Options struct {
	Slot        string
	Publication string
	Tables      []slot.Table
	// CreateTables makes the tables that are missing.
	CreateTables bool
	Payload      string // type of the payload column; default jsonb
	Failover     bool   // let standbys synchronize the slot, on 17 and later
	// Checkpoint makes the tables in which a relay leaves what its successor
	// needs to send nothing twice.
	Checkpoint bool
	// Consumer adds the tables of a consumer in Go to what SQL gives. Run does not
	// make them: they belong to the consumer's database.
	Consumer bool
	// LaterSlot leaves a missing slot to the relay, which makes it behind the
	// snapshot of the rows that are there.
	LaterSlot bool
	// Wider takes a publication that has more than inserts of the outbox tables: a
	// connector's records are made of updates too.
	Wider bool
	// Wait bounds how long the slot waits for open transactions; default 30 s.
	Wait time.Duration
	// CheckTable says why a table's columns do not make an outbox; may be nil.
	CheckTable func(*slot.Definition) error
}

// State of a step's object.
type State string

// What a step did.
const (
	Created   State = "created"
	Upgraded  State = "upgraded"
	Unchanged State = "unchanged"
	Later     State = "later"
)

// Step is one object that the relay needs.
type Step struct {
	Name   string `json:"name"`   // table, publication or slot
	Object string `json:"object"` // its own name
	State  State  `json:"state"`
	Note   string `json:"note,omitempty"`
}

// Result is what there is after Run.
type Result struct {
	Steps []Step
	// StartLSN is where a slot that was made begins; empty when it was there.
	StartLSN string
}

// step is a Step and what it takes to get there.
type step struct {
	Step
	statements []string
}

func (o *Options) check() error {
	if o.Payload == "" {
		o.Payload = Payloads[0]
	}
	if !slices.Contains(Payloads[:], o.Payload) {
		return &pg.Error{
			Text: fmt.Sprintf("%q cannot be the type of the payload", o.Payload),
			Way:  "choose one of " + strings.Join(Payloads[:], ", "),
		}
	}
	if o.Publication == "" || len(o.Publication) > 63 {
		return &slot.Error{
			Kind: slot.ErrPublication,
			Text: fmt.Sprintf("%q cannot be the name of a publication", o.Publication),
			Way:  "use a name of 1 to 63 bytes",
		}
	}
	if len(o.Tables) == 0 {
		return &slot.Error{Kind: slot.ErrTable, Text: "no outbox table is named", Way: "name one with --table"}
	}
	return slot.CheckName(o.Slot)
}

// Run makes what is missing. Until everything has been looked at it changes
// nothing.
func Run(ctx context.Context, cfg *pgx.ConnConfig, opt Options) (*Result, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	application := "walpost/" + opt.Slot + "/init"
	conn, err := pg.Connect(ctx, cfg, application)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()

	if _, err := slot.CheckServer(ctx, conn); err != nil {
		return nil, err
	}
	info, err := slot.Inspect(ctx, conn, opt.Slot)
	if err != nil {
		return nil, err
	}
	if info.Exists {
		if err := slot.CheckSlot(info, cfg.Database); err != nil {
			return nil, err
		}
	} else {
		if err := slot.CheckCapacity(ctx, conn); err != nil {
			return nil, err
		}
		if err := mayReplicate(ctx, cfg, application); err != nil {
			return nil, err
		}
	}
	steps, err := plan(ctx, conn, opt, info.Exists)
	if err != nil {
		return nil, err
	}
	if err := apply(ctx, conn, steps); err != nil {
		return nil, err
	}
	return finish(ctx, conn, opt, info, steps)
}

// mayReplicate tries, because no catalogue tells: managed servers give the
// right in their own ways. Only a definite no counts here.
func mayReplicate(ctx context.Context, cfg *pgx.ConnConfig, application string) error {
	conn, err := pg.ConnectReplication(ctx, pg.ReplicationConfig(cfg, application))
	if err == nil {
		return conn.Close(ctx)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if pg.SQLState(err) != "42501" {
		return nil
	}
	d := pg.Describe(err)
	return &slot.Error{
		Kind: slot.ErrDenied, Text: d.Text, SQLState: d.SQLState, Err: d,
		Way: d.Way + `; or let an administrator run what "walpost init --print" shows`,
	}
}

// plan looks at tables and publication and says what is to be done.
func plan(ctx context.Context, conn *pgx.Conn, opt Options, slotExists bool) ([]step, error) {
	steps, missing, err := planTables(ctx, conn, opt)
	if err != nil {
		return nil, err
	}
	publication, err := slot.FindPublication(ctx, conn, opt.Publication)
	if err != nil {
		return nil, err
	}
	s := step{Step: Step{Name: "publication", Object: opt.Publication, State: Unchanged}}
	switch {
	case publication != nil && missing != nil:
		return nil, &slot.Error{
			Kind: slot.ErrPublication,
			Text: fmt.Sprintf("publication %q exists, and table %s does not, so it is not in it", opt.Publication, missing),
			Way:  "choose another name with --publication, or drop that publication if nobody needs it",
		}
	case publication != nil:
		if err := fits(ctx, conn, opt); err != nil {
			return nil, err
		}
	case slotExists:
		return nil, &slot.Error{
			Kind: slot.ErrPublication,
			Text: fmt.Sprintf("slot %q exists, and publication %q does not: made now, it would not be there for the WAL that the slot holds",
				opt.Slot, opt.Publication),
			Way: "name the slot's publication with --publication, or drop the slot if nobody needs it (select pg_drop_replication_slot(" +
				pg.QuoteLiteral(opt.Slot) + ")) and run this again",
		}
	default:
		s.State = Created
		s.statements = []string{publicationStatement(opt.Publication, opt.Tables)}
	}
	steps = append(steps, s)
	if !opt.Checkpoint {
		return steps, nil
	}
	s, err = planCheckpoint(ctx, conn, missing != nil)
	return append(steps, s), err
}

// planTables also gives the first table that does not exist yet.
func planTables(ctx context.Context, conn *pgx.Conn, opt Options) (steps []step, missing *slot.Table, err error) {
	for _, t := range opt.Tables {
		def, err := slot.FindTable(ctx, conn, t)
		if err != nil {
			return nil, nil, err
		}
		s := step{Step: Step{Name: "table", Object: t.String(), State: Unchanged}}
		switch {
		case def != nil:
			if err := def.Check(opt.CheckTable); err != nil {
				return nil, nil, err
			}
		case !opt.CreateTables:
			return nil, nil, &slot.Error{
				Kind: slot.ErrTable,
				Text: "table " + t.String() + " does not exist",
				Way:  "add --create-table, or name the outbox table with --table; names are case sensitive",
			}
		default:
			if err := checkCreated(opt, t); err != nil {
				return nil, nil, err
			}
			if missing == nil {
				missing = &t
				if s.statements, err = guardStatements(ctx, conn); err != nil {
					return nil, nil, err
				}
			}
			s.State = Created
			statements, err := tableStatements(t, opt.Payload)
			if err != nil {
				return nil, nil, err
			}
			s.statements = append(s.statements, statements...)
		}
		steps = append(steps, s)
	}
	return steps, missing, nil
}

// guardStatements makes what the triggers need, where it is missing.
func guardStatements(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	guard, err := createGuard()
	if err != nil {
		return nil, err
	}
	var statements []string
	for _, part := range []struct{ query, statement string }{
		{guardSchemaSQL, createSchema},
		{guardFunctionSQL, guard},
	} {
		var there bool
		if err := conn.QueryRow(ctx, part.query).Scan(&there); err != nil {
			return nil, failed("look for the append-only guard", err)
		}
		if !there {
			statements = append(statements, part.statement)
		}
	}
	return statements, nil
}

// fits refuses a publication that publishes less than the events, or more.
func fits(ctx context.Context, conn *pgx.Conn, opt Options) error {
	published, err := slot.CheckPublication(ctx, conn, opt.Publication, opt.Tables)
	if err != nil {
		return err
	}
	misfit := func(text, way string) error {
		return &slot.Error{Kind: slot.ErrPublication, Text: "publication " + fmt.Sprintf("%q ", opt.Publication) + text, Way: way}
	}
	if opt.Wider {
		return nil
	}
	quoted := pg.QuoteIdent(opt.Publication)
	switch {
	case published.AllTables:
		return misfit("is for all tables: it publishes more than the outbox",
			"choose another name with --publication: the outbox tables can be in several publications")
	case published.Update || published.Delete || published.Truncate:
		return misfit("publishes "+published.Operations()+": only an insert is an event",
			"alter publication "+quoted+" set (publish = 'insert'), or choose another name with --publication")
	}
	others, err := slot.OtherTables(ctx, conn, published)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		names := make([]string, len(others))
		for i, t := range others {
			names[i] = t.String()
		}
		return misfit("publishes tables that are no outbox: "+strings.Join(names, ", "),
			"alter publication "+quoted+" drop table "+pg.QuoteQualified(others[0].Schema, others[0].Name)+
				", name them with --table, or choose another name with --publication")
	}
	return fitsColumns(ctx, conn, opt, published)
}

func fitsColumns(ctx context.Context, conn *pgx.Conn, opt Options, published *slot.Published) error {
	for _, pt := range published.Tables {
		if pt.Columns == nil || opt.CheckTable == nil {
			continue
		}
		def, err := slot.FindTable(ctx, conn, pt.Table)
		if err != nil {
			return err
		}
		if def == nil {
			continue // dropped this very moment
		}
		def.Columns = slices.DeleteFunc(def.Columns, func(c slot.Column) bool { return !slices.Contains(pt.Columns, c.Name) })
		if err := opt.CheckTable(def); err != nil {
			return &slot.Error{
				Kind: slot.ErrPublication,
				Text: fmt.Sprintf("publication %q publishes only some columns of %s, and they do not make an event", opt.Publication, pt.Table),
				Way:  "publish all columns: alter publication " + pg.QuoteIdent(opt.Publication) + " set table " + pg.QuoteQualified(pt.Schema, pt.Name),
				Err:  err,
			}
		}
	}
	return nil
}

const lockTimeoutSQL = `select set_config('lock_timeout', '5s', false)`

// apply makes everything but the slot, all of it or nothing.
func apply(ctx context.Context, conn *pgx.Conn, steps []step) error {
	if !slices.ContainsFunc(steps, func(s step) bool { return s.State != Unchanged }) {
		return nil
	}
	if _, err := conn.Exec(ctx, lockTimeoutSQL); err != nil {
		return failed("set lock_timeout", err)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return failed("begin", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	for _, s := range steps {
		for _, statement := range s.statements {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return failed(fmt.Sprintf("create %s %s", s.Name, s.Object), err)
			}
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return failed("commit", err)
	}
	return nil
}

func finish(ctx context.Context, conn *pgx.Conn, opt Options, info *slot.Info, steps []step) (*Result, error) {
	result := &Result{}
	for _, s := range steps {
		result.Steps = append(result.Steps, s.Step)
	}
	s := Step{Name: "slot", Object: opt.Slot, State: Unchanged}
	if info.Exists {
		if opt.Failover && info.Failover != nil && !*info.Failover {
			s.Note = "standbys do not synchronize it; to change that, on a replication connection while nothing streams: ALTER_REPLICATION_SLOT " +
				opt.Slot + " (FAILOVER true)"
		}
	} else if opt.LaterSlot {
		s.State, s.Note = Later, "the relay makes it, behind the snapshot"
	} else {
		lsn, err := slot.Create(ctx, conn, slot.CreateOptions{Name: opt.Slot, Failover: opt.Failover, Wait: opt.Wait})
		if err != nil {
			return nil, err
		}
		s.State, result.StartLSN = Created, lsn.String()
	}
	result.Steps = append(result.Steps, s)
	return result, nil
}

// failed passes on the server's own words, and for a missing right says who can
// do it.
func failed(doing string, err error) error {
	pe, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		d := pg.Describe(err)
		return &pg.Error{Text: doing + ": " + d.Text, Way: d.Way, Err: err}
	}
	e := &slot.Error{Kind: slot.ErrServer, Text: doing, SQLState: pe.Code, Err: err, Way: pe.Hint}
	switch pe.Code {
	case "42501":
		e.Kind = slot.ErrDenied
		e.Way = `nothing was changed; let the owner of the tables, with the right to create in the database, run what "walpost init --print" shows`
	case "55P03":
		e.Way = "nothing was changed; another session holds a lock on the table: run it again when that has ended"
	}
	return e
}
