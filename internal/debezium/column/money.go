package column

import (
	"math/big"
	"unicode/utf8"

	"github.com/walpost/walpost/internal/debezium/connect"
)

// buildMoney does money, whose scale is the connector's money.fraction.digits.
func (c *codec) buildMoney() {
	c.size.scale = c.money
	switch c.decimal {
	case decimalDouble:
		c.schema, c.convert, c.zero = plain(connect.Float64), money, zeroNumber
	case decimalString:
		c.schema, c.convert, c.zero = plain(connect.String), money, words(zeros(c.money))
	default:
		c.schema, c.convert, c.zero = decimalSchema(c.money, -1), money, words("\x00")
	}
}

func money(c *codec, s *Scratch, text []byte) (connect.Value, error) {
	start := len(s.bytes)
	var ok bool
	if s.bytes, ok = appendAmount(s.bytes, text); !ok {
		s.bytes = s.bytes[:start]
		return connect.Value{}, errMoney
	}
	amount := s.since(start)
	d, ok := parseDecimal(amount)
	if !ok {
		return connect.Value{}, errMoney
	}
	switch c.decimal {
	case decimalDouble:
		return float(amount, 64)
	case decimalString:
		return connect.Value{Valid: true, Bytes: amount}, nil
	}
	missing, ok := d.setScale(c.money)
	if !ok {
		missing = 0
		d = d.halfUp(c.money)
	}
	start = len(s.bytes)
	s.bytes = d.appendUnscaled(s.bytes, missing)
	return s.text(start), nil
}

// appendAmount takes off the parentheses or the sign, one character in front and
// the commas, as Debezium does.
func appendAmount(dst, text []byte) ([]byte, bool) {
	if len(text) == 0 {
		return dst, false
	}
	switch last := len(text) - 1; {
	case text[0] == '-':
		dst, text = append(dst, '-'), text[1:]
	case text[0] == '(' && text[last] == ')':
		dst, text = append(dst, '-'), text[1:last]
	}
	if r, n := utf8.DecodeRune(text); n > 0 && (r < '0' || r > '9') && r != '.' {
		text = text[n:]
	}
	for _, c := range text {
		if c != ',' {
			dst = append(dst, c)
		}
	}
	return dst, true
}

// halfUp rounds to fewer decimals; for money only, whose digits are a setting.
func (d decimal) halfUp(scale int) decimal {
	up := d.fraction[scale] >= '5'
	text := append(append([]byte{}, d.whole...), d.fraction[:scale]...)
	n, _ := new(big.Int).SetString("0"+string(text), 10) // digits only
	if up {
		n.Add(n, big.NewInt(1))
	}
	return decimal{negative: d.negative, whole: n.Append(nil, 10)}
}
