package config

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const quoteWay = "write text; in quotes if it looks like a number, a date, true or false"

// value puts a node in the place of an option's value.
func (f *file) value(name string, at any, n *yaml.Node) {
	switch p := at.(type) {
	case *string:
		f.text(name, n, p)
	case *[]string:
		*p = f.texts(name, n)
	case *map[string]string:
		*p = f.pairs(name, n)
	case *[]Table:
		*p = f.tables(name, n)
	case *bool:
		f.scalar(name, "true or false", "write true or false, without quotes", at, n, "!!bool")
	case *int:
		f.scalar(name, "a whole number", "write digits only, without quotes", at, n, "!!int")
	case *Size:
		f.scalar(name, "a size", sizeWay, at, n, "!!int", "!!str")
	case *time.Duration:
		f.scalar(name, "a duration", durationWay, at, n, "!!str")
	}
}

// scalar reads a value of one of the tags by its text, as a flag is read.
func (f *file) scalar(name, expected, way string, at any, n *yaml.Node, tags ...string) {
	if n.Kind == yaml.ScalarNode {
		for _, tag := range tags {
			if n.ShortTag() != tag {
				continue
			}
			if bad := parseText(at, n.Value); bad != nil {
				f.fail(n.Line, name+": "+bad.what, bad.way)
			}
			return
		}
	}
	f.fail(n.Line, fmt.Sprintf("%s: expected %s, found %s", name, expected, found(n)), way)
}

func (f *file) text(name string, n *yaml.Node, at *string) bool {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		f.fail(n.Line, fmt.Sprintf("%s: expected text, found %s", name, found(n)), quoteWay)
		return false
	}
	*at = n.Value
	return true
}

func (f *file) list(name, way string, n *yaml.Node, each func(name string, item *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		f.fail(n.Line, fmt.Sprintf("%s: expected a list, found %s", name, found(n)), way)
		return
	}
	if len(n.Content) == 0 {
		f.fail(n.Line, name+": the list is empty", "name at least one, or remove the key")
		return
	}
	for i, item := range n.Content {
		each(fmt.Sprintf("%s[%d]", name, i), item)
	}
}

func (f *file) texts(name string, n *yaml.Node) []string {
	var items []string
	leaf := name[strings.LastIndex(name, ".")+1:]
	f.list(name, "write a list: "+leaf+": [one, two]", n, func(name string, item *yaml.Node) {
		var s string
		if f.text(name, item, &s) {
			items = append(items, s)
		}
	})
	return items
}

// pairs takes any scalar as a value: retention.ms is written as a number.
func (f *file) pairs(name string, n *yaml.Node) map[string]string {
	pairs := map[string]string{}
	f.mapping(name, n, func(key, value *yaml.Node) {
		if value.Kind != yaml.ScalarNode || value.ShortTag() == "!!null" {
			f.fail(value.Line, fmt.Sprintf("%s.%s: expected one value, found %s", name, key.Value, found(value)), "write name: value")
			return
		}
		pairs[key.Value] = value.Value
	})
	return pairs
}

func (f *file) tables(name string, n *yaml.Node) []Table {
	var tables []Table
	way := "write a list: tables: [public.outbox_events]"
	f.list(name, way, n, func(name string, item *yaml.Node) {
		var t Table
		if item.Kind == yaml.MappingNode {
			t = f.table(name, item)
		} else {
			t = f.tableName(name, item)
		}
		tables = append(tables, t)
	})
	return tables
}

func (f *file) tableName(name string, n *yaml.Node) Table {
	var text string
	if !f.text(name, n, &text) {
		return Table{}
	}
	t, bad := parseTable(text)
	if bad != nil {
		f.fail(n.Line, name+": "+bad.what, bad.way)
	}
	return t
}

// table reads {name, columns, headers}.
func (f *file) table(name string, n *yaml.Node) Table {
	var t Table
	f.mapping(name, n, func(key, value *yaml.Node) {
		at := name + "." + key.Value
		switch key.Value {
		case "name":
			named := f.tableName(at, value)
			t.Schema, t.Name = named.Schema, named.Name
		case "columns":
			f.columns(at, value, &t.Columns)
		case "headers":
			way := "write a list: headers: [tenant, trace_id]"
			f.list(at, way, value, func(name string, item *yaml.Node) {
				t.Headers = append(t.Headers, f.header(name, item))
			})
		default:
			f.unknownOf(at, key, "name", "columns", "headers")
		}
	})
	if t.Name == "" && !hasKey(n, "name") {
		f.fail(n.Line, name+": the table has no name", "add name: schema.table")
	}
	return t
}

func (f *file) columns(name string, n *yaml.Node, c *Columns) {
	fields := c.fields()
	f.mapping(name, n, func(key, value *yaml.Node) {
		at := name + "." + key.Value
		names := make([]string, len(fields))
		for i, field := range fields {
			if field.name == key.Value {
				f.column(at, value, field.at)
				return
			}
			names[i] = field.name
		}
		f.unknownOf(at, key, names...)
	})
}

// header reads a column's name, or {column, name, required}.
func (f *file) header(name string, n *yaml.Node) Header {
	var h Header
	if n.Kind != yaml.MappingNode {
		f.column(name, n, &h.Column)
		h.Name = h.Column
		return h
	}
	f.mapping(name, n, func(key, value *yaml.Node) {
		at := name + "." + key.Value
		switch key.Value {
		case "column":
			f.column(at, value, &h.Column)
		case "name":
			if f.text(at, value, &h.Name) && h.Name == "" {
				f.fail(value.Line, at+": must not be empty", "give it a name")
			}
		case "required":
			f.value(at, &h.Required, value)
		default:
			f.unknownOf(at, key, "column", "name", "required")
		}
	})
	if !hasKey(n, "column") {
		f.fail(n.Line, name+": the header has no column", "add column: name")
	}
	if h.Name == "" {
		h.Name = h.Column
	}
	return h
}

func (f *file) column(name string, n *yaml.Node, at *string) {
	if !f.text(name, n, at) {
		return
	}
	if bad := checkName(*at); bad != nil {
		f.fail(n.Line, name+": "+bad.what, bad.way)
	}
}

func (f *file) unknownOf(name string, key *yaml.Node, known ...string) {
	way := "keys here: " + strings.Join(known, ", ")
	if s, ok := Closest(key.Value, known); ok {
		way = fmt.Sprintf("did you mean %q?", s)
	}
	f.fail(key.Line, fmt.Sprintf("unknown key %q", name), way)
}

func hasKey(n *yaml.Node, key string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}
