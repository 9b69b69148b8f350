package router

import (
	"bytes"
	"strings"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/column"
	"github.com/walpost/walpost/internal/debezium/connect"
	"github.com/walpost/walpost/internal/event"
	"github.com/walpost/walpost/internal/route"
	"github.com/walpost/walpost/sink"
)

// keepBytes is the size up to which a Plan keeps its buffer. One large event must
// not occupy memory for ever.
const keepBytes = 1 << 20

// Plan makes records of one relation's rows.
type Plan struct {
	router *Router
	rel    *decoder.Relation
	table  string
	prefix string // of the row schema's name, with its dot

	fields                    []*field
	id, key, payload, route   int
	timestamp, version        int   // -1: none
	millis                    int64 // units of the timestamp column in a millisecond
	partition                 int   // -1: none
	headers                   []target
	envelope                  []target
	primary                   []int // the primary key, in its order
	oldKey                    *connect.Schema
	scratch, old              column.Scratch
	buf                       []byte
	list, oldValues           []connect.Value
	eventID                   []byte
	expansionWarned, snapshot bool
}

// target is where a field goes.
type target struct {
	name  string
	field int
}

// Compile makes the plan for a relation's rows. The columns are those that the WAL
// says; the catalog, which may be newer, says what their types are. The error is an
// *event.Reject, and tells what makes Debezium fail at every row of the table.
func (r *Router) Compile(rel *decoder.Relation, t Table) (*Plan, error) {
	f := &fields{router: r, rel: rel, table: t, name: t.Schema + "." + t.Name, omits: map[string]string{}}
	p := &Plan{router: r, rel: rel, table: f.name, prefix: r.schemaPrefix(t), timestamp: -1, version: -1, partition: -1, buf: []byte{}}
	var err error
	for _, c := range []struct {
		into         *int
		name, option string
	}{
		// In the order in which Debezium looks for them.
		{&p.payload, r.opt.FieldEventPayload, "table.field.event.payload"},
		{&p.id, r.opt.FieldEventID, "table.field.event.id"},
		{&p.key, r.opt.FieldEventKey, "table.field.event.key"},
		{&p.route, r.opt.RouteByField, "route.by.field"},
	} {
		if *c.into, err = f.need(c.name, c.option); err != nil {
			return nil, err
		}
	}
	if s := f.list[p.route].column.Schema; s.Type != connect.String {
		return nil, p.unfit(r.opt.RouteByField, "its type cannot give a topic: Debezium takes it for no text",
			"choose a text column in route.by.field, or cast the column")
	}
	if err := p.compileTime(f); err != nil {
		return nil, err
	}
	if err := p.compilePlacements(f); err != nil {
		return nil, err
	}
	if err := p.compileKey(f); err != nil {
		return nil, err
	}
	p.fields = f.list
	if err := p.probe(); err != nil {
		return nil, err
	}
	return p, nil
}

// schemaPrefix begins the name of the row's schema: the topic that the rows would
// have without the router.
func (r *Router) schemaPrefix(t Table) string {
	var b strings.Builder
	for _, c := range strings.Join([]string{r.opt.TopicPrefix, t.Schema, t.Name}, r.opt.TopicDelimiter) {
		switch {
		case c < 0x80 && route.TopicByte(byte(c)):
			b.WriteRune(c)
		case c > 0xffff: // two characters of Java's
			b.WriteString("__")
		default:
			b.WriteByte('_')
		}
	}
	name := b.String()
	return name[:min(len(name), route.MaxTopic)] + "."
}

func (p *Plan) unfit(column, text, way string) error {
	return &event.Reject{Table: p.table, Column: column, Text: text, Way: way}
}

func (p *Plan) compileTime(f *fields) error {
	name := p.router.opt.FieldEventTimestamp
	if name == "" {
		return nil
	}
	at, err := f.need(name, "table.field.event.timestamp")
	if err != nil {
		return err
	}
	s := f.list[at].column.Schema
	switch s.Name {
	case "io.debezium.time.Timestamp":
		p.millis = 1
	case "io.debezium.time.MicroTimestamp":
		p.millis = 1000
	case "io.debezium.time.NanoTimestamp":
		p.millis = 1000_000
	}
	if p.millis == 0 || s.Type != connect.Int64 {
		return p.unfit(name, "its type cannot give the record's timestamp",
			"choose a column of type timestamp (without time zone) and a time.precision.mode other than connect and isostring, or remove table.field.event.timestamp")
	}
	p.timestamp = at
	return nil
}

func (p *Plan) compilePlacements(f *fields) error {
	o := &p.router.opt
	if p.router.enveloped && o.FieldEventSchemaVersion != "" {
		at, err := f.need(o.FieldEventSchemaVersion, "table.field.event.schema.version")
		if err != nil {
			return err
		}
		if f.list[at].column.Schema.Type != connect.Int32 {
			return p.unfit(o.FieldEventSchemaVersion, "its type cannot give a schema's version", "table.field.event.schema.version takes a column of type integer")
		}
		p.version = at
	}
	var there []placement
	for _, place := range p.router.placements {
		at, ok, err := f.get(place.column)
		if err != nil {
			return err
		}
		if !ok {
			if o.MissingIgnored {
				continue
			}
			return f.missing(place.column, "table.fields.additional.placement")
		}
		there = append(there, place)
		switch place.place {
		case inHeader:
			p.headers = append(p.headers, target{place.alias, at})
		case inEnvelope:
			p.envelope = append(p.envelope, target{place.alias, at})
		case asPartition:
			if f.list[at].column.Schema.Type != connect.Int32 {
				return p.unfit(place.column, "its type cannot give a partition", "the placement partition takes a column of type integer; smallint and bigint fail in Debezium too")
			}
			p.partition = at // the last one wins
		}
	}
	if name, twice := repeated(there); twice {
		return p.unfit("", "the envelope would have two fields "+name, "give one of them another alias in table.fields.additional.placement")
	}
	return nil
}

// compileKey prepares for updates that change the primary key.
func (p *Plan) compileKey(f *fields) error {
	names := f.table.Key
	if len(names) == 0 {
		for i := range p.rel.Columns {
			if info, err := f.info(i); err == nil && info.Key {
				names = append(names, p.rel.Columns[i].Name)
			}
		}
	}
	p.oldKey = &connect.Schema{Type: connect.Struct, Name: p.prefix + "Key"}
	for _, name := range names {
		at, ok, err := f.get(name)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		p.primary = append(p.primary, at)
		p.oldKey.Fields = append(p.oldKey.Fields, connect.Field{Name: name, Schema: f.list[at].column.Schema})
	}
	p.oldValues = make([]connect.Value, len(p.primary))
	return nil
}

// Relation is the description that the plan was made for. Another one needs
// another plan.
func (p *Plan) Relation() *decoder.Relation { return p.rel }

// EventID is the text of the id column of the row that was seen last.
func (p *Plan) EventID() []byte { return p.eventID }

// probe tries the converters on a value of each type that they will get: what they
// refuse, they refuse in every row.
func (p *Plan) probe() error {
	o := &p.router.opt
	try := func(c connect.Converter, converter string, at int) error {
		s := p.fields[at].column.Schema
		text, _, err := c.Convert(nil, s, sample(s))
		if err != nil {
			return p.unfit(p.fields[at].column.Name, err.Error(), hint(err, "choose another "+converter))
		}
		if o.NoDebugText && isDebugText(text) {
			return p.unfit(p.fields[at].column.Name, "StringConverter writes it as Java's debug text, "+string(text)+", which no consumer can read",
				"choose another "+converter+"; or set debezium.reproduce_debug_text if consumers rely on it")
		}
		return nil
	}
	if err := try(o.Key, "key.converter", p.key); err != nil {
		return err
	}
	if !p.router.enveloped && (p.router.expander == nil || p.fields[p.payload].column.Schema.Type != connect.String) {
		if err := try(o.Value, "value.converter", p.payload); err != nil {
			return err
		}
	}
	if err := try(o.Header, "header.converter", p.id); err != nil {
		return err
	}
	for _, h := range p.headers {
		s := p.fields[h.field].column.Schema
		if _, _, err := o.Header.Convert(nil, s, sample(s)); err != nil && s.Optional {
			continue // it may always be NULL
		}
		if err := try(o.Header, "header.converter", h.field); err != nil {
			return err
		}
	}
	return nil
}

// isDebugText tells what Java prints of an object that has no text of its own.
func isDebugText(text []byte) bool {
	return bytes.HasPrefix(text, []byte("java.nio.HeapByteBuffer[")) || bytes.HasPrefix(text, []byte("Struct{"))
}

// sample is a value that fits a schema.
func sample(s *connect.Schema) connect.Value {
	v := connect.Value{Valid: true}
	switch s.Type {
	case connect.String:
		v.Bytes = []byte("x")
	case connect.Bytes:
		v.Bytes = []byte{1}
	case connect.Struct:
		for i := range s.Fields {
			v.List = append(v.List, sample(s.Fields[i].Schema))
		}
	}
	return v
}

// reset makes room for the next row.
func (p *Plan) reset(rec *sink.Record) {
	*rec = sink.Record{Headers: rec.Headers[:0], Partition: sink.ByKey, Tag: rec.Tag}
	if p.buf = p.buf[:0]; cap(p.buf) > keepBytes {
		p.buf = []byte{}
	}
	p.scratch.Reset()
	p.scratch.Snapshot = p.snapshot
	p.eventID = nil
}
