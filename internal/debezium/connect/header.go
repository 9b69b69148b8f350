package connect

import (
	"encoding/base64"
	"time"
)

// simpleHeader is Connect's SimpleHeaderConverter: Values.convertToString.
type simpleHeader struct{ w writer }

// Convert implements Converter.
func (c simpleHeader) Convert(dst []byte, s *Schema, v Value) ([]byte, bool, error) {
	if !v.Valid {
		return dst, true, nil
	}
	w := c.w
	w.name = simpleName(ClassSimpleHeader)
	out, err := w.appendHeader(dst, s, v, false)
	if err != nil {
		return dst, false, err
	}
	return out, false, nil
}

// appendHeader appends a value; embedded ones quote their strings.
func (w *writer) appendHeader(dst []byte, s *Schema, v Value, embedded bool) ([]byte, error) {
	if !v.Valid {
		return append(dst, "null"...), nil
	}
	if s == nil || v.Text {
		return appendHeaderText(dst, v.Bytes, embedded), nil
	}
	switch s.logical() {
	case NameDecimal:
		return w.appendDecimal(dst, s, v)
	case NameDate:
		return appendTime(dst, time.Unix(v.Int*secondsPerDay, 0)), nil
	case NameTime, NameTimestamp:
		return appendTime(dst, time.UnixMilli(v.Int)), nil
	}
	switch s.Type {
	case String:
		return appendHeaderText(dst, v.Bytes, embedded), nil
	case Bytes:
		if !embedded {
			return base64.StdEncoding.AppendEncode(dst, v.Bytes), nil
		}
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, v.Bytes)
		return append(dst, '"'), nil
	case Array:
		return w.appendHeaderList(dst, s, v)
	case Map:
		return w.appendHeaderMap(dst, s, v)
	case Struct:
		return w.appendHeaderStruct(dst, s, v)
	}
	return w.appendScalar(dst, s, v)
}

func (w *writer) appendHeaderList(dst []byte, s *Schema, v Value) ([]byte, error) {
	var err error
	dst = append(dst, '[')
	for i, e := range v.List {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = w.appendHeader(dst, s.Elem, e, true); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func (w *writer) appendHeaderMap(dst []byte, s *Schema, v Value) ([]byte, error) {
	var err error
	dst = append(dst, '{')
	for i := 0; i+1 < len(v.List); i += 2 {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = w.appendHeader(dst, s.Key, v.List[i], true); err != nil {
			return dst, err
		}
		dst = append(dst, ':')
		if dst, err = w.appendHeader(dst, s.Elem, v.List[i+1], true); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func (w *writer) appendHeaderStruct(dst []byte, s *Schema, v Value) ([]byte, error) {
	var err error
	dst = append(dst, '{')
	for i := range s.Fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		f := &s.Fields[i]
		dst = appendHeaderText(dst, []byte(f.Name), true)
		dst = append(dst, ':')
		var member Value
		if i < len(v.List) {
			member = v.List[i]
		}
		if dst, err = w.appendHeader(dst, f.Schema, Default(f.Schema, member), true); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// appendHeaderText escapes backslashes and quotes only.
func appendHeaderText(dst, text []byte, embedded bool) []byte {
	if !embedded {
		return appendText(dst, text)
	}
	dst = append(dst, '"')
	start := 0
	for i, c := range text {
		if c == '"' || c == '\\' {
			dst = appendText(dst, text[start:i])
			dst = append(dst, '\\')
			start = i
		}
	}
	dst = appendText(dst, text[start:])
	return append(dst, '"')
}

const secondsPerDay = 24 * 60 * 60

// appendTime takes its format from the value, not from the schema: a time of day
// before the second day of 1970, a date at midnight, else both.
func appendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	switch ms := t.UnixMilli(); {
	case ms < secondsPerDay*1000:
		return t.AppendFormat(dst, "15:04:05.000Z")
	case ms%(secondsPerDay*1000) == 0:
		return t.AppendFormat(dst, "2006-01-02")
	}
	return t.AppendFormat(dst, "2006-01-02T15:04:05.000Z")
}
