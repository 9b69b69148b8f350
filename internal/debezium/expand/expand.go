package expand

import (
	"errors"
	"fmt"
	"strings"

	"github.com/walpost/walpost/internal/debezium/connect"
)

// Outcome says what became of a payload.
type Outcome uint8

const (
	// Kept says that the payload stays the text that it is, under its schema.
	Kept Outcome = iota
	// Expanded says that schema and value take the payload's place.
	Expanded
	// Replaced says that only the schema was replaced; the value is the text.
	Replaced
)

// Options of an Expander; the strings are those of the router's configuration.
type Options struct {
	JSONNull       string // table.json.payload.null.behavior: ignore (default), optional_bytes
	JSONEmptyArray string // table.json.payload.empty.array.behavior: ignore (default), optional_string
	RootName       string // the payload column, which names the outermost struct; default payload
}

// Expander expands payloads. It is not safe for concurrent use.
type Expander struct {
	infer inference
	root  string
}

// OptionError is an option with a value that it does not have.
type OptionError struct {
	Name, Value, Other string
}

// Error names the option and its value.
func (e *OptionError) Error() string {
	return fmt.Sprintf("%s=%s: neither ignore nor %s", e.Name, e.Value, e.Other)
}

// Hint says in one line what to do.
func (e *OptionError) Hint() string { return "write ignore or " + e.Other }

// New makes an Expander.
func New(o Options) (*Expander, error) {
	e := &Expander{infer: inference{shapes: newShapes()}, root: o.RootName}
	if e.root == "" {
		e.root = "payload"
	}
	var err error
	if e.infer.nullBytes, err = choice("table.json.payload.null.behavior", o.JSONNull, "optional_bytes"); err != nil {
		return nil, err
	}
	if e.infer.emptyString, err = choice("table.json.payload.empty.array.behavior", o.JSONEmptyArray, "optional_string"); err != nil {
		return nil, err
	}
	return e, nil
}

// choice reads an option that is ignore or the other value, as Debezium does.
func choice(name, value, other string) (bool, error) {
	switch text := strings.TrimSpace(value); {
	case text == "", strings.EqualFold(text, "ignore"):
		return false, nil
	case strings.EqualFold(text, other):
		return true, nil
	}
	return false, &OptionError{name, value, other}
}

var (
	errStart    = errors.New("the payload does not start with { or [")
	errRoot     = errors.New("the payload is an array")
	errMismatch = errors.New("a value does not fit the schema that was found for it")
)

// Expand expands a payload's text. When the outcome is not Expanded, err says
// why, in the words of a warning: it is no failure of Expand. Kept comes with
// neither schema nor value; the schema of Replaced can be nil, which is Connect's
// "no schema". The value may point into the text.
func (e *Expander) Expand(text []byte) (s *connect.Schema, v connect.Value, outcome Outcome, err error) {
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return nil, connect.Value{}, Kept, errStart
	}
	if len(e.infer.known) > maxShapes {
		e.infer.reset()
	}
	p := parser{text: text}
	root, err := p.value(0)
	if err != nil {
		return nil, connect.Value{}, Kept, err
	}
	form, err := e.infer.of(e.root, &root)
	if err != nil {
		return nil, connect.Value{}, Kept, err
	}
	if form == nil || form.elem != nil {
		err = errRoot
	} else if v, err = structure(&root, form); err == nil {
		return &form.schema, v, Expanded, nil
	}
	if form != nil {
		s = &form.schema
	}
	return s, connect.Value{Valid: true, Text: true, Bytes: text}, Replaced, err
}

// structure makes the value of an object for a struct: what the struct does not
// have is left out, what the object does not have is null.
func structure(n *node, s *shape) (connect.Value, error) {
	v := connect.Value{Valid: true, List: make([]connect.Value, len(s.fields))}
	hint := 0
	for i, field := range s.fields {
		at := n.find(s.schema.Fields[i].Name, hint)
		if at < 0 {
			continue
		}
		hint = at + 1
		var err error
		if v.List[i], err = convert(&n.nodes[at], field); err != nil {
			return v, err
		}
	}
	return v, nil
}

// convert makes the value of n for s, or fails where Connect's validation does.
func convert(n *node, s *shape) (connect.Value, error) {
	v := connect.Value{Valid: true}
	fits := false
	switch t := s.schema.Type; n.kind {
	case null:
		if !s.schema.Optional {
			return v, errMismatch
		}
		return connect.Value{}, nil
	case text:
		v.Bytes, fits = n.text, t == connect.String
	case boolean:
		v.Int, fits = n.integer, t == connect.Boolean
	case integer:
		v.Int, fits = n.integer, t == connect.Int32
	case long:
		v.Int, fits = n.integer, t == connect.Int64
	case double:
		v.Float, fits = n.double, t == connect.Float64
	case object:
		if t == connect.Struct {
			return structure(n, s)
		}
	case array:
		if t == connect.Array {
			return list(n, s)
		}
	}
	if !fits {
		return v, errMismatch
	}
	return v, nil
}

func list(n *node, s *shape) (connect.Value, error) {
	v := connect.Value{Valid: true, List: make([]connect.Value, len(n.nodes))}
	for i := range n.nodes {
		var err error
		if v.List[i], err = convert(&n.nodes[i], s.elem); err != nil {
			return v, err
		}
	}
	return v, nil
}
