package connect

import "strconv"

// schemaText is a schema as JsonConverter prints it in front of a value.
type schemaText struct {
	prefix []byte // {"schema":…,"payload":
}

// schemaText returns the text of s, made once per pointer.
func (c *jsonConverter) schemaText(s *Schema) (*schemaText, error) {
	if t := c.text[s]; t != nil {
		return t, nil
	}
	prefix := []byte(`{"schema":`)
	var err error
	if s == nil {
		prefix = append(prefix, "null"...)
	} else if prefix, err = c.appendSchema(prefix, s, "", 1); err != nil {
		return nil, err
	}
	t := &schemaText{prefix: append(prefix, `,"payload":`...)}
	if len(c.text) >= maxSchemas {
		clear(c.text)
	}
	c.text[s] = t
	return t, nil
}

var jsonTypes = [...]string{
	Int8: "int8", Int16: "int16", Int32: "int32", Int64: "int64", Float32: "float", Float64: "double",
	Boolean: "boolean", String: "string", Bytes: "bytes", Array: "array", Map: "map", Struct: "struct",
}

// appendSchema appends the object that describes s, the schema of a field unless
// that is empty, inside depth objects and arrays.
func (c *jsonConverter) appendSchema(dst []byte, s *Schema, field string, depth int) ([]byte, error) {
	if depth >= maxDepth {
		return dst, &Error{Converter: c.w.name, Problem: "more than 1000 levels of nesting in the schema", hint: hintDepth}
	}
	if s == nil || s.Type < Int8 || s.Type > Struct {
		return dst, &Error{Converter: c.w.name, Problem: "could not translate a schema of an unknown type", hint: hintIdentity}
	}
	dst = append(dst, `{"type":"`...)
	dst = append(dst, jsonTypes[s.Type]...)
	dst = append(dst, '"')
	var err error
	switch s.Type {
	case Array:
		dst = append(dst, `,"items":`...)
		dst, err = c.appendSchema(dst, s.Elem, "", depth+1)
	case Map:
		dst = append(dst, `,"keys":`...)
		if dst, err = c.appendSchema(dst, s.Key, "", depth+1); err != nil {
			return dst, err
		}
		dst = append(dst, `,"values":`...)
		dst, err = c.appendSchema(dst, s.Elem, "", depth+1)
	case Struct:
		dst = append(dst, `,"fields":[`...)
		for i, f := range s.Fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = c.appendSchema(dst, f.Schema, f.Name, depth+2); err != nil {
				return dst, err
			}
		}
		dst = append(dst, ']')
	}
	if err != nil {
		return dst, err
	}
	dst = append(dst, `,"optional":`...)
	dst = strconv.AppendBool(dst, s.Optional)
	if s.Name != "" {
		dst = append(dst, `,"name":`...)
		dst = appendQuoted(dst, s.Name)
	}
	if s.Version != nil {
		dst = append(dst, `,"version":`...)
		dst = strconv.AppendInt(dst, int64(*s.Version), 10)
	}
	if s.Doc != "" {
		dst = append(dst, `,"doc":`...)
		dst = appendQuoted(dst, s.Doc)
	}
	if len(s.Parameters) > 0 {
		dst = append(dst, `,"parameters":{`...)
		for i, p := range s.Parameters {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendQuoted(dst, p.Name)
			dst = append(dst, ':')
			dst = appendQuoted(dst, p.Value)
		}
		dst = append(dst, '}')
	}
	if s.Default != nil && s.Default.Valid {
		dst = append(dst, `,"default":`...)
		if dst, err = c.appendJSON(dst, s, *s.Default, depth+1); err != nil {
			return dst, err
		}
	}
	if field != "" {
		dst = append(dst, `,"field":`...)
		dst = appendQuoted(dst, field)
	}
	return append(dst, '}'), nil
}
