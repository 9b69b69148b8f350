package connect

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"testing"
)

// jsonField is one of Connect's schemas as its JsonConverter prints it.
type jsonField struct {
	Type       string          `json:"type"`
	Optional   bool            `json:"optional"`
	Name       string          `json:"name"`
	Version    *int32          `json:"version"`
	Doc        string          `json:"doc"`
	Parameters json.RawMessage `json:"parameters"`
	Default    json.RawMessage `json:"default"`
	Fields     []jsonField     `json:"fields"`
	Items      *jsonField      `json:"items"`
	Keys       *jsonField      `json:"keys"`
	Values     *jsonField      `json:"values"`
	Field      string          `json:"field"`
}

func (f *jsonField) schema(t *testing.T) *Schema {
	t.Helper()
	if f == nil {
		return nil
	}
	s := &Schema{Optional: f.Optional, Name: f.Name, Version: f.Version, Doc: f.Doc}
	for i, name := range jsonTypes {
		if name == f.Type && name != "" {
			s.Type = Type(i)
		}
	}
	s.Elem = f.Items.schema(t)
	if f.Values != nil {
		s.Key, s.Elem = f.Keys.schema(t), f.Values.schema(t)
	}
	for i := range f.Fields {
		s.Fields = append(s.Fields, Field{f.Fields[i].Field, f.Fields[i].schema(t)})
	}
	if f.Parameters != nil {
		s.Parameters = parameters(t, f.Parameters)
	}
	if f.Default != nil {
		v := value(t, s, f.Default)
		s.Default = &v
	}
	return s
}

// parameters keeps the order of the object.
func parameters(t *testing.T, text []byte) (list []Parameter) {
	t.Helper()
	var object map[string]string
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"scale", "connect.decimal.precision", "length", "allowed"} {
		if value, ok := object[name]; ok {
			list = append(list, Parameter{name, value})
		}
	}
	return list
}

// value reads a value of s: floats as text, bytes in base64, structs as lists in
// the order of the fields, maps as lists of pairs.
func value(t *testing.T, s *Schema, text []byte) Value {
	t.Helper()
	if string(text) == "null" {
		return Value{}
	}
	v := Value{Valid: true}
	read := func(to any) {
		t.Helper()
		if err := json.Unmarshal(text, to); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	var str string
	var list []json.RawMessage
	if s == nil {
		read(&str)
		v.Bytes = []byte(str)
		return v
	}
	switch s.Type {
	case Int8, Int16, Int32, Int64:
		read(&v.Int)
	case Boolean:
		if string(text) == "true" {
			v.Int = 1
		}
	case Float32, Float64:
		if text[0] != '"' {
			text = []byte(strconv.Quote(string(text)))
		}
		read(&str)
		f, err := strconv.ParseFloat(str, 64)
		if err != nil {
			t.Fatal(err)
		}
		v.Float = f
	case String:
		read(&str)
		v.Bytes = []byte(str)
	case Bytes:
		read(&str)
		b, err := base64.StdEncoding.DecodeString(str)
		if err != nil {
			t.Fatal(err)
		}
		v.Bytes = b
	case Array:
		read(&list)
		for _, e := range list {
			v.List = append(v.List, value(t, s.Elem, e))
		}
	case Map:
		var pairs [][2]json.RawMessage
		read(&pairs)
		for _, p := range pairs {
			v.List = append(v.List, value(t, s.Key, p[0]), value(t, s.Elem, p[1]))
		}
	case Struct:
		read(&list)
		for i, e := range list {
			v.List = append(v.List, value(t, s.Fields[i].Schema, e))
		}
	}
	return v
}
