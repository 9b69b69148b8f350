package column

import (
	"strconv"
	"strings"

	"github.com/walpost/walpost/internal/debezium/connect"
)

// codec converts the text of one type.
type codec struct {
	schema  *connect.Schema
	convert func(c *codec, s *Scratch, text []byte) (connect.Value, error)
	// zero stands for null in a column that is NOT NULL.
	zero connect.Value
	size size
	modes
	elem *codec
	// nested is what an array of the type has in place of an array in it.
	nested *problem
	// noNull: a null in an array loses the array.
	noNull bool
	// delimiter of the elements of an array.
	delimiter byte
	// java prints doubles.
	java connect.Converter
}

// builder builds the codecs of one column.
type builder struct {
	modes
	size
	java    int
	element bool // inside an array, where the driver reads values, not Debezium
}

// The names of Debezium's semantic types.
const (
	nameUUID           = "io.debezium.data.Uuid"
	nameJSON           = "io.debezium.data.Json"
	nameXML            = "io.debezium.data.Xml"
	nameEnum           = "io.debezium.data.Enum"
	nameBits           = "io.debezium.data.Bits"
	nameTsvector       = "io.debezium.data.Tsvector"
	nameLtree          = "io.debezium.data.Ltree"
	nameVariableScale  = "io.debezium.data.VariableScaleDecimal"
	nameDoubleVector   = "io.debezium.data.DoubleVector"
	nameFloatVector    = "io.debezium.data.FloatVector"
	nameSparseVector   = "io.debezium.data.SparseDoubleVector"
	namePoint          = "io.debezium.data.geometry.Point"
	nameGeometry       = "io.debezium.data.geometry.Geometry"
	nameGeography      = "io.debezium.data.geometry.Geography"
	nameDate           = "io.debezium.time.Date"
	nameTime           = "io.debezium.time.Time"
	nameMicroTime      = "io.debezium.time.MicroTime"
	nameNanoTime       = "io.debezium.time.NanoTime"
	nameTimestamp      = "io.debezium.time.Timestamp"
	nameMicroTimestamp = "io.debezium.time.MicroTimestamp"
	nameNanoTimestamp  = "io.debezium.time.NanoTimestamp"
	nameISODate        = "io.debezium.time.IsoDate"
	nameISOTime        = "io.debezium.time.IsoTime"
	nameISOTimestamp   = "io.debezium.time.IsoTimestamp"
	nameZonedTime      = "io.debezium.time.ZonedTime"
	nameZonedTimestamp = "io.debezium.time.ZonedTimestamp"
	nameMicroDuration  = "io.debezium.time.MicroDuration"
	nameInterval       = "io.debezium.time.Interval"
)

var (
	zeroNumber = connect.Value{Valid: true}
	zeroText   = connect.Value{Valid: true, Bytes: []byte{}}
)

func words(s string) connect.Value { return connect.Value{Valid: true, Bytes: []byte(s)} }

// plain is a schema without a name.
func plain(t connect.Type) *connect.Schema { return &connect.Schema{Type: t} }

// named is one of the semantic types, all of which have version 1.
func named(t connect.Type, name string, parameters ...connect.Parameter) *connect.Schema {
	version := int32(1)
	return &connect.Schema{Type: t, Name: name, Version: &version, Parameters: parameters}
}

func optional(s *connect.Schema) *connect.Schema {
	o := *s
	o.Optional = true
	return &o
}

// build returns nil for a type that is left out.
func (b *builder) build(t *TypeInfo) (*codec, error) {
	c := &codec{modes: b.modes, size: b.size, nested: errDimension}
	if t.Elem != nil {
		return b.buildArray(c, t)
	}
	if b.buildText(c, t) || b.buildNumber(c, t) || b.buildTime(c, t) || b.buildOther(c, t) || b.buildExtension(c, t) {
		return c, nil
	}
	if !b.unknown {
		return nil, nil
	}
	switch t.OID {
	case oidBox, oidLseg, oidPath, oidPolygon, oidCircle, oidLine:
		return c, c.buildShape(b.java)
	}
	c.buildUnknown()
	return c, nil
}

// buildText does all types whose text is passed on.
func (b *builder) buildText(c *codec, t *TypeInfo) bool {
	c.convert, c.zero, c.nested = pass, zeroText, errAddress
	switch t.OID {
	case oidText, oidVarchar, oidBpchar, oidName, oidChar, oidInet, oidCIDR, oidMacaddr, oidMacaddr8,
		oidInt4range, oidInt8range, oidNumrange, oidTsrange, oidTstzrange, oidDaterange:
		c.schema = plain(connect.String)
	case oidUUID:
		c.schema = named(connect.String, nameUUID)
	case oidJSON, oidJSONB:
		c.schema = named(connect.String, nameJSON)
	case oidXML:
		c.schema = named(connect.String, nameXML)
	case oidTsvector:
		c.schema = named(connect.String, nameTsvector)
	default:
		if t.Kind != 'e' {
			return false
		}
		c.schema = named(connect.String, nameEnum, connect.Parameter{Name: "allowed", Value: strings.Join(t.Labels, ",")})
	}
	return true
}

// buildNumber does numbers and booleans.
func (b *builder) buildNumber(c *codec, t *TypeInfo) bool {
	c.zero, c.nested = zeroNumber, errDimension
	switch t.OID {
	case oidBool:
		c.schema, c.convert = plain(connect.Boolean), boolean
	case oidInt2:
		c.schema, c.convert = plain(connect.Int16), integer
	case oidInt4:
		c.schema, c.convert = plain(connect.Int32), integer
	case oidInt8, oidOID:
		c.schema, c.convert = plain(connect.Int64), integer
	case oidFloat4:
		c.schema, c.convert = plain(connect.Float32), float32s
	case oidFloat8:
		c.schema, c.convert = plain(connect.Float64), float64s
	case oidNumeric:
		c.buildNumeric()
		if b.element {
			c.driverNumeric()
		}
	case oidMoney:
		c.buildMoney()
	default:
		return false
	}
	return true
}

// buildOther does the built-in types that are left.
func (b *builder) buildOther(c *codec, t *TypeInfo) bool {
	switch t.OID {
	case oidBytea:
		c.buildBinary(bytea)
	case oidBit, oidVarbit:
		c.buildBits()
	case oidPoint:
		c.buildPoint()
	default:
		return false
	}
	return true
}

// buildExtension does the types of extensions, which Debezium knows by name.
func (b *builder) buildExtension(c *codec, t *TypeInfo) bool {
	switch t.Name {
	case "citext", "isbn":
		c.schema, c.convert, c.zero = plain(connect.String), pass, zeroText
	case "ltree":
		c.schema, c.convert, c.zero, c.nested = named(connect.String, nameLtree), pass, zeroText, errAddress
		c.noNull = true
	case "hstore":
		c.buildHStore()
	case "geometry", "geography":
		c.buildGeometry(t.Name)
	case "vector", "halfvec":
		c.buildVector(t.Name)
	case "sparsevec":
		c.buildSparse()
	default:
		return false
	}
	return true
}

// pass passes text on.
func pass(_ *codec, _ *Scratch, text []byte) (connect.Value, error) {
	return connect.Value{Valid: true, Bytes: text}, nil
}

func boolean(_ *codec, _ *Scratch, text []byte) (connect.Value, error) {
	v := connect.Value{Valid: true}
	if len(text) == 1 && text[0]|0x20 == 't' {
		v.Int = 1
	}
	return v, nil
}

func integer(_ *codec, _ *Scratch, text []byte) (connect.Value, error) {
	n, ok := parseInt(text)
	if !ok {
		return connect.Value{}, errText
	}
	return connect.Value{Valid: true, Int: n}, nil
}

func float32s(_ *codec, _ *Scratch, text []byte) (connect.Value, error) {
	return float(text, 32)
}

func float64s(_ *codec, _ *Scratch, text []byte) (connect.Value, error) {
	return float(text, 64)
}

func float(text []byte, bits int) (connect.Value, error) {
	f, ok := parseFloat(text, bits)
	if !ok {
		return connect.Value{}, errText
	}
	return connect.Value{Valid: true, Float: f}, nil
}

// parseFloat reads a number as Java does, which rounds what is too large to
// infinity.
func parseFloat(text []byte, bits int) (float64, bool) {
	f, err := strconv.ParseFloat(string(text), bits)
	if err != nil {
		e, ok := err.(*strconv.NumError)
		return f, ok && e.Err == strconv.ErrRange
	}
	return f, true
}

// parseInt reads a decimal int64.
func parseInt(text []byte) (int64, bool) {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	if len(text) == 0 || len(text) > 19 {
		return 0, false
	}
	var n uint64
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	if negative {
		return -int64(n), n <= 1<<63
	}
	return int64(n), n < 1<<63
}
