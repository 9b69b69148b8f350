package event

import (
	"encoding/hex"
	"fmt"

	"github.com/walpost/walpost/decoder"
)

// Types whose text form means more than its letters (pg_type.dat).
const (
	oidBytea       = 17
	oidInt8        = 20
	oidJSON        = 114
	oidDate        = 1082
	oidTimestamp   = 1114
	oidTimestamptz = 1184
	oidJSONB       = 3802
)

// keepBytes is the size up to which a Plan keeps its buffer for decoded bytea
// payloads. One large event must not occupy memory for ever.
const keepBytes = 1 << 20

// Plan makes events of one relation's rows. It is not safe for concurrent use:
// a decoded bytea payload lives in it.
type Plan struct {
	rel    *decoder.Relation
	table  *Table
	source uint32

	id, aggregateType, aggregateID, payload int
	typ, timestamp, partition, members      int // -1: none
	hexPayload                              bool
	timestampType                           uint32
	headers                                 []planHeader
	buf                                     []byte
}

type planHeader struct {
	name     string
	column   int
	required bool
}

func compile(rel *decoder.Relation, t *Table, source uint32) (*Plan, error) {
	at := index(rel)
	s, err := resolve(at, t)
	if err != nil {
		return nil, err
	}
	place := func(name string) int {
		if i, there := at[name]; there && name != "" {
			return i
		}
		return -1
	}
	p := &Plan{
		rel: rel, table: t, source: source,
		id:            place(s.columns.ID),
		aggregateType: place(s.columns.AggregateType),
		aggregateID:   place(s.columns.AggregateID),
		payload:       place(s.columns.Payload),
		typ:           place(s.columns.Type),
		timestamp:     place(s.columns.Timestamp),
		partition:     place(s.columns.Partition),
		members:       place(s.members),
	}
	p.hexPayload = rel.Columns[p.payload].TypeOID == oidBytea
	if p.timestamp >= 0 {
		p.timestampType = rel.Columns[p.timestamp].TypeOID
		switch p.timestampType {
		case oidTimestamptz, oidTimestamp, oidDate, oidInt8:
		default:
			return nil, &Reject{
				Table: t.Name, Column: s.columns.Timestamp,
				Text: fmt.Sprintf("a column of type %d cannot give the record's timestamp", p.timestampType),
				Way:  "map a column of type timestamptz, timestamp, date, or bigint with milliseconds since 1970, or none: then it is the commit time",
			}
		}
	}
	if p.members >= 0 && (configured(t, s.members) || !isJSON(rel.Columns[p.members].TypeOID)) {
		p.members = -1
	}
	p.addHeaders(at, s)
	return p, nil
}

// addHeaders lists the header columns in the order that the package documents.
func (p *Plan) addHeaders(at map[string]int, s shape) {
	p.headers = append(p.headers, planHeader{"aggregate_type", p.aggregateType, false})
	if p.typ >= 0 {
		p.headers = append(p.headers, planHeader{"event_type", p.typ, false})
	}
	for _, name := range s.optional {
		if i, there := at[name]; there && !configured(p.table, name) {
			p.headers = append(p.headers, planHeader{name, i, false})
		}
	}
	for _, h := range p.table.Headers {
		if i, there := at[h.Column]; there {
			p.headers = append(p.headers, planHeader{h.Name, i, h.Required})
		}
	}
}

// configured says whether a configured header is taken from that column, or has
// its name.
func configured(t *Table, column string) bool {
	for _, h := range t.Headers {
		if h.Column == column || h.Name == column {
			return true
		}
	}
	return false
}

func isJSON(oid uint32) bool { return oid == oidJSON || oid == oidJSONB }

// Relation is the description that the plan was made for. Another one needs
// another plan.
func (p *Plan) Relation() *decoder.Relation { return p.rel }

// Event fills ev from an inserted row. What ev points to is valid until the next
// call of Event, and no longer than c. The error is a *Reject when the row is at
// fault; ev then holds what was read before.
func (p *Plan) Event(c *decoder.Change, ev *Event) error {
	if c.Kind != decoder.KindInsert || c.Relation != p.rel || c.Transaction == nil || len(c.New) != len(p.rel.Columns) {
		return fmt.Errorf("table %s at %s: the plan does not fit this %s", p.table.Name, c.LSN, c.Kind)
	}
	*ev = Event{Table: p.table.Name, Source: p.source, Headers: ev.Headers[:0]}
	var err error
	if ev.ID, err = p.needed(c, ev, p.id); err != nil {
		return err
	}
	if ev.AggregateType, err = p.needed(c, ev, p.aggregateType); err != nil {
		return err
	}
	if ev.AggregateID, err = p.needed(c, ev, p.aggregateID); err != nil {
		return err
	}
	if ev.Type, err = p.optional(c, ev, p.typ); err != nil {
		return err
	}
	if ev.Payload, err = p.readPayload(c, ev); err != nil {
		return err
	}
	if ev.Partition, err = p.optional(c, ev, p.partition); err != nil {
		return err
	}
	if err := p.readTime(c, ev); err != nil {
		return err
	}
	for i := range p.headers {
		h := &p.headers[i]
		v, err := p.value(c, ev, h.column)
		if err != nil {
			return err
		}
		if v == nil {
			if h.required {
				return p.reject(c, ev, h.column, "NULL, but it is a required header",
					"make the column NOT NULL, or the header optional in the configuration")
			}
			continue
		}
		ev.Headers = append(ev.Headers, Header{Name: h.name, Value: v})
	}
	if p.members < 0 {
		return nil
	}
	return p.readMembers(c, ev)
}

// value gives a column's text, nil for NULL.
func (p *Plan) value(c *decoder.Change, ev *Event, column int) ([]byte, error) {
	v := &c.New[column]
	switch v.Kind {
	case decoder.Text:
		return v.Data, nil
	case decoder.Null:
		return nil, nil
	case decoder.Unchanged:
		return nil, p.reject(c, ev, column, "its value was not sent (unchanged TOAST)",
			"an inserted row always carries its values; see that nothing rewrites the replication stream")
	default:
		return nil, p.reject(c, ev, column, "its value came in binary form, which walpost does not ask for",
			"see that nothing rewrites the replication stream")
	}
}

func (p *Plan) optional(c *decoder.Change, ev *Event, column int) ([]byte, error) {
	if column < 0 {
		return nil, nil
	}
	return p.value(c, ev, column)
}

func (p *Plan) needed(c *decoder.Change, ev *Event, column int) ([]byte, error) {
	v, err := p.value(c, ev, column)
	if err == nil && len(v) == 0 {
		text := "empty"
		if v == nil {
			text = "NULL"
		}
		err = p.reject(c, ev, column, text+", but an event needs it",
			"the application must write it; a NOT NULL and a CHECK constraint on the column keep such rows out")
	}
	return v, err
}

// readPayload decodes bytea. The session pins bytea_output to hex, so anything
// else means that the setting was lost, and the bytes would be wrong.
func (p *Plan) readPayload(c *decoder.Change, ev *Event) ([]byte, error) {
	v, err := p.value(c, ev, p.payload)
	if err != nil || v == nil || !p.hexPayload {
		return v, err
	}
	if len(v) < 2 || v[0] != '\\' || v[1] != 'x' {
		return nil, p.reject(c, ev, p.payload, "bytea is not in hex form",
			"walpost sets bytea_output=hex for its session; see that no proxy or pooler undoes it")
	}
	v = v[2:]
	size := hex.DecodedLen(len(v))
	buf := p.buf
	if buf == nil || size > cap(buf) {
		buf = make([]byte, 0, max(size, 512))
		if size <= keepBytes {
			p.buf = buf
		}
	}
	buf = buf[:size]
	if _, err := hex.Decode(buf, v); err != nil {
		return nil, p.reject(c, ev, p.payload, "bytea is not in hex form: "+err.Error(),
			"walpost sets bytea_output=hex for its session; see that no proxy or pooler undoes it")
	}
	return buf, nil
}

// readTime never rejects a value, whatever it holds: a wrong timestamp is not
// worth an event.
func (p *Plan) readTime(c *decoder.Change, ev *Event) error {
	ev.Time = c.Transaction.CommitTime
	if p.timestamp < 0 {
		return nil
	}
	v, err := p.value(c, ev, p.timestamp)
	if err != nil {
		return err
	}
	at, ok := recordTime(p.timestampType, v)
	if !ok {
		ev.TimeFallback = true
		return nil
	}
	ev.Time = at
	return nil
}

func (p *Plan) reject(c *decoder.Change, ev *Event, column int, text, way string) *Reject {
	return &Reject{
		Table: p.table.Name, Column: p.rel.Columns[column].Name, EventID: string(ev.ID),
		LSN: c.Transaction.CommitLSN, Text: text, Way: way,
	}
}
