package connect

import (
	"encoding/base64"
	"errors"
	"math"
	"strconv"
	"strings"
)

// maxDepth of nested objects and arrays that Jackson writes.
const maxDepth = 1000

// maxSchemas bounds the cache of schema text; JSON expansion makes schemas from
// what is in the payloads.
const maxSchemas = 1000

// jsonConverter is Connect's JsonConverter.
type jsonConverter struct {
	w           writer
	schemas     bool
	numeric     bool // decimal.format=NUMERIC
	nullDefault bool // replace.null.with.default
	text        map[*Schema]*schemaText
}

func newJSON(role Role, options map[string]string, w writer) (Converter, error) {
	w.name = simpleName(ClassJSON)
	c := &jsonConverter{w: w, text: map[*Schema]*schemaText{}}
	var err error
	if c.schemas, err = boolean(role, options, "schemas.enable", true); err != nil {
		return nil, err
	}
	if c.nullDefault, err = boolean(role, options, "replace.null.with.default", true); err != nil {
		return nil, err
	}
	if size, ok := options["schemas.cache.size"]; ok {
		if _, err := strconv.ParseInt(strings.TrimSpace(size), 10, 32); err != nil {
			return nil, &OptionError{
				Role: role, Name: "schemas.cache.size", Value: size, Err: errors.New("not a whole number"),
				hint: "remove it: it does not change the output",
			}
		}
	}
	format, ok := options["decimal.format"]
	switch strings.ToUpper(format) {
	case "BASE64":
	case "NUMERIC":
		c.numeric = true
	default:
		if ok {
			return nil, &OptionError{
				Role: role, Name: "decimal.format", Value: format, Err: errors.New("neither BASE64 nor NUMERIC"),
				hint: "write BASE64 or NUMERIC",
			}
		}
	}
	return c, nil
}

// Convert implements Converter.
func (c *jsonConverter) Convert(dst []byte, s *Schema, v Value) ([]byte, bool, error) {
	if s == nil && !v.Valid {
		return dst, true, nil
	}
	out, depth := dst, 0
	if c.schemas {
		t, err := c.schemaText(s)
		if err != nil {
			return dst, false, err
		}
		out, depth = append(out, t.prefix...), 1
	}
	out, err := c.appendJSON(out, s, v, depth)
	if err != nil {
		return dst, false, err
	}
	if c.schemas {
		out = append(out, '}')
	}
	return out, false, nil
}

// appendJSON appends a value that stands inside depth objects and arrays.
func (c *jsonConverter) appendJSON(dst []byte, s *Schema, v Value, depth int) ([]byte, error) {
	if !v.Valid {
		return c.appendNull(dst, s, depth)
	}
	if s == nil {
		return appendQuoted(dst, v.Bytes), nil
	}
	if v.Text && s.Type != String {
		return dst, &Error{
			Converter: c.w.name, hint: hintExpand,
			Problem: "invalid type for " + s.Type.javaName() + ": class java.lang.String",
		}
	}
	switch s.Type {
	case String:
		return appendQuoted(dst, v.Bytes), nil
	case Bytes:
		b := v.Bytes
		if s.Name == NameDecimal {
			if c.numeric {
				return c.w.appendDecimal(dst, s, v)
			}
			b = minimal(b)
		}
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, b)
		return append(dst, '"'), nil
	case Float32, Float64:
		if math.IsNaN(v.Float) || math.IsInf(v.Float, 0) {
			dst = append(dst, '"')
			dst, err := c.w.appendScalar(dst, s, v)
			return append(dst, '"'), err
		}
	case Array, Map, Struct:
		if depth >= maxDepth {
			return dst, &Error{Converter: c.w.name, Problem: "more than 1000 levels of nesting", hint: hintDepth}
		}
		switch s.Type {
		case Array:
			return c.appendArray(dst, s, v, depth+1)
		case Map:
			return c.appendMap(dst, s, v, depth+1)
		}
		return c.appendStruct(dst, s, v, depth+1)
	}
	return c.w.appendScalar(dst, s, v)
}

func (c *jsonConverter) appendNull(dst []byte, s *Schema, depth int) ([]byte, error) {
	switch {
	case s == nil:
		return append(dst, "null"...), nil
	case s.Default != nil && s.Default.Valid && c.nullDefault:
		return c.appendJSON(dst, s, *s.Default, depth)
	case s.Optional:
		return append(dst, "null"...), nil
	}
	return dst, &Error{
		Converter: c.w.name, hint: hintNull,
		Problem: "null value for field that is required and has no default value",
	}
}

func (c *jsonConverter) appendArray(dst []byte, s *Schema, v Value, depth int) ([]byte, error) {
	var err error
	dst = append(dst, '[')
	for i, e := range v.List {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = c.appendJSON(dst, s.Elem, e, depth); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

// appendMap writes an object where the keys are strings, else a list of pairs.
func (c *jsonConverter) appendMap(dst []byte, s *Schema, v Value, depth int) ([]byte, error) {
	var err error
	object := s.Key != nil && s.Key.Type == String
	open, middle, end, stop := "[", ",", "]", byte(']')
	if object {
		open, middle, end, stop = "", ":", "", '}'
		dst = append(dst, '{')
	} else {
		dst = append(dst, '[')
		depth++
	}
	for i := 0; i+1 < len(v.List); i += 2 {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, open...)
		if dst, err = c.appendJSON(dst, s.Key, v.List[i], depth); err != nil {
			return dst, err
		}
		dst = append(dst, middle...)
		if dst, err = c.appendJSON(dst, s.Elem, v.List[i+1], depth); err != nil {
			return dst, err
		}
		dst = append(dst, end...)
	}
	return append(dst, stop), nil
}

func (c *jsonConverter) appendStruct(dst []byte, s *Schema, v Value, depth int) ([]byte, error) {
	var err error
	dst = append(dst, '{')
	for i := range s.Fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		f := &s.Fields[i]
		dst = appendQuoted(dst, f.Name)
		dst = append(dst, ':')
		var member Value
		if i < len(v.List) {
			member = v.List[i]
		}
		if dst, err = c.appendJSON(dst, f.Schema, member, depth); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}
