package router

import (
	"bytes"

	"go.uber.org/zap"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/connect"
	"github.com/walpost/walpost/sink"
)

const oldKeyHeader = "__debezium.oldkey"

// update publishes a row whose primary key has changed: Debezium makes a delete and
// an insert of it. The server sends the old values of the replica identity if they
// changed, and all old values if it is full.
func (p *Plan) update(c *decoder.Change, rec *sink.Record) (Outcome, error) {
	if c.Old != nil && p.moved(c) {
		return p.publish(c, c.Old, rec)
	}
	p.eventID = nil
	if v := &c.New[p.fields[p.id].index]; v.Kind == decoder.Text {
		p.eventID = v.Data
	}
	log := p.router.log.Warn
	switch p.router.onUpdate {
	case failUpdate:
		return 0, p.reject(c, "", "the row was updated, and table.op.invalid.behavior is fatal",
			"an outbox row is written once; stop what updates it, or set table.op.invalid.behavior to warn")
	case errorUpdate:
		log = p.router.log.Error
	}
	log("update of an outbox row is ignored", zap.String("table", p.table),
		zap.ByteString("event_id", p.eventID), zap.Stringer("lsn", c.LSN))
	return SkippedUpdate, nil
}

// moved says that the primary key is another one.
func (p *Plan) moved(c *decoder.Change) bool {
	for _, i := range p.primary {
		at := p.fields[i].index
		before, after := &c.Old[at], &c.New[at]
		if after.Kind == decoder.Unchanged || before.Kind == decoder.Unchanged {
			continue
		}
		if before.Kind != after.Kind || !bytes.Equal(before.Data, after.Data) {
			return true
		}
	}
	return false
}

// addOldKey adds the header with the key as it was, which Debezium puts before all
// others.
func (p *Plan) addOldKey(c *decoder.Change, old []decoder.Value, rec *sink.Record) error {
	p.old.Reset()
	for n, i := range p.primary {
		f := p.fields[i]
		v, err := p.convertText(c, f, old[f.index], &p.old)
		if err != nil {
			return err
		}
		p.oldValues[n] = v
	}
	value, err := p.convert(c, p.router.opt.Header, p.primary[0], p.oldKey, connect.Value{Valid: true, List: p.oldValues})
	if err == nil {
		rec.Headers = append(rec.Headers, sink.Header{Name: oldKeyHeader, Value: value})
	}
	return err
}
