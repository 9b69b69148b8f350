package column

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"

	"github.com/walpost/walpost/internal/debezium/connect"
)

// buildPoint does PostgreSQL's point.
func (c *codec) buildPoint() {
	c.schema = named(connect.Struct, namePoint)
	c.schema.Doc = "Geometry (POINT)"
	c.schema.Fields = []connect.Field{
		{Name: "x", Schema: plain(connect.Float64)},
		{Name: "y", Schema: plain(connect.Float64)},
		{Name: "wkb", Schema: optional(plain(connect.Bytes))},
		{Name: "srid", Schema: optional(plain(connect.Int32))},
	}
	c.convert = point
	c.zero = connect.Value{Valid: true, List: []connect.Value{
		zeroNumber, zeroNumber, {Valid: true, Bytes: appendWKB(nil, 0, 0)}, {},
	}}
}

func point(_ *codec, s *Scratch, text []byte) (connect.Value, error) {
	text = bytes.TrimSuffix(bytes.TrimPrefix(text, []byte("(")), []byte(")"))
	first, second, _ := bytes.Cut(text, []byte(","))
	x, ok1 := parseFloat(first, 64)
	y, ok2 := parseFloat(second, 64)
	if !ok1 || !ok2 {
		return connect.Value{}, errText
	}
	start := len(s.bytes)
	s.bytes = appendWKB(s.bytes, x, y)
	list := s.list(4)
	list[0] = connect.Value{Valid: true, Float: x}
	list[1] = connect.Value{Valid: true, Float: y}
	list[2] = s.text(start)
	return connect.Value{Valid: true, List: list}, nil
}

// appendWKB appends a point as well-known binary, little-endian.
func appendWKB(dst []byte, x, y float64) []byte {
	dst = append(dst, 1, 1, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint64(dst, javaBits(x))
	return binary.LittleEndian.AppendUint64(dst, javaBits(y))
}

// javaBits has Java's NaN.
func javaBits(f float64) uint64 {
	if math.IsNaN(f) {
		return 0x7ff8000000000000
	}
	return math.Float64bits(f)
}

// buildGeometry does geometry and geography of PostGIS.
func (c *codec) buildGeometry(name string) {
	c.schema = named(connect.Struct, nameGeometry)
	c.schema.Doc = "Geometry"
	if name == "geography" {
		c.schema.Name, c.schema.Doc = nameGeography, "Geography"
	}
	c.schema.Optional = true
	c.schema.Fields = []connect.Field{
		{Name: "wkb", Schema: plain(connect.Bytes)},
		{Name: "srid", Schema: optional(plain(connect.Int32))},
	}
	c.convert = geometry
	empty, _ := hex.DecodeString("010700000000000000") // an empty collection
	c.zero = connect.Value{Valid: true, List: []connect.Value{{Valid: true, Bytes: empty}, {}}}
}

// hasSRID is the flag of extended well-known binary for an SRID after the type.
const hasSRID = 0x20000000

func geometry(_ *codec, s *Scratch, text []byte) (connect.Value, error) {
	start := len(s.bytes)
	var err error
	if s.bytes, err = hex.AppendDecode(s.bytes, text); err != nil || len(s.bytes)-start < 9 {
		s.bytes = s.bytes[:start]
		return connect.Value{}, &problem{classUnexpected, "not the hexadecimal form of PostGIS", hintText}
	}
	wkb := s.text(start)
	order := binary.ByteOrder(binary.BigEndian)
	if wkb.Bytes[0] != 0 {
		order = binary.LittleEndian
	}
	list := s.list(2)
	list[0] = wkb
	if order.Uint32(wkb.Bytes[1:])&hasSRID != 0 {
		list[1] = connect.Value{Valid: true, Int: int64(int32(order.Uint32(wkb.Bytes[5:])))}
	}
	return connect.Value{Valid: true, List: list}, nil
}

// buildShape does the geometric types of include.unknown.datatypes, which come in
// the text of Debezium's driver: PostgreSQL's, with Java's numbers.
func (c *codec) buildShape(javaVersion int) error {
	java, err := connect.New(connect.ClassString, connect.RoleValue, nil, connect.Options{JavaVersion: javaVersion})
	if err != nil {
		return err
	}
	c.java = java
	c.buildBinary(shape)
	return nil
}

var double = plain(connect.Float64)

func shape(c *codec, s *Scratch, text []byte) (connect.Value, error) {
	start := len(s.bytes)
	for len(text) > 0 {
		end := bytes.IndexAny(text, "()[]{}<>,")
		if end < 0 {
			return connect.Value{}, errText
		}
		if end > 0 {
			f, ok := parseFloat(text[:end], 64)
			if !ok {
				return connect.Value{}, errText
			}
			var err error
			if s.bytes, _, err = c.java.Convert(s.bytes, double, connect.Value{Valid: true, Float: f}); err != nil {
				return connect.Value{}, err
			}
		}
		s.bytes = append(s.bytes, text[end])
		text = text[end+1:]
	}
	return c.encode(s, s.since(start)), nil
}
