package column

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"github.com/walpost/walpost/internal/debezium/connect"
)

// A default is a function's if its expression looks like a call; a parenthesis in
// front is allowed.
var call = regexp.MustCompile(`^\(?[A-Za-z0-9_.]+\(.*\)`)

// literal reads the default of a column as Debezium reads it: by patterns, from
// the expression's text. A function is the zero of its type; anything that has a
// string literal is its first literal, and the rest is taken as it is. It is nil
// for what cannot be read, for domains and for types that Debezium does not read
// defaults of.
func (b *builder) literal(c *codec, info *Info) *connect.Value {
	expr := info.Default
	// The scratch belongs to the schema from now on.
	s := &Scratch{}
	v, err := defaultOf(c, s, &info.Type, expr)
	if err != nil || !v.Valid {
		return nil
	}
	return &v
}

var errNoDefault = &problem{classLost, "not a default that Debezium reads", ""}

// defaultOf has a case for each type that Debezium reads defaults of.
func defaultOf(c *codec, s *Scratch, t *TypeInfo, expr string) (connect.Value, error) {
	if t.Base != nil {
		return connect.Value{}, errNoDefault
	}
	if t.Kind == 'e' {
		return enumDefault(t.Name, expr)
	}
	trimmed := strings.TrimSpace(expr)
	isNull := strings.HasPrefix(trimmed, "NULL::")
	switch t.OID {
	case oidText, oidVarchar, oidBpchar, oidXML:
		return textDefault(expr, "")
	case oidJSON, oidJSONB:
		return textDefault(expr, "{}")
	case oidUUID:
		return uuidDefault(trimmed)
	case oidBool:
		if isNull {
			return connect.Value{}, nil
		}
		text, _, _ := extract(trimmed, "false")
		v := connect.Value{Valid: true}
		if strings.EqualFold(text, "true") {
			v.Int = 1
		}
		return v, nil
	case oidInt2, oidInt4, oidInt8, oidFloat4, oidFloat8, oidNumeric:
		if isNull {
			return connect.Value{}, nil
		}
		return numberDefault(c, s, t.OID, trimmed)
	case oidBit, oidVarbit:
		return bitsDefault(c, s, t.OID, trimmed)
	case oidDate, oidTime, oidTimestamp, oidTimestamptz, oidInterval:
		return timeDefault(c, s, t.OID, trimmed)
	}
	return connect.Value{}, errNoDefault
}

// extract returns the default's text; null is for NULL::type, and ok is false if
// it has quotes but no literal within one line.
func extract(expr, placeholder string) (text string, null, ok bool) {
	switch strings.ToLower(expr) {
	case "current_timestamp", "current_time", "current_date", "localtime", "localtimestamp":
		return placeholder, false, true
	}
	if call.MatchString(expr) {
		return placeholder, false, true
	}
	if !strings.Contains(expr, "'") {
		return expr, strings.HasPrefix(expr, "NULL::"), true
	}
	// Java's dot stops at the end of a line; the next quote may then begin one.
	for rest := expr; ; {
		start := strings.IndexByte(rest, '\'')
		if start < 0 {
			return "", false, false
		}
		rest = rest[start+1:]
		end := strings.IndexByte(rest, '\'')
		if end >= 0 && !strings.ContainsAny(rest[:end], "\n\r\u0085\u2028\u2029") {
			return rest[:end], false, true
		}
	}
}

func textDefault(expr, placeholder string) (connect.Value, error) {
	text, null, ok := extract(expr, placeholder)
	if !ok || null {
		return connect.Value{}, errNoDefault
	}
	return words(text), nil
}

func uuidDefault(expr string) (connect.Value, error) {
	text, null, ok := extract(expr, "00000000-0000-0000-0000-000000000000")
	if !ok || null || len(text) != 36 {
		return connect.Value{}, errNoDefault
	}
	for i, c := range []byte(text) {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') || !dash && hexDigit(c) < 0 {
			return connect.Value{}, errNoDefault
		}
	}
	return words(strings.ToLower(text)), nil
}

func hexDigit(c byte) int { return strings.IndexByte("0123456789abcdef", c|0x20) }

func numberDefault(c *codec, s *Scratch, oid uint32, expr string) (connect.Value, error) {
	placeholder, size := "0", 0
	switch oid {
	case oidInt2:
		size = 16
	case oidInt4:
		size = 32
	case oidInt8:
		size = 64
	default:
		placeholder = "0.0"
	}
	text, _, ok := extract(expr, placeholder)
	if !ok {
		return connect.Value{}, errNoDefault
	}
	if size > 0 {
		n, err := strconv.ParseInt(text, 10, size)
		return connect.Value{Valid: true, Int: n}, err
	}
	if oid == oidNumeric {
		if _, ok := parseDecimal([]byte(text)); !ok {
			return connect.Value{}, errNoDefault
		}
		if c.schema.Type == connect.Struct {
			// Connect cannot hold a struct as a default.
			return connect.Value{}, errNoDefault
		}
	}
	return c.convert(c, s, []byte(text))
}

// bitsDefault: a single digit is a boolean on the way, which bit strings hold as
// a byte; a call is "00" or, of varbit, "0".
func bitsDefault(c *codec, s *Scratch, oid uint32, expr string) (connect.Value, error) {
	placeholder := "00"
	if oid == oidVarbit {
		placeholder = "0"
	}
	text, null, ok := extract(expr, placeholder)
	if !ok || null || strings.Trim(text, "01") != "" {
		return connect.Value{}, errNoDefault
	}
	if oid == oidBit && len(text) == 1 && c.schema.Type == connect.Bytes {
		return connect.Value{Valid: true, Bytes: []byte{text[0] & 1}}, nil
	}
	return c.convert(c, s, []byte(text))
}

// enumDefault takes the text before a cast to the type, and only that.
func enumDefault(name, expr string) (connect.Value, error) {
	i := strings.LastIndex(expr, "::")
	if i < 0 || lastName(expr[i+2:]) != name {
		return connect.Value{}, errNoDefault
	}
	value := expr[:i]
	if len(value) < 2 || value[0] != '\'' || value[len(value)-1] != '\'' {
		return connect.Value{}, errNoDefault
	}
	return words(value[1 : len(value)-1]), nil
}

// lastName is the last part of a name that may be quoted and qualified.
func lastName(text string) string {
	var parts []string
	var part strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' && quoted && i+1 < len(text) && text[i+1] == '"':
			part.WriteByte('"')
			i++
		case c == '"':
			quoted = !quoted
		case c == '.' && !quoted:
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(c)
		}
	}
	parts = append(parts, part.String())
	return parts[min(1, len(parts)-1)]
}

// The ends of Java's calendar, which stand for infinity in defaults.
const (
	lastDay  = 365241780471
	firstDay = -365243219162
)

func timeDefault(c *codec, s *Scratch, oid uint32, expr string) (connect.Value, error) {
	placeholder := "1970-01-01"
	switch oid {
	case oidTime:
		placeholder = "00:00"
	case oidInterval:
		placeholder = "epoch"
	}
	word, null, ok := extract(expr, placeholder)
	if null && oid == oidInterval {
		return c.convert(c, s, nil) // an interval of nothing
	}
	if !ok || null {
		return connect.Value{}, errNoDefault
	}
	text := []byte(word)
	switch oid {
	case oidInterval:
		return c.convert(c, s, text)
	case oidTime:
		return c.timeDefault(s, text)
	}
	sign := infinite(text)
	day, nanos := int64(lastDay), int64(nanosPerDay-1)
	if sign < 0 {
		day, nanos = firstDay, 0
	}
	offset := int64(0)
	if sign == 0 {
		if day, nanos, offset, ok = parseAny(text); !ok {
			return connect.Value{}, errNoDefault
		}
	}
	switch {
	case oid == oidDate:
		return c.days(s, day)
	case oid == oidTimestamp:
		return c.instant(s, at(day, nanos))
	case sign != 0:
		return connect.Value{}, errNoDefault // not a year in UTC any more
	}
	t := at(day, nanos)
	t.seconds -= offset
	start := len(s.bytes)
	s.bytes = appendInstant(s.bytes, t, c.size.scale)
	return s.text(start), nil
}

// timeDefault has the end of the day a nanosecond earlier.
func (c *codec) timeDefault(s *Scratch, text []byte) (connect.Value, error) {
	if len(text) == len("00:00") {
		text = append(text, ":00"...)
	}
	r := read(text)
	nanos := r.clock()
	switch {
	case !r.end(), nanos == nanosPerDay && string(text) != "24:00:00":
		return connect.Value{}, errNoDefault
	case nanos == nanosPerDay:
		nanos--
	}
	return c.clock(s, nanos)
}

// parseAny reads a date with or without a time, time zone and era.
func parseAny(text []byte) (day, nanos, offset int64, ok bool) {
	r := read(text)
	year, month, dayOfMonth := r.date()
	if len(r.text) > 1 && r.text[0] == ' ' && '0' <= r.text[1] && r.text[1] <= '9' {
		r.need(' ')
		nanos = r.clock()
		if len(r.text) > 0 && bytes.IndexByte([]byte("+-"), r.text[0]) >= 0 {
			offset, _ = r.offset()
		}
	}
	year = r.year(year)
	return daysOf(year, month, dayOfMonth), nanos, offset, r.end()
}
