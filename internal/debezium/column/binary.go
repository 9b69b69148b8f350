package column

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"

	"github.com/walpost/walpost/internal/debezium/connect"
)

// buildBinary gives the schema of binary.handling.mode to what read appends.
func (c *codec) buildBinary(convert func(*codec, *Scratch, []byte) (connect.Value, error)) {
	c.schema, c.convert, c.zero = plain(connect.String), convert, zeroText
	if c.binary == binaryBytes {
		c.schema = plain(connect.Bytes)
	}
}

// bytea reads the format hex.
func bytea(c *codec, s *Scratch, text []byte) (connect.Value, error) {
	if len(text) < 2 || text[0] != '\\' || text[1] != 'x' {
		return connect.Value{}, errText
	}
	text = text[2:]
	if c.binary == binaryHex {
		return connect.Value{Valid: true, Bytes: text}, nil // lower case in both
	}
	start := len(s.bytes)
	var err error
	if s.bytes, err = hex.AppendDecode(s.bytes, text); err != nil {
		s.bytes = s.bytes[:start]
		return connect.Value{}, errText
	}
	if c.binary == binaryBytes {
		return s.text(start), nil
	}
	return c.encode(s, s.since(start)), nil
}

// encode is a Value of bytes in the mode.
func (c *codec) encode(s *Scratch, raw []byte) connect.Value {
	start := len(s.bytes)
	switch c.binary {
	case binaryBase64:
		s.bytes = base64.StdEncoding.AppendEncode(s.bytes, raw)
	case binaryBase64URL:
		s.bytes = base64.URLEncoding.AppendEncode(s.bytes, raw)
	case binaryHex:
		s.bytes = hex.AppendEncode(s.bytes, raw)
	default:
		return connect.Value{Valid: true, Bytes: raw}
	}
	return s.text(start)
}

// buildUnknown does include.unknown.datatypes: the text as if it were binary.
func (c *codec) buildUnknown() {
	c.buildBinary(func(c *codec, s *Scratch, text []byte) (connect.Value, error) {
		return c.encode(s, text), nil
	})
}

// buildBits does bit and varbit: a boolean for one bit, else bytes.
func (c *codec) buildBits() {
	if c.size.length <= 1 {
		c.schema, c.convert, c.zero = plain(connect.Boolean), bit, zeroNumber
		return
	}
	c.schema = named(connect.Bytes, nameBits, connect.Parameter{Name: "length", Value: strconv.Itoa(c.size.length)})
	c.convert, c.zero = bits, zeroText
}

func bit(_ *codec, _ *Scratch, text []byte) (connect.Value, error) {
	if len(text) == 0 {
		return connect.Value{}, errLost // Integer.valueOf("")
	}
	v := connect.Value{Valid: true}
	for _, c := range text {
		if c == '1' {
			v.Int = 1
		}
	}
	return v, nil
}

// bits packs the last bit first, and ends with the highest bit that is set.
func bits(_ *codec, s *Scratch, text []byte) (connect.Value, error) {
	for len(text) > 0 && text[0] == '0' {
		text = text[1:]
	}
	start := len(s.bytes)
	for end := len(text); end > 0; end -= 8 {
		var b byte
		for _, c := range text[max(0, end-8):end] {
			b = b<<1 | c&1
		}
		s.bytes = append(s.bytes, b)
	}
	return s.text(start), nil
}
