package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// dice makes random things of a seed.
type dice struct{ *rand.Rand }

func (d dice) one(in int) bool { return d.IntN(in) == 0 }

func pick[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }

// quote makes a literal of PostgreSQL's.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

var words = []string{
	"", " ", "x", "order-42", "Grüße", "世界", "😀", "a\tb\nc\r", `"quoted" \ back`, "it's", "null", "<a href='x'>&</a>", "\u2028\u2029",
	"\u0001\u001f\u007f", "$1 ${x}", "100%", "{", "[]", "e\u0301", "\U0010FFFF", "0", "-0", "1e5", "NaN", "true",
}

func (d dice) text(longest int) string {
	var b strings.Builder
	for range 1 + d.IntN(3) {
		b.WriteString(pick(d, words...))
	}
	s := []rune(b.String())
	if d.one(8) {
		s = []rune(strings.Repeat("long ", 20+d.IntN(300)))
	}
	return string(s[:min(len(s), longest)])
}

func (d dice) integer(bits int) string {
	shift := 64 - bits
	return fmt.Sprint(pick(d, 0, 1, -1, 99, math.MaxInt64>>shift, math.MinInt64>>shift, d.Int64()>>shift, -d.Int64()>>shift))
}

func (d dice) digits(n int) string {
	var b strings.Builder
	for range n {
		b.WriteByte(byte('0' + d.IntN(10)))
	}
	return b.String()
}

// decimal has at most that many digits before and after the point.
func (d dice) decimal(before, after int) string {
	s := pick(d, "", "-") + pick(d, "0", "1", "10", d.digits(1+d.IntN(before)))
	if after > 0 && !d.one(3) {
		s += "." + d.digits(1+d.IntN(after))
	}
	return s
}

func (d dice) float() string {
	return pick(d, "0", "-0", "1.1", "1e21", "-1e-5", "0.001", "9999999", "1e7", "16777216", "0.1", "3.4028235e38", "1.17549435e-38",
		"NaN", "Infinity", "-Infinity", "123456.789", d.decimal(6, 6), d.decimal(30, 3))
}

func (d dice) uuid() string {
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", d.Uint32(), d.IntN(1<<16), d.IntN(1<<12), d.IntN(1<<12), d.Int64N(1<<48))
}

func (d dice) date() string {
	return pick(d, "2019-03-24", "1970-01-01", "1969-12-31", "2000-02-29", "1900-03-01", "1582-10-04", "1582-10-15", "0001-01-01", "9999-12-31",
		fmt.Sprintf("%04d-%02d-%02d", 1000+d.IntN(2000), 1+d.IntN(12), 1+d.IntN(28)))
}

func (d dice) clock() string {
	return pick(d, "00:00:00", "23:59:59.999999", "20:52:59.123456", "12:00:00.5", "04:05:06.7",
		fmt.Sprintf("%02d:%02d:%02d.%06d", d.IntN(24), d.IntN(60), d.IntN(60), d.IntN(1000000)))
}

func (d dice) zone() string { return pick(d, "+00", "+02", "-05:30", "+14", "-12") }

// jsonValue is JSON text; plain keeps to what can be expanded.
func (d dice) jsonValue(depth int, plain bool) string {
	scalar := func() string {
		s := []string{`"text"`, `""`, `"Grüße 😀"`, `"\u00e9\ud83d\ude00\t\"\\\/"`, "true", "false", "0", "-1", "42", "2147483648", "-9007199254740993", "1.5", "1.50", "4.9", "1e10", "0.0000001"}
		if !plain {
			s = append(s, "null", "12345678901234567890123", "1e400", `"<&>"`)
		}
		return pick(d, s...)
	}
	if depth == 0 {
		return scalar()
	}
	switch d.IntN(4) {
	case 0:
		return scalar()
	case 1:
		if plain {
			return pick(d, "[1, 2, 3]", `["a", "", "b"]`, "[true, false]", "[1.5, 2.5]", "[]", `[[1], [2, 3]]`, `[{"a": 1}, {"a": 2}]`, `["dog", null]`, "[]")
		}
		return "[" + d.jsonValue(depth-1, plain) + ", " + d.jsonValue(depth-1, plain) + "]"
	default:
		return d.jsonObject(depth-1, plain)
	}
}

func (d dice) jsonObject(depth int, plain bool) string {
	var members []string
	for _, name := range []string{"a", "b", "fullName", "with space", "ünï", "a.b", "z9", ""} {
		if plain && name == "" {
			continue
		}
		if d.one(3) {
			v := d.jsonValue(depth, plain)
			if plain && d.one(6) {
				v = "null"
			}
			members = append(members, `"`+name+`": `+v)
		}
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// kind is a column's type and how its values are made, as literals.
type kind struct {
	sql   string
	value func(d dice) string
}

func quoted(f func(d dice) string) func(dice) string {
	return func(d dice) string { return quote(f(d)) }
}

// array makes literals of some values and NULL.
func array(of kind) kind {
	return kind{of.sql + "[]", func(d dice) string {
		var list []string
		for range d.IntN(4) {
			if d.one(4) {
				list = append(list, "null")
			} else {
				list = append(list, of.value(d))
			}
		}
		return "array[" + strings.Join(list, ", ") + "]::" + of.sql + "[]"
	}}
}

func kinds() []kind {
	timestamp := func(d dice) string { return d.date() + " " + d.clock() }
	list := []kind{
		{"smallint", quoted(func(d dice) string { return d.integer(16) })},
		{"integer", quoted(func(d dice) string { return d.integer(32) })},
		{"bigint", quoted(func(d dice) string { return d.integer(64) })},
		{"real", quoted(func(d dice) string {
			return pick(d, "0", "-0", "1.1", "1e21", "0.001", "16777216", "3.4028235e38", "1.4e-45", "NaN", "Infinity", d.decimal(6, 3))
		})},
		{"double precision", quoted(dice.float)},
		{"numeric", quoted(func(d dice) string {
			return pick(d, d.decimal(40, 20), d.decimal(5, 5), "0", "0.00", "1e30", "100", "NaN")
		})},
		{"numeric(10,2)", quoted(func(d dice) string { return pick(d, d.decimal(8, 2), "12.30", "-0.01") })},
		{"numeric(38,10)", quoted(func(d dice) string { return d.decimal(28, 10) })},
		{"numeric(5,0)", quoted(func(d dice) string { return d.decimal(5, 0) })},
		{"money", quoted(func(d dice) string { return pick(d, "12.34", "-0.01", "0", "92233720368547758.07", d.decimal(9, 2)) })},
		{"boolean", quoted(func(d dice) string { return pick(d, "t", "f") })},
		{"text", quoted(func(d dice) string { return d.text(1000) })},
		{"varchar(40)", quoted(func(d dice) string { return d.text(40) })},
		{"char(5)", quoted(func(d dice) string { return d.text(5) })},
		{"uuid", quoted(dice.uuid)},
		{"json", quoted(func(d dice) string { return " " + d.jsonValue(2, false) })},
		{"jsonb", quoted(func(d dice) string { return d.jsonValue(2, false) })},
		{"xml", quoted(func(d dice) string { return "<a>" + pick(d, "", "x", "Grüße", "&lt;") + "</a>" })},
		{"bytea", quoted(func(d dice) string {
			return pick(d, `\x`, `\x00`, `\xdeadbeef`, `\x7b7d`, `\x`+fmt.Sprintf("%016x", d.Uint64()))
		})},
		{"date", quoted(dice.date)},
		{"time", quoted(dice.clock)},
		{"time(3)", quoted(dice.clock)},
		{"timetz", quoted(func(d dice) string { return d.clock() + d.zone() })},
		{"timestamp", quoted(timestamp)},
		{"timestamp(3)", quoted(timestamp)},
		{"timestamp(0)", quoted(timestamp)},
		{"timestamptz", quoted(func(d dice) string { return timestamp(d) + d.zone() })},
		{"timestamptz(3)", quoted(func(d dice) string { return timestamp(d) + d.zone() })},
		{"timestamptz(0)", quoted(func(d dice) string { return timestamp(d) + d.zone() })},
		{"interval", quoted(func(d dice) string {
			return pick(d, "1 year 2 months 3 days 04:05:06.7", "0", "-1 day", "-1 year 3 hours", "100 years", "00:00:00.000001", "1 month -1 day")
		})},
		{"inet", quoted(func(d dice) string { return pick(d, "10.0.0.1/24", "::1", "192.168.1.1") })},
		{"cidr", quoted(func(d dice) string { return pick(d, "10.0.0.0/8", "2001:db8::/32") })},
		{"macaddr", quoted(func(dice) string { return "08:00:2b:01:02:03" })},
		{"int4range", quoted(func(d dice) string { return pick(d, "[1,5)", "empty", "(,3]", "[,]") })},
		{"int8range", quoted(func(d dice) string { return pick(d, "[1,5)", "empty") })},
		{"numrange", quoted(func(d dice) string { return pick(d, "[1.5,2.5]", "(,)") })},
		{"daterange", quoted(func(d dice) string { return pick(d, "[2019-01-01,2019-02-01)", "empty") })},
		{"tsrange", quoted(func(dice) string { return "[2019-01-01 00:00:00,2019-02-01 12:00:00)" })},
		{"tstzrange", quoted(func(dice) string { return "[2019-01-01 00:00:00+00,)" })},
		{"mood", quoted(func(d dice) string { return pick(d, "happy", "sad", "so so", "it's") })},
		{"point", quoted(func(d dice) string { return pick(d, "(1,2)", "(-1.5,1e21)", "(0,0)") })},
		{"bit(1)", quoted(func(d dice) string { return pick(d, "0", "1") })},
		{"bit(4)", quoted(func(d dice) string { return pick(d, "1010", "0000", "1111") })},
		{"bit varying(20)", quoted(func(d dice) string { return pick(d, "1", "1010101010101", "0") })},
		{"oid", quoted(func(d dice) string { return pick(d, "0", "4294967295", "1259") })},
		{"tsvector", quoted(func(d dice) string { return pick(d, "a b", "x:1 y:2", "") })},
		{"name", quoted(func(d dice) string { return d.text(20) })},
	}
	for _, k := range list {
		switch k.sql {
		case "integer", "bigint", "smallint", "text", "boolean", "uuid", "numeric(10,2)", "double precision", "real", "date", "timestamp", "timestamptz",
			"jsonb", "varchar(40)", "inet", "time", "timetz":
			list = append(list, array(k))
		}
	}
	return list
}
