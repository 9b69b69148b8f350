package column

import (
	"bytes"
	"math/big"
	"strconv"

	"github.com/walpost/walpost/internal/debezium/connect"
)

// decimal is the text of a number taken apart: digits × 10^-scale, the point left
// where it is.
type decimal struct {
	negative bool
	whole    []byte
	fraction []byte
}

// parseDecimal reads digits with at most one point, and no exponent, which
// PostgreSQL does not print.
func parseDecimal(text []byte) (d decimal, ok bool) {
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		d.negative, text = text[0] == '-', text[1:]
	}
	d.whole = text
	if i := bytes.IndexByte(text, '.'); i >= 0 {
		d.whole, d.fraction = text[:i], text[i+1:]
	}
	if len(d.whole)+len(d.fraction) == 0 || !digits(d.whole) || !digits(d.fraction) {
		return decimal{}, false
	}
	return d, true
}

func digits(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// setScale drops zeros from the end of the fraction until it has the scale; if it
// is shorter, as many zeros are missing. It never rounds.
func (d *decimal) setScale(scale int) (missing int, ok bool) {
	for len(d.fraction) > scale {
		if d.fraction[len(d.fraction)-1] != '0' {
			return 0, false
		}
		d.fraction = d.fraction[:len(d.fraction)-1]
	}
	return scale - len(d.fraction), true
}

// strip drops all zeros from the end of the fraction.
func (d *decimal) strip() {
	for n := len(d.fraction); n > 0 && d.fraction[n-1] == '0'; n-- {
		d.fraction = d.fraction[:n-1]
	}
}

// int64Digits is how many digits surely fit an int64.
const int64Digits = 18

// appendUnscaled appends the number without its point, with zeros at its end, in
// the two's complement of Java's BigInteger.
func (d *decimal) appendUnscaled(dst []byte, zeros int) []byte {
	if len(d.whole)+len(d.fraction)+zeros <= int64Digits {
		var n int64
		for _, c := range d.whole {
			n = n*10 + int64(c-'0')
		}
		for _, c := range d.fraction {
			n = n*10 + int64(c-'0')
		}
		for range zeros {
			n *= 10
		}
		if d.negative {
			n = -n
		}
		return appendInt64(dst, n)
	}
	text := make([]byte, 0, len(d.whole)+len(d.fraction)+zeros)
	text = append(append(text, d.whole...), d.fraction...)
	for range zeros {
		text = append(text, '0')
	}
	n, _ := new(big.Int).SetString(string(text), 10) // digits only
	return appendBig(dst, n, d.negative)
}

// appendInt64 appends the fewest bytes that hold n, at least one.
func appendInt64(dst []byte, n int64) []byte {
	length := 1
	for m := n; m > 127 || m < -128; m >>= 8 {
		length++
	}
	for i := length - 1; i >= 0; i-- {
		dst = append(dst, byte(n>>(8*i)))
	}
	return dst
}

// appendBig appends magnitude, negated if negative.
func appendBig(dst []byte, magnitude *big.Int, negative bool) []byte {
	if !negative || magnitude.Sign() == 0 {
		if magnitude.BitLen()%8 == 0 {
			dst = append(dst, 0) // the sign needs a bit
		}
		return append(dst, magnitude.Bytes()...)
	}
	// -n is the complement of n-1.
	n := new(big.Int).Sub(magnitude, big.NewInt(1))
	if n.BitLen()%8 == 0 {
		dst = append(dst, 0xff)
	}
	start := len(dst)
	dst = append(dst, n.Bytes()...)
	for i := start; i < len(dst); i++ {
		dst[i] = ^dst[i]
	}
	return dst
}

// decimalSchema is Connect's Decimal; precision is Debezium's addition, -1 for none.
func decimalSchema(scale, precision int) *connect.Schema {
	s := named(connect.Bytes, connect.NameDecimal, connect.Parameter{Name: "scale", Value: strconv.Itoa(scale)})
	if precision >= 0 {
		s.Parameters = append(s.Parameters, connect.Parameter{Name: "connect.decimal.precision", Value: strconv.Itoa(precision)})
	}
	return s
}

// buildNumeric does numeric in all modes; without precision it is a number of its
// own scale.
func (c *codec) buildNumeric() {
	variable := c.size.length == unscaled && c.size.scale == 0
	switch {
	case c.decimal == decimalDouble:
		c.schema, c.convert, c.zero = plain(connect.Float64), numericDouble, zeroNumber
	case c.decimal == decimalString:
		c.schema, c.convert, c.zero = plain(connect.String), numericString, words("0")
		if !variable {
			c.zero = words(zeros(c.size.scale))
		}
	case variable:
		c.schema = named(connect.Struct, nameVariableScale)
		c.schema.Doc = "Variable scaled decimal"
		c.schema.Fields = []connect.Field{{Name: "scale", Schema: plain(connect.Int32)}, {Name: "value", Schema: plain(connect.Bytes)}}
		c.convert = numericVariable
		c.zero = connect.Value{Valid: true, List: []connect.Value{zeroNumber, words("\x00")}}
	default:
		c.schema, c.convert, c.zero = decimalSchema(c.size.scale, c.size.length), numericPrecise, words("\x00")
	}
}

// zeros is zero with a number of decimals.
func zeros(scale int) string {
	if scale == 0 {
		return "0"
	}
	return "0." + string(bytes.Repeat([]byte{'0'}, scale))
}

// special tells NaN and the infinities.
func special(text []byte) (name string, f float64, ok bool) {
	switch string(text) {
	case "NaN":
		return "NAN", nan, true
	case "Infinity":
		return "POSITIVE_INFINITY", inf, true
	case "-Infinity":
		return "NEGATIVE_INFINITY", -inf, true
	}
	return "", 0, false
}

// notDecimal is the error for what is not a plain number.
func notDecimal(text []byte) error {
	if _, _, ok := special(text); ok {
		return errSpecial
	}
	return errText
}

func numericPrecise(c *codec, s *Scratch, text []byte) (connect.Value, error) {
	d, ok := parseDecimal(text)
	if !ok {
		return connect.Value{}, notDecimal(text)
	}
	missing, ok := d.setScale(c.size.scale)
	if !ok {
		return connect.Value{}, errScale
	}
	start := len(s.bytes)
	s.bytes = d.appendUnscaled(s.bytes, missing)
	return s.text(start), nil
}

func numericVariable(_ *codec, s *Scratch, text []byte) (connect.Value, error) {
	d, ok := parseDecimal(text)
	if !ok {
		return connect.Value{}, notDecimal(text)
	}
	d.strip()
	start := len(s.bytes)
	s.bytes = d.appendUnscaled(s.bytes, 0)
	list := s.list(2)
	list[0] = connect.Value{Valid: true, Int: int64(len(d.fraction))}
	list[1] = s.text(start)
	return connect.Value{Valid: true, List: list}, nil
}

func numericDouble(c *codec, _ *Scratch, text []byte) (connect.Value, error) {
	if _, f, ok := special(text); ok {
		return connect.Value{Valid: true, Float: f}, nil
	}
	d, ok := parseDecimal(text)
	if !ok {
		return connect.Value{}, errText
	}
	if c.size.length != unscaled {
		if _, ok = d.setScale(c.size.scale); !ok {
			return connect.Value{}, errScale
		}
	}
	return float(text, 64)
}

func numericString(c *codec, s *Scratch, text []byte) (connect.Value, error) {
	if name, _, ok := special(text); ok {
		start := len(s.bytes)
		s.bytes = append(s.bytes, name...)
		return s.text(start), nil
	}
	d, ok := parseDecimal(text)
	if !ok {
		return connect.Value{}, errText
	}
	if c.size.length == unscaled || len(d.fraction) == c.size.scale {
		return connect.Value{Valid: true, Bytes: text}, nil
	}
	missing, ok := d.setScale(c.size.scale)
	if !ok {
		return connect.Value{}, errScale
	}
	start := len(s.bytes)
	if d.negative {
		s.bytes = append(s.bytes, '-')
	}
	s.bytes = append(s.bytes, d.whole...)
	if c.size.scale > 0 {
		s.bytes = append(append(s.bytes, '.'), d.fraction...)
		for range missing {
			s.bytes = append(s.bytes, '0')
		}
	}
	return s.text(start), nil
}
