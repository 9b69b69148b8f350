package event

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/walpost/walpost/decoder"
)

// readMembers turns the top-level members of the json column into headers, in
// the order in which PostgreSQL prints them: a string as its text, null as a
// null header, anything else as its JSON text. A name that another header has
// already is sent too, behind it; only id is refused, because consumers know an
// event by it.
func (p *Plan) readMembers(c *decoder.Change, ev *Event) error {
	v, err := p.value(c, ev, p.members)
	if err != nil || v == nil {
		return err
	}
	const way = `write a JSON object such as {"name": "value"}, without a member "id"`
	if bytes.Equal(v, emptyObject) {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(v))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return p.reject(c, ev, p.members, "not a JSON object", way)
	}
	for dec.More() {
		t, err := dec.Token()
		name, isName := t.(string)
		if err != nil || !isName {
			return p.reject(c, ev, p.members, "not a JSON object", way)
		}
		if name == "id" {
			return p.reject(c, ev, p.members, `has a member "id", which is the header of the event's id`, way)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return p.reject(c, ev, p.members, "member "+strconv.Quote(name)+" is not JSON", way)
		}
		value := []byte(raw)
		switch raw[0] {
		case 'n':
			value = nil
		case '"':
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				return p.reject(c, ev, p.members, "member "+strconv.Quote(name)+" is not JSON", way)
			}
			value = []byte(s)
		}
		ev.Headers = append(ev.Headers, Header{Name: name, Value: value})
	}
	if _, err := dec.Token(); err != nil {
		return p.reject(c, ev, p.members, "not a JSON object", way)
	}
	return nil
}

// emptyObject is what a default gives; it costs nothing.
var emptyObject = []byte("{}")
