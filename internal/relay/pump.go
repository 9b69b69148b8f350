package relay

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"go.uber.org/zap"

	"github.com/walpost/walpost/checkpoint"
	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/event"
	"github.com/walpost/walpost/internal/failpoint"
	"github.com/walpost/walpost/internal/retry"
	"github.com/walpost/walpost/internal/route"
	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/slot"
)

// pump moves changes from the stream to the sink. Its position survives the
// stream: the next session gets again what was not confirmed, and the pump skips
// what it has already submitted.
type pump struct {
	observer route.Observer // may be nil
	relay    *Relay
	tables   map[uint32]int                   // of the Translator, by OID, as the catalog has them now
	plans    map[*decoder.Relation]route.Plan // nil plan: not an outbox table
	record   sink.Record
	last     position
	reach    pglogrepl.LSN // the newest position that something submitted belongs to
	nextBeat time.Time
	blocked  atomic.Bool // in Submit or holding: the stream is not read
	open     atomic.Bool // a transaction, or a message outside of one, is being received
	idling   atomic.Bool // in Receive
	turns    atomic.Uint64
}

// position of the newest event submitted.
type position struct {
	commit  pglogrepl.LSN
	ordinal uint32
	events  int    // submitted of the transaction so far
	tx      uint32 // its name in the tracker, while its commit has not come
}

func newPump(r *Relay) *pump {
	p := &pump{relay: r}
	p.observer, _ = r.opt.Translator.(route.Observer)
	p.idling.Store(true)
	return p
}

// reconnected prepares for a new session that starts at start. Relations are
// sent again on every connection.
func (p *pump) reconnected(start pglogrepl.LSN, published *slot.Published) {
	p.tables = make(map[uint32]int)
	for _, t := range published.Tables {
		if table, ok := p.relay.opt.Translator.Lookup(t.Schema, t.Name); ok {
			p.tables[t.OID] = table
		}
	}
	p.plans = make(map[*decoder.Relation]route.Plan)
	if p.last.tx != 0 && start > p.last.commit {
		// The slot is beyond the transaction that we had received in part: another
		// instance delivered it meanwhile, or an operator moved the slot.
		p.relay.log.Warn("slot moved by somebody else", zap.Stringer("lsn", start), zap.Stringer("commit_lsn", p.last.commit))
		p.relay.tracker.Seal(p.last.tx, start)
		p.last.tx = 0
	}
}

// run reads the stream until it ends. After intake has ended it finishes the
// transaction under way and reads on without looking, so that the server's
// answers to the end of the stream are seen; nothing that it passes over so is
// ever confirmed, it comes again at the next start.
func (p *pump) run(intake, delivery context.Context, stream Stream, left *checkpoint.Checkpoint) error {
	defer func() {
		p.idling.Store(true)
		p.setOpen(false)
	}()
	// Who waits for anything but room in the sink stops for either of the two.
	waiting, cancel := context.WithCancelCause(intake)
	defer cancel(nil)
	defer context.AfterFunc(delivery, func() { cancel(context.Cause(delivery)) })()
	p.blocked.Store(true)
	err := p.relay.recovery.begin(waiting, stream.History(), stream.WALEnd(), left)
	p.blocked.Store(false)
	stopped := func() bool { return intake.Err() != nil && delivery.Err() == nil }
	if err != nil && !stopped() {
		return err
	}
	discard := err != nil
	for {
		p.idling.Store(true)
		msg, err := stream.Receive()
		p.idling.Store(false)
		p.turns.Add(1)
		if err != nil {
			return err
		}
		if discard {
			continue
		}
		if err := p.heartbeat(delivery); err != nil {
			return err
		}
		if msg.Keepalive {
			p.relay.status.heard(p.relay.now(), msg.ServerTime)
			p.relay.recovery.reached(msg.ServerWALEnd)
			if !p.relay.decoder.InTransaction() && intake.Err() == nil {
				p.idle(msg.ServerWALEnd)
			}
			continue
		}
		c, err := p.relay.decoder.Decode(msg.WALStart, msg.Data)
		if err != nil {
			p.relay.opt.Metrics.DecodeError("pgoutput")
			return err
		}
		// A message outside a transaction is one by itself.
		alone := c.Kind == decoder.KindMessage && !p.relay.decoder.InTransaction()
		if c.Kind == decoder.KindBegin || alone {
			p.setOpen(true)
			if intake.Err() != nil { // only after open is set: drain looks at it
				p.setOpen(false)
				discard = true
				continue
			}
		}
		if c.Kind == decoder.KindBegin {
			p.relay.status.heard(p.relay.now(), msg.ServerTime)
			p.relay.recovery.reached(c.Transaction.CommitLSN)
		}
		if p.observer != nil {
			p.observer.Observe(c)
		}
		if err := p.change(waiting, delivery, c); err != nil {
			if !stopped() {
				return err
			}
			p.setOpen(false)
			discard = true
			continue
		}
		if alone {
			p.setOpen(false)
		}
	}
}

// heartbeat sends one when it is due.
func (p *pump) heartbeat(delivery context.Context) error {
	h := p.relay.opt.Heartbeat
	if h == nil {
		return nil
	}
	now := p.relay.now()
	if now.Before(p.nextBeat) {
		return nil
	}
	p.nextBeat = now.Add(h.Every)
	var rec sink.Record
	if err := h.Record(now, &rec); err != nil {
		return err
	}
	rec.Tag = sink.Tag{Commit: uint64(p.last.commit)} // of no transaction
	p.blocked.Store(true)
	defer p.blocked.Store(false)
	return p.relay.sink.Submit(delivery, &rec)
}

// partial says whether a transaction was received in part. Only for when run has
// returned, or the pump does not begin another transaction.
func (p *pump) partial() bool { return p.last.tx != 0 }

func (p *pump) setOpen(open bool) {
	p.open.Store(open)
	if !open {
		p.relay.signal()
	}
}

// idle is the rule for positions between transactions: everything below lsn has
// been received.
func (p *pump) idle(lsn pglogrepl.LSN) {
	if p.relay.tracker.Idle(lsn) {
		p.relay.confirm()
	}
	if _, pending, _ := p.relay.tracker.Pending(); pending == 0 {
		p.relay.status.caughtUp(p.relay.now())
	}
}

func (p *pump) change(waiting, delivery context.Context, c *decoder.Change) error {
	switch c.Kind {
	case decoder.KindBegin:
		if p.last.tx != 0 && c.Transaction.CommitLSN > p.last.commit {
			return &gapError{missing: p.last.commit, got: c.Transaction.CommitLSN}
		}
	case decoder.KindCommit:
		p.commit(c)
	case decoder.KindInsert:
		return p.row(waiting, delivery, c)
	case decoder.KindUpdate:
		if p.relay.opt.Translator.Updates() {
			return p.row(waiting, delivery, c)
		}
		p.relay.ignored("not_insert")
	case decoder.KindDelete, decoder.KindTruncate:
		p.relay.ignored("not_insert")
	case decoder.KindStreamAbort:
		p.relay.ignored("stream_abort")
	case decoder.KindMessage:
		return p.message(waiting, delivery, c)
	}
	return nil
}

func (p *pump) commit(c *decoder.Change) {
	t := c.Transaction
	switch {
	case p.last.tx != 0 && t.CommitLSN == p.last.commit:
		failpoint.Hit("relay.before-seal")
		p.relay.opt.Metrics.TransactionEvents(p.last.events)
		p.reach = max(p.reach, t.EndLSN)
		if p.relay.tracker.Seal(p.last.tx, t.EndLSN) {
			p.relay.confirm()
		}
		p.last.tx = 0
	case t.CommitLSN > p.last.commit:
		p.idle(t.EndLSN) // nothing of it was for us
	}
	// Otherwise the server sent again what has been submitted before.
	p.setOpen(false)
}

func (p *pump) row(waiting, delivery context.Context, c *decoder.Change) error {
	t := c.Transaction
	if p.submitted(t.CommitLSN, c.Ordinal) {
		return nil
	}
	plan, known := p.plans[c.Relation]
	if !known {
		var err error
		if plan, err = p.plan(waiting, c.Relation); err != nil {
			if reject, ok := errors.AsType[*event.Reject](err); ok {
				reject.LSN = t.CommitLSN // the table is at fault; here is where
			}
			return err
		}
		p.plans[c.Relation] = plan
	}
	if plan == nil {
		p.relay.ignored("other_table")
		return nil
	}
	publish, err := plan.Record(c, &p.record)
	if err != nil {
		return p.hold(waiting, c, err)
	}
	p.relay.status.clearPoison()
	if !publish {
		p.relay.ignored("not_insert")
		return nil
	}
	return p.submit(delivery, t.CommitLSN, t.CommitTime, c.Ordinal)
}

// message takes a logical message. Outside a transaction it is one by itself.
func (p *pump) message(waiting, delivery context.Context, c *decoder.Change) error {
	t, ordinal := c.Transaction, c.Ordinal
	alone := t == nil
	if alone {
		t, ordinal = &decoder.Transaction{CommitLSN: c.Message.LSN, CommitTime: p.relay.now()}, 1
	}
	if p.submitted(t.CommitLSN, ordinal) {
		return nil
	}
	publish, err := p.relay.opt.Translator.Message(c, &p.record)
	if err != nil {
		return p.hold(waiting, c, err)
	}
	p.relay.status.clearPoison()
	if !publish {
		p.relay.ignored("other_prefix")
		return nil
	}
	if err := p.submit(delivery, t.CommitLSN, t.CommitTime, ordinal); err != nil || !alone {
		return err
	}
	// Not behind it: where its record ends is not known. The next position that
	// the server gives is.
	if p.relay.tracker.Seal(p.last.tx, t.CommitLSN) {
		p.relay.confirm()
	}
	p.last.tx = 0
	return nil
}

// submitted says that the position is in flight or delivered since before the
// reconnect.
func (p *pump) submitted(commit pglogrepl.LSN, ordinal uint32) bool {
	return commit < p.last.commit || commit == p.last.commit && ordinal <= p.last.ordinal
}

// submit hands over the record at the next position of the stream.
func (p *pump) submit(delivery context.Context, commit pglogrepl.LSN, committed time.Time, ordinal uint32) error {
	if p.last.tx == 0 {
		tx := p.relay.tracker.Begin(commit, committed)
		p.last = position{commit: commit, ordinal: ordinal - 1, tx: tx}
	}
	p.blocked.Store(true)
	err := p.hand(delivery, p.last.tx, commit, ordinal)
	p.blocked.Store(false)
	if err != nil {
		return err
	}
	p.last.ordinal = ordinal
	p.last.events++
	p.reach = max(p.reach, commit)
	failpoint.Hit("relay.in-transaction")
	return nil
}

// hand gives the record to the sink, as one of tx.
func (p *pump) hand(ctx context.Context, tx uint32, commit pglogrepl.LSN, ordinal uint32) error {
	p.relay.tracker.Add(tx)
	p.record.Tag.Tx, p.record.Tag.Ordinal, p.record.Tag.Commit = tx, ordinal, uint64(commit)
	if err := p.relay.sink.Submit(ctx, &p.record); err != nil {
		p.relay.tracker.Done(tx, 1) // it was not handed over, and comes again
		return err
	}
	p.relay.received.Add(1)
	p.relay.opt.Metrics.EventReceived(1)
	return nil
}

// plan finds out which outbox table a relation is: by its OID, by its name (the
// table may have been made anew since), or as a partition.
func (p *pump) plan(ctx context.Context, rel *decoder.Relation) (route.Plan, error) {
	translator := p.relay.opt.Translator
	table, ok := p.tables[rel.OID]
	if !ok {
		table, ok = translator.Lookup(rel.Namespace, rel.Name)
	}
	if !ok {
		root, published, exists, err := p.root(ctx, rel)
		if err != nil {
			return nil, err
		}
		table, ok = translator.Lookup(root.Schema, root.Name)
		switch {
		case exists && ok:
		case exists && published:
			return nil, nil // a table of somebody else in a publication that is wider than ours
		default:
			// Dropped since, or detached from its table, or taken out of the
			// publication: what it was can only be told by its looks. A partition of
			// an outbox table has the columns of one.
			for table = range translator.Tables() {
				if plan, err := translator.Compile(ctx, rel, table); err == nil {
					return plan, nil
				}
			}
			if exists {
				return nil, nil
			}
			return nil, &unknownRelationError{rel}
		}
	}
	return translator.Compile(ctx, rel, table)
}

// root asks the catalog, as long as it takes.
func (p *pump) root(ctx context.Context, rel *decoder.Relation) (root slot.Table, published, exists bool, err error) {
	p.blocked.Store(true)
	defer p.blocked.Store(false)
	backoff := retry.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	for {
		root, published, exists, err = p.relay.monitor.Root(ctx, rel.OID)
		if err == nil || ctx.Err() != nil {
			return root, published, exists, err
		}
		p.relay.log.Warn("cannot look up a relation", zap.String("relation", rel.Namespace+"."+rel.Name), zap.Error(err))
		if err := retry.Wait(ctx, backoff.Next()); err != nil {
			return slot.Table{}, false, false, err
		}
	}
}

// hold stays at an event that cannot be published. Nothing behind it is read,
// nothing at or above it is confirmed. What is wrong is in the row or in the
// configuration, so trying again would give the same: it waits until it is told
// to stop, and the next start sees the row again.
func (p *pump) hold(ctx context.Context, c *decoder.Change, cause error) error {
	poison := Poison{
		CommitLSN: c.LSN,
		Ordinal:   c.Ordinal,
		Partition: -1,
		Reason:    cause.Error(),
		Since:     p.relay.now(),
	}
	if t := c.Transaction; t != nil {
		poison.CommitLSN, poison.Committed = t.CommitLSN, t.CommitTime
	}
	if c.Relation != nil {
		poison.Table = c.Relation.Namespace + "." + c.Relation.Name
	}
	if reject, ok := errors.AsType[*event.Reject](cause); ok {
		poison.EventID = reject.EventID
		if reject.Table != "" {
			poison.Table = reject.Table
		}
	}
	p.relay.status.setPoison(poison, cause)
	p.relay.log.Error("event cannot be published, holding", zap.String("event_id", poison.EventID),
		zap.String("table", poison.Table), zap.Stringer("commit_lsn", poison.CommitLSN),
		zap.Uint32("ordinal", poison.Ordinal), zap.Error(cause))
	p.blocked.Store(true)
	defer p.blocked.Store(false)
	<-ctx.Done()
	return context.Cause(ctx)
}

func (r *Relay) ignored(reason string) {
	r.opt.Metrics.EventIgnored(reason, 1)
	r.status.ignore(reason)
}

// gapError: the server went on behind a transaction of which we have a part.
type gapError struct{ missing, got pglogrepl.LSN }

func (e *gapError) Error() string {
	return fmt.Sprintf("gap in the stream: the transaction committing at %s was received in part and is not sent again; the server continues at %s", e.missing, e.got)
}

func (e *gapError) Hint() string {
	return "restart walpost; if this comes again, the slot's WAL is not the one that was read before: compare the table with Kafka"
}

type unknownRelationError struct{ rel *decoder.Relation }

func (e *unknownRelationError) Error() string {
	return fmt.Sprintf("relation %s.%s (OID %d) no longer exists and does not look like an outbox table", e.rel.Namespace, e.rel.Name, e.rel.OID)
}

func (e *unknownRelationError) Hint() string {
	return "limit the publication to the outbox tables, so that no other table can get in here"
}
