package expand

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/walpost/walpost/internal/debezium/connect"
)

// maxShapes bounds the cache of schemas. It is emptied between documents, so one
// document can exceed it.
const maxShapes = 4096

// shape is a schema; two of the same content are the same pointer.
type shape struct {
	schema connect.Schema
	id     uint64
	fields []*shape // of a struct
	elem   *shape   // of an array
}

// shapes holds every shape made so far.
type shapes struct {
	known map[string]*shape
	key   []byte
	next  uint64

	text, boolean, integer, long, double, bytes *shape
}

func newShapes() *shapes {
	s := &shapes{}
	s.reset()
	return s
}

// reset forgets all shapes. Numbers go on, so an old shape equals no new one.
func (s *shapes) reset() {
	s.known = map[string]*shape{}
	scalar := func(t connect.Type) *shape {
		return s.add(&shape{schema: connect.Schema{Type: t, Optional: true}})
	}
	s.text, s.boolean, s.bytes = scalar(connect.String), scalar(connect.Boolean), scalar(connect.Bytes)
	s.integer, s.long, s.double = scalar(connect.Int32), scalar(connect.Int64), scalar(connect.Float64)
}

func (s *shapes) add(made *shape) *shape {
	s.next++
	made.id = s.next
	return made
}

func (s *shapes) list(elem *shape) *shape {
	key := binary.AppendUvarint(append(s.key[:0], 'a'), elem.id)
	s.key = key
	if known := s.known[string(key)]; known != nil {
		return known
	}
	made := s.add(&shape{elem: elem, schema: connect.Schema{
		Type: connect.Array, Optional: true, Elem: &elem.schema,
	}})
	s.known[string(key)] = made
	return made
}

func (s *shapes) structure(name string, optional bool, names []string, fields []*shape) *shape {
	tag := byte('r')
	if optional {
		tag = 'o'
	}
	key := binary.AppendUvarint(append(s.key[:0], tag), uint64(len(name)))
	key = append(key, name...)
	for i, f := range fields {
		key = binary.AppendUvarint(key, uint64(len(names[i])))
		key = append(key, names[i]...)
		key = binary.AppendUvarint(key, f.id)
	}
	s.key = key
	if known := s.known[string(key)]; known != nil {
		return known
	}
	made := &shape{fields: fields, schema: connect.Schema{
		Type: connect.Struct, Optional: optional, Name: name, Fields: make([]connect.Field, len(fields)),
	}}
	for i, f := range fields {
		made.schema.Fields[i] = connect.Field{Name: names[i], Schema: &f.schema}
	}
	s.known[string(key)] = s.add(made)
	return made
}

// inference builds the shape of a document.
type inference struct {
	*shapes
	nullBytes   bool // a null is an optional BYTES
	emptyString bool // an empty array is one of optional STRING
}

// errNameless is Connect's refusal of a field with an empty name.
var errNameless = errors.New("a member has an empty name")

// of returns the shape of n, or nil when it is to be dropped. key names the
// struct; it is empty within arrays of arrays.
func (f *inference) of(key string, n *node) (*shape, error) {
	switch n.kind {
	case text:
		return f.text, nil
	case boolean:
		return f.boolean, nil
	case integer:
		return f.integer, nil
	case long:
		return f.long, nil
	case double, big:
		return f.double, nil
	case array:
		if len(n.nodes) == 0 {
			if f.emptyString {
				return f.list(f.text), nil
			}
			return nil, nil
		}
		elem, err := f.element(key, n)
		if err != nil {
			return nil, err
		}
		return f.list(elem), nil
	case object:
		return f.object(key, n)
	}
	if f.nullBytes {
		return f.bytes, nil
	}
	return nil, nil
}

func (f *inference) object(key string, n *node) (*shape, error) {
	names, fields := make([]string, 0, len(n.names)), make([]*shape, 0, len(n.names))
	prefix := ""
	if !blank(key) {
		prefix = key + "."
	}
	for i := range n.names {
		name := string(n.names[i])
		field, err := f.of(prefix+name, &n.nodes[i])
		if err != nil {
			return nil, err
		}
		if field == nil {
			continue
		}
		if name == "" {
			return nil, errNameless
		}
		names, fields = append(names, name), append(fields, field)
	}
	return f.structure(key, true, names, fields), nil
}

// element returns the shape of an array's elements.
func (f *inference) element(key string, n *node) (*shape, error) {
	sample, err := f.sample(n)
	if err != nil {
		return nil, err
	}
	if sample.kind != object {
		elem, err := f.of("", sample)
		if err == nil && elem == nil {
			err = errors.New("the elements of an array have no type")
		}
		return elem, err
	}
	var distinct []*shape
	seen := map[*shape]bool{}
	for i := range n.nodes {
		if n.nodes[i].kind != object {
			continue
		}
		elem, err := f.object(key, &n.nodes[i])
		if err != nil {
			return nil, err
		}
		if !seen[elem] {
			seen[elem] = true
			distinct = append(distinct, elem)
		}
	}
	if len(distinct) == 1 {
		return distinct[0], nil
	}
	return f.merge(distinct), nil
}

// sample returns the first element that is not null, all others being of its
// kind; or null.
func (f *inference) sample(n *node) (*node, error) {
	sample := &node{kind: null}
	for i := range n.nodes {
		e := &n.nodes[i]
		switch {
		case e.kind == null:
			continue
		case sample.kind == null:
			sample = e
		case e.kind.String() != sample.kind.String():
			return nil, fmt.Errorf("an array holds %v and %v", sample.kind, e.kind)
		}
		if number(e.kind) != number(sample.kind) {
			return nil, errors.New("an array holds numbers of different types")
		}
	}
	return sample, nil
}

// number tells the types of numbers apart.
func number(k kind) kind {
	switch k {
	case integer, long, double:
		return k
	case big:
		return double
	}
	return null
}

// merge makes one struct of several, required as Debezium's is: members in order
// of first appearance, and of each the first schema that is not BYTES.
func (f *inference) merge(all []*shape) *shape {
	var names []string
	var fields []*shape
	place := map[string]int{}
	for _, s := range all {
		for i, field := range s.fields {
			name := s.schema.Fields[i].Name
			at, ok := place[name]
			switch {
			case !ok:
				place[name] = len(names)
				names, fields = append(names, name), append(fields, field)
			case fields[at].schema.Type == connect.Bytes && field.schema.Type != connect.Bytes:
				fields[at] = field
			}
		}
	}
	return f.structure(all[0].schema.Name, false, names, fields)
}

// blank is Java's String.isBlank.
func blank(s string) bool {
	return strings.TrimFunc(s, func(r rune) bool {
		switch r {
		case '\u00a0', '\u2007', '\u202f', '\u0085':
			return false
		}
		return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f
	}) == ""
}
