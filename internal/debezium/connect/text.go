package connect

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// writer writes the text of Java objects for one converter.
type writer struct {
	name string // of the converter, in errors
	java int
}

// stringConverter prints what Object.toString prints.
type stringConverter struct{ w writer }

func newString(role Role, options map[string]string, w writer) (Converter, error) {
	w.name = simpleName(ClassString)
	if text, ok := options[encodingOption]; ok && !isUTF8(text) {
		return nil, &OptionError{
			Role: role, Name: encodingOption, Value: text, Err: errors.New("only UTF-8 is supported"),
			hint: "remove it, or write UTF-8",
		}
	}
	return stringConverter{w}, nil
}

// isUTF8 knows the names of UTF-8 in Java.
func isUTF8(charset string) bool {
	switch strings.ToUpper(charset) {
	case "UTF-8", "UTF8", "UNICODE-1-1-UTF-8":
		return true
	}
	return false
}

// Convert implements Converter.
func (c stringConverter) Convert(dst []byte, s *Schema, v Value) ([]byte, bool, error) {
	if !v.Valid {
		return dst, true, nil
	}
	out, err := c.w.appendJava(dst, s, v, false)
	if err != nil {
		return dst, false, err
	}
	return out, false, nil
}

// appendJava appends what String.valueOf prints; array says that bytes are a
// Java array and no buffer.
func (w *writer) appendJava(dst []byte, s *Schema, v Value, array bool) ([]byte, error) {
	if !v.Valid {
		return append(dst, "null"...), nil
	}
	if s == nil || v.Text {
		return appendText(dst, v.Bytes), nil
	}
	switch s.logical() {
	case NameDecimal:
		return w.appendDecimal(dst, s, v)
	case NameDate, NameTime, NameTimestamp:
		return dst, &Error{
			Converter: w.name, Refused: true, hint: hintDate,
			Problem: "prints " + s.Name + " in the time zone of Debezium's JVM",
		}
	}
	switch s.Type {
	case String:
		return appendText(dst, v.Bytes), nil
	case Bytes:
		if array || s.Name == bitsName {
			return dst, &Error{
				Converter: w.name, Refused: true, hint: hintIdentity,
				Problem: "prints the memory address of a byte array, as in [B@1b2c3d",
			}
		}
		n := int64(len(v.Bytes))
		dst = append(dst, "java.nio.HeapByteBuffer[pos=0 lim="...)
		dst = strconv.AppendInt(dst, n, 10)
		dst = append(dst, " cap="...)
		dst = strconv.AppendInt(dst, n, 10)
		return append(dst, ']'), nil
	case Array:
		return w.appendJavaList(dst, s, v)
	case Map:
		return w.appendJavaMap(dst, s, v)
	case Struct:
		return w.appendJavaStruct(dst, s, v)
	}
	return w.appendScalar(dst, s, v)
}

func (w *writer) appendJavaList(dst []byte, s *Schema, v Value) ([]byte, error) {
	var err error
	dst = append(dst, '[')
	for i, e := range v.List {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if dst, err = w.appendJava(dst, s.Elem, e, false); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func (w *writer) appendJavaMap(dst []byte, s *Schema, v Value) ([]byte, error) {
	var err error
	dst = append(dst, '{')
	for i := 0; i+1 < len(v.List); i += 2 {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if dst, err = w.appendJava(dst, s.Key, v.List[i], false); err != nil {
			return dst, err
		}
		dst = append(dst, '=')
		if dst, err = w.appendJava(dst, s.Elem, v.List[i+1], false); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// appendJavaStruct leaves out the members that are null, whatever their default.
func (w *writer) appendJavaStruct(dst []byte, s *Schema, v Value) ([]byte, error) {
	var err error
	array, first := byteArrays(s), true
	dst = append(dst, "Struct{"...)
	for i := range min(len(s.Fields), len(v.List)) {
		if !v.List[i].Valid {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendName(dst, s.Fields[i].Name)
		dst = append(dst, '=')
		if dst, err = w.appendJava(dst, s.Fields[i].Schema, v.List[i], array); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// appendScalar appends numbers and booleans, which look the same to everybody.
func (w *writer) appendScalar(dst []byte, s *Schema, v Value) ([]byte, error) {
	switch s.Type {
	case Int8, Int16, Int32, Int64:
		return strconv.AppendInt(dst, v.Int, 10), nil
	case Boolean:
		return strconv.AppendBool(dst, v.Int != 0), nil
	case Float32:
		return w.appendFloat(dst, v.Float), nil
	case Float64:
		return w.appendDouble(dst, v.Float), nil
	}
	return dst, &Error{Converter: w.name, Problem: "value of an unknown type", hint: hintIdentity}
}

// appendText appends a string as Java encodes it in UTF-8: with a question mark
// for a surrogate that has no pair.
func appendText(dst, text []byte) []byte {
	if utf8.Valid(text) {
		return append(dst, text...)
	}
	for len(text) > 0 {
		if _, ok := surrogate(text); ok {
			dst, text = append(dst, '?'), text[3:]
			continue
		}
		r, n := utf8.DecodeRune(text)
		dst, text = utf8.AppendRune(dst, r), text[n:]
	}
	return dst
}

func appendName(dst []byte, name string) []byte {
	if utf8.ValidString(name) {
		return append(dst, name...)
	}
	return appendText(dst, []byte(name))
}

// surrogate decodes an unpaired surrogate.
func surrogate(b []byte) (uint16, bool) {
	if len(b) < 3 || b[0] != 0xed || b[1] < 0xa0 || b[1] > 0xbf || b[2]&0xc0 != 0x80 {
		return 0, false
	}
	return 0xd000 | uint16(b[1]&0x3f)<<6 | uint16(b[2]&0x3f), true
}
