package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
	"go.uber.org/zap"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/failpoint"
	"github.com/walpost/walpost/internal/route"
	"github.com/walpost/walpost/slot"
)

// Initial is the part of slot.Snapshot that the relay uses, with the tables that
// are to be read.
type Initial interface {
	// History is the position at which the tables are seen as they were.
	History() slot.History
	// Start is where the stream will begin; not after History.
	Start() pglogrepl.LSN
	Taken() time.Time
	Tables() []*slot.Definition
	Rows(ctx context.Context, table *slot.Definition, each func(row [][]byte) error) error
	// MakeSlot makes the slot, once everything is delivered. Before that a slot
	// would say that it is.
	MakeSlot(context.Context) error
	Close(context.Context)
}

// initial publishes what comes before the stream. An attempt that fails is made
// anew, and so is one that a killed relay had begun: what it delivered is found
// in Kafka and not sent again. over says that the relay ends here.
func (r *Relay) initial(intake, delivery context.Context) (over bool, err error) {
	if r.begun || r.opt.Initial == nil {
		return false, nil
	}
	rows, err := r.opt.Initial(intake)
	if err != nil {
		return false, err
	}
	if rows == nil {
		r.begun = true
		return r.opt.InitialOnly, nil
	}
	defer rows.Close(context.WithoutCancel(intake))
	r.opened = true
	r.status.before(r.now(), rows.History())
	r.log.Info("snapshot", zap.Stringer("lsn", rows.History().LSN), zap.Int("tables", len(rows.Tables())))
	again := rows.Start() < rows.History().LSN
	n, err := r.pump.initial(intake, delivery, rows)
	if settled := r.settled(intake, delivery); err == nil {
		err = settled
	}
	if err == nil {
		err = failpoint.Fail("relay.before-slot")
	}
	if err == nil {
		err = rows.MakeSlot(intake)
	}
	if err == nil {
		failpoint.Hit("relay.after-slot")
		r.recovery.delivered(intake, rows.Start(), !again)
	}
	// Whoever looks next finds what was sent in Kafka: the stream of a slot that
	// was there before brings some of these rows again, and so does another
	// attempt.
	if err != nil || again {
		r.recovery.again()
	}
	if err != nil {
		return false, err
	}
	r.begun = true
	r.log.Info("snapshot delivered", zap.Int("rows", n))
	return r.opt.InitialOnly, nil
}

// settled waits until nothing is in flight; after intake has ended, not longer
// than a stop may take.
func (r *Relay) settled(intake, delivery context.Context) error {
	ctx, cancel := context.WithCancelCause(delivery)
	defer cancel(nil)
	defer context.AfterFunc(intake, func() {
		time.AfterFunc(r.opt.DrainTimeout, func() { cancel(ErrDrainIncomplete) })
	})()
	for {
		if _, events, _ := r.tracker.Pending(); events == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.progress: // nobody else takes the token: there is no session yet
		}
	}
}

// initial submits the rows of the snapshot, as if one transaction had inserted
// them. It returns their number.
func (p *pump) initial(intake, delivery context.Context, rows Initial) (n int, err error) {
	waiting, cancel := context.WithCancelCause(intake)
	defer cancel(nil)
	defer context.AfterFunc(delivery, func() { cancel(context.Cause(delivery)) })()
	p.idling.Store(false)
	p.blocked.Store(true)
	defer func() {
		p.idling.Store(true)
		p.blocked.Store(false)
	}()
	left, err := p.relay.recovery.load(waiting)
	if err != nil {
		return 0, err
	}
	if err := p.relay.recovery.begin(waiting, rows.History(), rows.History().LSN, left); err != nil {
		return 0, err
	}
	at := rows.Start()
	tx := p.relay.tracker.Begin(at, rows.Taken())
	// The mark stays where it is: the slot's position says what is confirmed.
	defer p.relay.tracker.Seal(tx, 0)
	p.last = position{commit: at} // positions never go back
	change := decoder.Change{
		Kind: decoder.KindInsert, LSN: rows.History().LSN,
		Transaction: &decoder.Transaction{CommitLSN: at, EndLSN: at, CommitTime: rows.Taken()},
	}
	for _, table := range rows.Tables() {
		change.Relation = RelationOf(table)
		plan, err := p.plan(waiting, change.Relation)
		if err != nil {
			return n, err
		}
		if plan == nil {
			return n, fmt.Errorf("snapshot: %s is not a configured table", table)
		}
		record := plan.Record
		if s, ok := plan.(route.SnapshotPlan); ok {
			record = s.SnapshotRecord
		}
		change.New = make([]decoder.Value, len(table.Columns))
		err = rows.Rows(waiting, table, func(row [][]byte) error {
			p.turns.Add(1)
			change.Ordinal++
			for i, v := range row {
				change.New[i] = decoder.Value{Kind: decoder.Text, Data: v}
				if v == nil {
					change.New[i].Kind = decoder.Null
				}
			}
			publish, err := record(&change, &p.record)
			if err != nil {
				return p.hold(waiting, &change, err)
			}
			if !publish {
				p.relay.ignored("not_insert")
				return nil
			}
			if err := p.hand(waiting, tx, at, change.Ordinal); err != nil {
				return err
			}
			n++
			return nil
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// RelationOf describes a table as the stream would.
func RelationOf(table *slot.Definition) *decoder.Relation {
	rel := &decoder.Relation{OID: table.OID, Namespace: table.Schema, Name: table.Name}
	for _, c := range table.Columns {
		rel.Columns = append(rel.Columns, decoder.Column{Name: c.Name, TypeOID: c.TypeOID, TypeMod: c.TypeMod})
	}
	return rel
}
