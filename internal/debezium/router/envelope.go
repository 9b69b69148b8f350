package router

import (
	"strconv"
	"strings"

	"github.com/walpost/walpost/decoder"
	"github.com/walpost/walpost/internal/debezium/connect"
)

// maxEnvelopes is the size of Debezium's own cache (EventRouterDelegate), which
// forgets single schemas where this one forgets all.
const maxEnvelopes = 10000

// version is what the version column says; null is one as well.
type version struct {
	valid  bool
	number int64
}

// envelopes are the schemas of envelopes, of all tables together. Debezium makes a
// schema for the first row with a payload schema, or with a version, and then keeps
// it for all others, whatever their routing value and their columns are.
type envelopes struct {
	byPointer map[*connect.Schema]*connect.Schema // what byPayload has, quickly
	byPayload map[string]*connect.Schema
	byVersion map[version]*connect.Schema
}

func newEnvelopes() envelopes {
	return envelopes{map[*connect.Schema]*connect.Schema{}, map[string]*connect.Schema{}, map[version]*connect.Schema{}}
}

// envelopeSchema finds or makes the schema for a payload's.
func (p *Plan) envelopeSchema(payload *connect.Schema) *connect.Schema {
	e := &p.router.schemas
	if p.version >= 0 {
		v := p.fields[p.version].value
		key := version{v.Valid, v.Int}
		s := e.byVersion[key]
		if s == nil {
			s = p.newEnvelope(payload)
			if v.Valid {
				number := int32(v.Int)
				s.Version = &number
			}
			e.byVersion[key] = s
		}
		return s
	}
	if s := e.byPointer[payload]; s != nil {
		return s
	}
	if len(e.byPointer) >= maxEnvelopes {
		clear(e.byPointer)
	}
	key := identity(payload)
	s := e.byPayload[key]
	if s == nil {
		if len(e.byPayload) >= maxEnvelopes {
			clear(e.byPayload)
		}
		s = p.newEnvelope(payload)
		e.byPayload[key] = s
	}
	e.byPointer[payload] = s
	return s
}

// newEnvelope names the schema after the row at hand.
func (p *Plan) newEnvelope(payload *connect.Schema) *connect.Schema {
	s := &connect.Schema{
		Type: connect.Struct, Name: p.prefix + string(p.fields[p.route].value.Bytes) + ".Value",
		Fields: []connect.Field{{Name: payloadField, Schema: payload}},
	}
	for _, e := range p.envelope {
		s.Fields = append(s.Fields, connect.Field{Name: e.name, Schema: p.schema(e.field)})
	}
	return s
}

// wrap makes the envelope of a payload and the placed columns.
func (p *Plan) wrap(c *decoder.Change, payload *connect.Schema, v connect.Value) (*connect.Schema, connect.Value, error) {
	fail := func(column, text string) (*connect.Schema, connect.Value, error) {
		return nil, connect.Value{}, p.reject(c, column, text,
			"Debezium fails here; see that all rows of a schema version, and all outbox tables, have the same columns in the envelope")
	}
	if route := p.fields[p.route]; !route.value.Valid {
		_, err := p.topic(c)
		return nil, connect.Value{}, err
	}
	if payload == nil || v.Text {
		return nil, connect.Value{}, p.reject(c, p.fields[p.payload].column.Name, "the payload could not be expanded, although its schema could be told",
			"Debezium fails its task on such a payload; switch table.expand.json.payload off or change the payload")
	}
	s := p.envelopeSchema(payload)
	if cap(p.list) < len(s.Fields) {
		p.list = make([]connect.Value, len(s.Fields))
	}
	list := p.list[:len(s.Fields)]
	clear(list)
	if !fits(s.Fields[0].Schema, payload, v) {
		return fail(p.fields[p.payload].column.Name, "the payload does not fit the schema of the envelope, which an earlier row has set")
	}
	list[0] = v
	for i, e := range p.envelope {
		at := i + 1
		if at >= len(s.Fields) || s.Fields[at].Name != e.name {
			for at = range s.Fields {
				if s.Fields[at].Name == e.name {
					break
				}
			}
		}
		value := p.get(e.field)
		if s.Fields[at].Name != e.name || !fits(s.Fields[at].Schema, p.schema(e.field), value) {
			return fail(p.fields[e.field].column.Name, "it does not fit the schema of the envelope, which an earlier row has set")
		}
		list[at] = value
	}
	return s, connect.Value{Valid: true, List: list}, nil
}

// fits is ConnectSchema.validateValue, for a value that was made for own.
func fits(s, own *connect.Schema, v connect.Value) bool {
	if !v.Valid {
		return s.Optional
	}
	if s == own {
		return true
	}
	switch s.Type {
	case connect.Array, connect.Map, connect.Struct:
		return identity(s) == identity(own)
	}
	return s.Type == own.Type && logical(s) == logical(own)
}

// logical names the types of Connect's own whose values are other objects.
func logical(s *connect.Schema) string {
	if strings.HasPrefix(s.Name, "org.apache.kafka.connect.data.") {
		return s.Name
	}
	return ""
}

// identity is a text that equal schemas share, and only they.
func identity(s *connect.Schema) string {
	var b strings.Builder
	writeIdentity(&b, s)
	return b.String()
}

func writeIdentity(b *strings.Builder, s *connect.Schema) {
	if s == nil {
		b.WriteByte('-')
		return
	}
	b.WriteString(strconv.Itoa(int(s.Type)))
	b.WriteString(strconv.FormatBool(s.Optional))
	b.WriteString(strconv.Quote(s.Name))
	if s.Version != nil {
		b.WriteString(strconv.Itoa(int(*s.Version)))
	}
	b.WriteString(strconv.Quote(s.Doc))
	for _, p := range s.Parameters {
		b.WriteString(strconv.Quote(p.Name) + "=" + strconv.Quote(p.Value))
	}
	if s.Default != nil {
		b.WriteByte('d')
		writeValue(b, *s.Default)
	}
	b.WriteByte('(')
	for _, f := range s.Fields {
		b.WriteString(strconv.Quote(f.Name))
		writeIdentity(b, f.Schema)
	}
	writeIdentity(b, s.Key)
	writeIdentity(b, s.Elem)
	b.WriteByte(')')
}

func writeValue(b *strings.Builder, v connect.Value) {
	b.WriteString(strconv.FormatBool(v.Valid) + strconv.FormatInt(v.Int, 10) + "," + strconv.FormatFloat(v.Float, 'g', -1, 64) + strconv.Quote(string(v.Bytes)) + "[")
	for _, e := range v.List {
		writeValue(b, e)
	}
	b.WriteByte(']')
}
