package column_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/walpost/walpost/internal/debezium/column"
)

// FuzzValue: no text makes it panic, run away or touch its input.
func FuzzValue(f *testing.F) {
	infos := []column.Info{
		int4, text, numeric102, timestampTZ, timestamp, timetz, bytea, money, builtin("numeric", 1700, -1),
		builtin("float4", 700, -1), builtin("date", 1082, -1), builtin("time", 1083, 3), builtin("interval", 1186, -1),
		builtin("point", 600, -1), builtin("bit", 1560, 4), builtin("varbit", 1562, -1), builtin("hstore", 99999, -1),
		builtin("vector", 99999, -1), builtin("sparsevec", 99999, -1), builtin("geometry", 99999, -1),
		arrayOf(text), arrayOf(int4), arrayOf(timestamp), arrayOf(timestampTZ), arrayOf(timetz), arrayOf(builtin("date", 1082, -1)),
		arrayOf(numeric102), arrayOf(bytea), arrayOf(builtin("hstore", 99999, -1)),
	}
	var columns []*column.Column
	for _, m := range []column.Modes{
		{MoneyDigits: 2},
		{Binary: "base64", Decimal: "string", Time: "isostring", HStore: "map", Interval: "string"},
		{Decimal: "double", Time: "nanoseconds", Binary: "hex"},
	} {
		for _, info := range infos {
			columns = append(columns, make1(f, info, m))
		}
	}
	for _, seed := range []string{
		"1", "-12.340", "NaN", "infinity", "2019-03-24 20:52:59.123456+02 BC", "24:00:00", "1 year -04:05:06.7",
		`{1,NULL,{2},"a\"b"}`, "[0:1]={1,2}", `"a"=>"b", "c"=>NULL`, "(1,2)", `\xdead`, "1010", "{1:2}/3", "[1,2]", "$1,2.3",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		before := bytes.Clone(in)
		s := &column.Scratch{}
		for _, c := range columns {
			v, err := c.Value(s, in, false)
			if err != nil && v.Valid {
				t.Errorf("%v, and a value", err)
			}
			if math.IsNaN(v.Float) && !bytes.ContainsAny(in, "nN") {
				t.Errorf("NaN of %q", in)
			}
		}
		if !bytes.Equal(before, in) {
			t.Errorf("%q became %q", before, in)
		}
	})
}

// FuzzDefault: no expression makes New panic, and what it finds is of the type.
func FuzzDefault(f *testing.F) {
	enum := builtin("mood", 99999, -1)
	enum.Type.Kind, enum.Type.Labels = 'e', []string{"happy"}
	infos := []column.Info{
		text, int4, numeric102, timestamp, timestampTZ, enum, builtin("bool", 16, -1), builtin("jsonb", 3802, -1),
		builtin("uuid", 2950, -1), builtin("date", 1082, -1), builtin("time", 1083, -1), builtin("interval", 1186, -1),
		builtin("bit", 1560, 4), builtin("varbit", 1562, 1), builtin("float8", 701, -1),
	}
	for _, seed := range []string{
		"now()", "'x'::text", "'{}'::jsonb", "NULL::text", "B'1'::\"bit\"", "'happy'::\"S\".mood", "(1 + 2)",
		"'infinity'::timestamp without time zone", "'2020-01-02 03:04:05+00'::timestamp with time zone", "'1 day'::interval", "'24:00:00'::time",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		for _, info := range infos {
			info.HasDefault, info.Default = true, expr
			c := make1(t, info, column.Modes{})
			if c.Schema.Default != nil && !c.Schema.Default.Valid {
				t.Errorf("%s: the default of %q is null", info.Type.Name, expr)
			}
		}
	})
}
