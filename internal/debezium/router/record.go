package router

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/column"
	"github.com/walpost/walpost/internal/debezium/connect"
	"github.com/walpost/walpost/internal/debezium/expand"
	"github.com/walpost/walpost/internal/event"
	"github.com/walpost/walpost/sink"
)

// Record makes a record of a change, if it makes one. What rec points to is valid
// until the plan's next call, and no longer than c. The error is an *event.Reject
// for a row at which Debezium would fail; rec is then not to be used. Of rec's Tag
// nothing is touched.
func (p *Plan) Record(c *decoder.Change, rec *sink.Record) (Outcome, error) {
	switch c.Kind {
	case decoder.KindDelete:
		return SkippedDelete, nil
	case decoder.KindTruncate:
		return SkippedTruncate, nil
	case decoder.KindInsert, decoder.KindUpdate:
	default:
		return SkippedOther, nil
	}
	if err := p.check(c); err != nil {
		return 0, err
	}
	p.snapshot = false
	if c.Kind == decoder.KindUpdate {
		return p.update(c, rec)
	}
	return p.publish(c, nil, rec)
}

// SnapshotRow makes a record of a row that a snapshot read, and that is in c as an
// insert.
func (p *Plan) SnapshotRow(c *decoder.Change, rec *sink.Record) (Outcome, error) {
	if err := p.check(c); err != nil {
		return 0, err
	}
	p.snapshot = true
	return p.publish(c, nil, rec)
}

func (p *Plan) check(c *decoder.Change) error {
	if c.Relation != p.rel || len(c.New) != len(p.rel.Columns) || c.Old != nil && len(c.Old) != len(p.rel.Columns) {
		return fmt.Errorf("table %s at %s: the plan does not fit this %s", p.table, c.LSN, c.Kind)
	}
	return nil
}

// publish makes the record of c.New; old is the tuple before a change of the key.
func (p *Plan) publish(c *decoder.Change, old []decoder.Value, rec *sink.Record) (Outcome, error) {
	p.reset(rec)
	if err := p.read(c); err != nil {
		return 0, err
	}
	if err := p.time(c, rec); err != nil {
		return 0, err
	}
	if err := p.place(c, old, rec); err != nil {
		return 0, err
	}
	s, v, err := p.value(c)
	if err != nil {
		return 0, err
	}
	if rec.Topic, err = p.topic(c); err != nil {
		return 0, err
	}
	o := &p.router.opt
	if rec.Key, err = p.convert(c, o.Key, p.key, p.schema(p.key), p.get(p.key)); err != nil {
		return 0, err
	}
	if rec.Value, err = p.convert(c, o.Value, p.payload, s, v); err != nil {
		return 0, err
	}
	return Published, nil
}

// read converts the columns, the id first: it names the row in all that follows.
func (p *Plan) read(c *decoder.Change) error {
	if err := p.readField(c, p.id); err != nil {
		return err
	}
	p.eventID = nil
	if v := &c.New[p.fields[p.id].index]; v.Kind == decoder.Text {
		p.eventID = v.Data
	} else if d := p.get(p.id); d.Valid && p.schema(p.id).Type == connect.String {
		p.eventID = d.Bytes
	}
	for i := range p.fields {
		if i == p.id {
			continue
		}
		if err := p.readField(c, i); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) readField(c *decoder.Change, i int) error {
	f := p.fields[i]
	v := c.New[f.index]
	if v.Kind == decoder.Unchanged {
		// TOASTed, and not in an update that did not touch it. The old tuple has it if
		// the replica identity is full.
		switch {
		case c.Old != nil && c.Old[f.index].Kind == decoder.Text:
			v = c.Old[f.index]
		case c.Kind == decoder.KindUpdate && f.placeholder != nil:
			v = decoder.Value{Kind: decoder.Text, Data: f.placeholder}
		}
	}
	var err error
	f.value, err = p.convertText(c, f, v, &p.scratch)
	return err
}

// convertText makes the value of a column's text.
func (p *Plan) convertText(c *decoder.Change, f *field, v decoder.Value, s *column.Scratch) (connect.Value, error) {
	switch v.Kind {
	case decoder.Text, decoder.Null:
	case decoder.Unchanged:
		return connect.Value{}, p.reject(c, f.column.Name, "its value was not sent (unchanged TOAST)",
			"alter the table to replica identity full, so that a change of the primary key sends all columns")
	default:
		return connect.Value{}, p.reject(c, f.column.Name, "its value came in binary form, which walpost does not ask for",
			"see that nothing rewrites the replication stream")
	}
	lost := len(s.Lost)
	value, err := f.column.Value(s, v.Data, v.Kind == decoder.Null)
	if err != nil {
		return value, p.reject(c, f.column.Name, err.Error(), hint(err, "correct the row"))
	}
	if len(s.Lost) > lost {
		log := p.router.log.Warn
		if f.warned {
			log = p.router.log.Debug
		}
		f.warned = true
		log("value is lost, as in Debezium: null is published", zap.String("table", p.table),
			zap.ByteString("event_id", p.eventID), zap.Error(s.Lost[lost]))
	}
	return value, nil
}

// get is Connect's generic getter: a default takes the place of null.
func (p *Plan) get(i int) connect.Value { return connect.Default(p.schema(i), p.fields[i].value) }

func (p *Plan) schema(i int) *connect.Schema { return p.fields[i].column.Schema }

// time sets the record's timestamp.
func (p *Plan) time(c *decoder.Change, rec *sink.Record) error {
	rec.Time = p.router.opt.Now()
	if p.timestamp < 0 || p.router.opt.Server {
		return nil
	}
	v := p.fields[p.timestamp].value
	if !v.Valid {
		return nil
	}
	switch ms := v.Int / p.millis; {
	case ms >= 0:
		rec.Time = time.UnixMilli(ms)
	case ms < -1: // Connect takes -1 for no timestamp
		return p.reject(c, p.fields[p.timestamp].column.Name, "a timestamp before 1970, which no record can have",
			"correct the row, or choose another column in table.field.event.timestamp")
	}
	return nil
}

// place adds the headers and sets the partition.
func (p *Plan) place(c *decoder.Change, old []decoder.Value, rec *sink.Record) error {
	if old != nil {
		if err := p.addOldKey(c, old, rec); err != nil {
			return err
		}
	}
	rec.Headers = append(rec.Headers, p.router.context...)
	if err := p.addHeader(c, rec, IDHeader, p.id); err != nil {
		return err
	}
	for _, h := range p.headers {
		if err := p.addHeader(c, rec, h.name, h.field); err != nil {
			return err
		}
	}
	if p.partition < 0 || p.router.opt.Server {
		return nil
	}
	v := p.fields[p.partition].value
	switch {
	case !v.Valid:
	case v.Int < 0:
		return p.reject(c, p.fields[p.partition].column.Name, fmt.Sprintf("partition %d does not exist", v.Int),
			"write the number of a partition, or NULL for the partition of the key")
	default:
		rec.Partition = int32(v.Int)
	}
	return nil
}

func (p *Plan) addHeader(c *decoder.Change, rec *sink.Record, name string, i int) error {
	value, err := p.convert(c, p.router.opt.Header, i, p.schema(i), p.get(i))
	if err != nil || value == nil && p.router.opt.Server {
		return err
	}
	rec.Headers = append(rec.Headers, sink.Header{Name: name, Value: value})
	return nil
}

// convert serializes into the plan's buffer; nil is Kafka's null.
func (p *Plan) convert(c *decoder.Change, converter connect.Converter, i int, s *connect.Schema, v connect.Value) ([]byte, error) {
	start := len(p.buf)
	out, null, err := converter.Convert(p.buf, s, v)
	if err != nil {
		return nil, p.reject(c, p.fields[i].column.Name, err.Error(), hint(err, "correct the row"))
	}
	p.buf = out
	if null {
		return nil, nil
	}
	return out[start:len(out):len(out)], nil
}

// value is the record's value: payload, envelope or nothing.
func (p *Plan) value(c *decoder.Change) (*connect.Schema, connect.Value, error) {
	s, v := p.schema(p.payload), p.get(p.payload)
	if p.router.expander != nil {
		s, v = p.expand(s, v)
	}
	// A tombstone has no envelope, but Debezium makes it before it looks.
	envelope, wrapped, err := s, v, error(nil)
	if p.router.enveloped {
		if envelope, wrapped, err = p.wrap(c, s, v); err != nil {
			return nil, connect.Value{}, err
		}
	}
	if p.router.opt.TombstoneEmpty && empty(s, v) {
		return nil, connect.Value{}, nil
	}
	return envelope, wrapped, nil
}

func (p *Plan) expand(s *connect.Schema, v connect.Value) (*connect.Schema, connect.Value) {
	if !v.Valid {
		return s, v
	}
	if s.Type != connect.String {
		p.warnExpansion("payload is not a string and is not expanded", nil)
		return s, v
	}
	schema, value, outcome, err := p.router.expander.Expand(v.Bytes)
	if outcome == expand.Kept {
		schema, value = s, v
	}
	if outcome != expand.Expanded {
		p.warnExpansion("payload is not expanded", err)
	}
	return schema, value
}

func (p *Plan) warnExpansion(message string, err error) {
	log := p.router.log.Warn
	if p.expansionWarned {
		log = p.router.log.Debug
	}
	p.expansionWarned = true
	log(message, zap.String("table", p.table), zap.ByteString("event_id", p.eventID), zap.Error(err))
}

// empty is Debezium's test for a tombstone: null, or a string of blanks. Of all
// other objects Java prints something.
func empty(s *connect.Schema, v connect.Value) bool {
	if !v.Valid {
		return true
	}
	if !v.Text && s.Type != connect.String {
		return false
	}
	for _, c := range v.Bytes {
		if c > ' ' {
			return false
		}
	}
	return true
}

func (p *Plan) topic(c *decoder.Change) (string, error) {
	v, column := p.fields[p.route].value, p.fields[p.route].column.Name
	if !v.Valid {
		return "", p.reject(c, column, "NULL, but it gives the topic", "make the column NOT NULL; a default does not help, the router does not look at it here")
	}
	topic, fault, way := p.router.topics.of(v.Bytes)
	if fault != "" {
		return "", p.reject(c, column, fault, way)
	}
	return topic, nil
}

func (p *Plan) reject(c *decoder.Change, column, text, way string) error {
	r := &event.Reject{Table: p.table, Column: column, EventID: string(p.eventID), LSN: c.LSN, Text: text, Way: way}
	if c.Transaction != nil {
		r.LSN = c.Transaction.CommitLSN
	}
	return r
}
