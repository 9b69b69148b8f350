package connect

import (
	"errors"
	"strings"
)

// byteArray is Kafka's own ByteArrayConverter.
type byteArray struct{}

// Convert implements Converter.
func (byteArray) Convert(dst []byte, s *Schema, v Value) ([]byte, bool, error) {
	if s != nil && s.Type != Bytes {
		return dst, false, &Error{
			Converter: simpleName(ClassByteArray), hint: hintBytes,
			Problem: "invalid schema type for ByteArrayConverter: " + s.Type.javaName(),
		}
	}
	if !v.Valid {
		return dst, true, nil
	}
	if class := javaClass(s, v); class != byteBufferClass && class != byteArrayClass {
		return dst, false, &Error{
			Converter: simpleName(ClassByteArray), hint: hintBytes,
			Problem: "not compatible with objects of type " + class,
		}
	}
	return append(dst, v.Bytes...), false, nil
}

const (
	byteArrayClass  = "byte[]"
	byteBufferClass = "java.nio.HeapByteBuffer"
)

// javaClass of a value that is not null and whose schema, if any, is of Bytes.
// The connector delivers bytea as a buffer and bit strings as an array.
func javaClass(s *Schema, v Value) string {
	switch {
	case s == nil || v.Text:
		return "java.lang.String"
	case s.Name == NameDecimal:
		return "java.math.BigDecimal"
	case s.Name == bitsName:
		return byteArrayClass
	}
	return byteBufferClass
}

// binary is Debezium's BinaryDataConverter or ByteArrayConverter: bytes as they
// are, all else by the delegate.
type binary struct {
	name     string
	buffers  bool // takes a ByteBuffer, which is what the connector delivers
	delegate Converter
}

func newBinary(class string, role Role, options map[string]string, o Options) (Converter, error) {
	c := binary{name: simpleName(class), buffers: class == ClassDebeziumBinaryData}
	delegate, ok := options[delegateType]
	if !ok || role == RoleHeader {
		// As a header converter the class does not read its options.
		return c, nil
	}
	if delegate == ClassSimpleHeader {
		return nil, &OptionError{
			Role: role, Name: delegateType, Value: delegate, Err: errors.New("not a converter of keys and values"),
			hint: "use " + ClassString + " or " + ClassJSON,
		}
	}
	own := map[string]string{}
	for name, value := range options {
		if rest, ok := strings.CutPrefix(name, delegateType+"."); ok {
			own[rest] = value
		}
	}
	var err error
	if c.delegate, err = New(delegate, role, own, o); err != nil {
		var option *OptionError
		if errors.As(err, &option) {
			if option.Name == "" {
				option.Name = delegateType
			} else {
				option.Name = delegateType + "." + option.Name
			}
		}
		return nil, err
	}
	return c, nil
}

// Convert implements Converter.
func (c binary) Convert(dst []byte, s *Schema, v Value) ([]byte, bool, error) {
	if s == nil || s.Type == Bytes {
		if !v.Valid {
			return dst, true, nil
		}
		switch class := javaClass(s, v); {
		case class == byteArrayClass, class == byteBufferClass && c.buffers:
			return append(dst, v.Bytes...), false, nil
		}
	}
	if c.delegate != nil {
		return c.delegate.Convert(dst, s, v)
	}
	problem := "a string requires a delegate.converter.type"
	if s != nil {
		problem = "a value of type " + s.Type.javaName() + " requires a delegate.converter.type"
		if s.Type == Bytes {
			problem = "a value of class " + javaClass(s, v) + " requires a delegate.converter.type"
		}
	}
	return dst, false, &Error{Converter: c.name, Problem: problem, hint: hintBytes}
}
