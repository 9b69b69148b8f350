package router

import (
	"encoding/json"

	"github.com/walpost/walpost/internal/debezium/connect"
	"github.com/walpost/walpost/sink"
)

// IDHeader is the header with the event's id. A placement may add another of the
// same name, behind it.
const IDHeader = "id"

// idForm is how the header converter writes a string.
type idForm uint8

const (
	idPlain idForm = iota
	idJSON
	idSchema // in a JSON object, beside its schema
)

func findIDForm(c connect.Converter) idForm {
	out, _, err := c.Convert(nil, textSchema, connect.Value{Valid: true, Bytes: []byte("x")})
	switch {
	case err != nil:
	case string(out) == `"x"`:
		return idJSON
	case len(out) > 0 && out[0] == '{':
		return idSchema
	}
	return idPlain
}

// EventID is the text of the event's id in a record that this Router, or Debezium
// with the same converters, has made; nil when it has none.
func (r *Router) EventID(rec *sink.Record) []byte {
	for _, h := range rec.Headers {
		if h.Name != IDHeader {
			continue
		}
		value := h.Value
		if r.idForm == idSchema {
			var whole struct{ Payload json.RawMessage }
			if json.Unmarshal(value, &whole) != nil {
				return value
			}
			value = whole.Payload
		}
		var text string
		if r.idForm != idPlain && len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &text) == nil {
			return []byte(text)
		}
		return value
	}
	return nil
}
