package takeover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/checkpoint"
	"github.com/walpost/walpost/internal/debezium/connector"
	"github.com/walpost/walpost/internal/debezium/start"
	"github.com/walpost/walpost/internal/pg"
	"github.com/walpost/walpost/slot"
)

// Options of Look.
type Options struct {
	Config      *pgx.ConnConfig
	Application string
	Spec        *connector.Spec
	Slot        string
	Publication string
	Storage     Storage
	// KeepAlives says that Debezium confirms more than it has stored.
	KeepAlives bool
	ReadFile   func(path string) ([]byte, error)
	// ReadTopic gives the last value of each key that keep wants; nil is one that
	// was deleted.
	ReadTopic func(ctx context.Context, topic string, keep func(key []byte) bool) (map[string][]byte, error)
	Terminate bool          // Debezium's session will be ended
	Settle    time.Duration // how long walpost waits once the slot is free
	Command   string        // that takes over, for the steps
}

// ours is how the application_name of every walpost begins.
const ours = "walpost/"

// Look finds out what taking the slot over means, and changes nothing. Its error
// says that it could not find out, or that the configuration does not fit the
// database.
func Look(ctx context.Context, opt Options) (*Plan, error) {
	conn, err := pg.Connect(ctx, opt.Config, opt.Application)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := slot.CheckServer(ctx, conn); err != nil {
		return nil, err
	}
	p := &Plan{}
	if p.Tables, err = start.Tables(ctx, conn, opt.Spec); err != nil {
		return nil, err
	}
	if p.Slot, err = slot.Inspect(ctx, conn, opt.Slot); err != nil {
		return nil, err
	}
	store := checkpoint.NewStore(opt.Config, opt.Slot, opt.Application)
	defer store.Close(context.WithoutCancel(ctx))
	if p.Protection, err = protect(ctx, conn, store); err != nil {
		return nil, err
	}
	if err := p.lookAtPublication(ctx, conn, &opt); err != nil {
		return nil, err
	}
	usable := p.lookAtSlot(opt.Config.Database, opt.Spec)
	p.lookAtStored(ctx, &opt)
	if usable {
		p.lookAtBacklog(ctx, conn, &opt)
		if err := p.lookAtHolder(ctx, conn, &opt); err != nil {
			return nil, err
		}
	}
	if !p.Protection.Usable {
		p.find(LevelFinding, p.Protection.Text, "the first step makes them; what Debezium has published is looked for all the same")
	}
	if opt.Spec.FlushManual {
		p.find(LevelNote, "lsn.flush.mode=manual: walpost confirms nothing either, and the slot keeps its WAL", "set lsn.flush.mode=connector")
	}
	slices.SortStableFunc(p.Findings, func(a, b Finding) int { return cmp.Compare(rank(a.Level), rank(b.Level)) })
	if p.Worst() != LevelDecision {
		p.steps(&opt)
	}
	return p, nil
}

func rank(l Level) int { return slices.Index([]Level{LevelDecision, LevelFinding, LevelNote}, l) }

func (p *Plan) find(level Level, text, way string) {
	p.Findings = append(p.Findings, Finding{level, text, way})
}

// decide turns a definite answer of the slot's package into a decision; other
// errors come back.
func (p *Plan) decide(err error) error {
	e, ok := errors.AsType[*slot.Error](err)
	if !ok || e.Kind == slot.ErrServer || e.Kind == slot.ErrDenied {
		return err
	}
	p.find(LevelDecision, e.Error(), e.Way)
	return nil
}

// lookAtSlot says whether the relay could stream from it.
func (p *Plan) lookAtSlot(database string, spec *connector.Spec) bool {
	const anew = `"walpost run --debezium FILE --snapshot initial" makes it anew and publishes all rows of the table, ` +
		`and --snapshot none makes it and begins with the next row; what came between is then for you to publish`
	if !p.Slot.Exists {
		text := fmt.Sprintf("slot %q does not exist", p.Slot.Name)
		if spec.SlotDropOnStop {
			text += ": slot.drop.on.stop=true, so Debezium dropped it if it was stopped"
		}
		p.find(LevelDecision, text, anew)
		return false
	}
	if err := slot.CheckSlot(p.Slot, database); err != nil {
		way := ""
		if e, ok := errors.AsType[*slot.Error](err); ok {
			if way = e.Way; e.Kind == slot.ErrLost {
				way = fmt.Sprintf("note that position and drop the slot (select pg_drop_replication_slot(%s)); then %s", pg.QuoteLiteral(p.Slot.Name), anew)
			}
		}
		p.find(LevelDecision, err.Error(), way)
		return false
	}
	if p.Slot.WALStatus == "unreserved" {
		p.find(LevelFinding, "the slot holds back more WAL than max_slot_wal_keep_size allows, and is lost with the next checkpoint",
			"raise max_slot_wal_keep_size and reload now, then take over")
	}
	return true
}

func (p *Plan) lookAtPublication(ctx context.Context, conn *pgx.Conn, opt *Options) error {
	p.Publication.Name = opt.Publication
	var err error
	if p.Publication.Exists, err = slot.FindPublication(ctx, conn, opt.Publication); err != nil {
		return err
	}
	if p.Publication.Exists == nil {
		if p.Slot.Exists {
			p.find(LevelDecision,
				fmt.Sprintf("publication %q does not exist, and slot %q does: made now, it would not be there for the WAL that the slot holds", opt.Publication, opt.Slot),
				"name the slot's publication in publication.name; if it was dropped, the rows written since are not in the stream")
		}
		return nil
	}
	spec := *opt.Spec
	spec.PublicationName = opt.Publication
	if p.Publication.Steps, err = start.Publication(ctx, conn, &spec, p.Tables); err != nil {
		return p.decide(err)
	}
	for _, s := range p.Publication.Steps {
		p.find(LevelFinding, s.Text, "walpost does this when it starts; publish what was written before from the table if nobody has")
	}
	var there []slot.Table
	for _, t := range p.Tables {
		if !slices.ContainsFunc(p.Publication.Steps, func(s start.Step) bool { return strings.Contains(s.Statement, pg.QuoteQualified(t.Schema, t.Name)) }) {
			there = append(there, t)
		}
	}
	published, err := slot.CheckPublication(ctx, conn, opt.Publication, there)
	if err != nil {
		return p.decide(err)
	}
	if !published.AllTables {
		p.Publication.Others, err = slot.OtherTables(ctx, conn, published)
	}
	return err
}

func (p *Plan) lookAtStored(ctx context.Context, opt *Options) {
	var found bool
	stored, o := readStored(ctx, opt)
	p.Stored, found = stored, o != nil
	switch {
	case found && p.Stored.Snapshot:
		p.find(LevelDecision, "Debezium has not finished its snapshot: not all rows that were in the table before are published",
			`let it finish; or stop it, and "walpost run --debezium FILE --snapshot initial" publishes them all`)
	case p.Stored.State == StateNone && opt.Spec.SnapshotMode != "no_data":
		p.find(LevelFinding, p.Stored.Text+", and snapshot.mode="+opt.Spec.SnapshotMode+
			": whether Debezium has published the rows that were in the table before is not known",
			`if it has not, "walpost run --debezium FILE --snapshot initial" does`)
	case p.Stored.State == StateUnknown && p.Stored.Place != "" && !found:
		p.find(LevelNote, "Debezium's stored position was not compared with the slot: "+p.Stored.Text, "")
	}
	if found {
		p.Findings = append(p.Findings, p.Stored.compare(p.Slot, p.Protection.Had, opt.KeepAlives)...)
	}
}

// lookAtBacklog finds the first transaction that will come, if nobody streams.
func (p *Plan) lookAtBacklog(ctx context.Context, conn *pgx.Conn, opt *Options) {
	if p.Slot.Active {
		p.Unknown = "the slot is in use"
		return
	}
	if p.Publication.Exists == nil {
		p.Unknown = "there is no publication"
		return
	}
	first, err := slot.FirstUnconfirmed(ctx, conn, opt.Slot, opt.Publication)
	switch {
	case err == nil:
		p.FirstUnconfirmed = first
	case pg.SQLState(err) == "57014":
		p.Unknown = "to find it takes longer than a look should take"
	case errors.Is(err, slot.ErrInUse):
		p.Unknown = "the slot is in use"
	default:
		p.Unknown = err.Error()
	}
}

// maySignal says whether pg_terminate_backend would be allowed.
const maySignalSQL = `
select case when r.rolsuper then (select rolsuper from pg_roles where rolname = current_user)
            else pg_has_role(a.usesysid, 'usage') or pg_has_role('pg_signal_backend', 'usage') end
  from pg_stat_activity a join pg_roles r on r.oid = a.usesysid where a.pid = $1`

func (p *Plan) lookAtHolder(ctx context.Context, conn *pgx.Conn, opt *Options) error {
	if !p.Slot.Active {
		return nil
	}
	if strings.HasPrefix(p.Slot.HolderApplication, ours) {
		p.find(LevelFinding, "an instance of walpost has the slot already: this one would stand by until that one stops", `see "walpost status"`)
		return nil
	}
	if opt.Spec.SlotDropOnStop {
		p.find(LevelFinding, "slot.drop.on.stop=true: Debezium drops the slot when it is stopped, and with it what it has not published",
			"set slot.drop.on.stop=false in the connector and restart it before it is stopped, or kill its worker, or use --terminate with the connector paused")
	}
	if !opt.Terminate || p.Slot.ActivePID == nil {
		return nil
	}
	var may bool
	err := conn.QueryRow(ctx, maySignalSQL, *p.Slot.ActivePID).Scan(&may)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil // it has just gone
	case err != nil:
		return pg.Describe(err)
	case !may:
		p.find(LevelFinding, "the role of the connection may not end the session that holds the slot",
			"stop the connector, or let an administrator grant pg_signal_backend to it (a superuser's session needs a superuser)")
	}
	return nil
}
