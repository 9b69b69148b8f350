package column_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/walpost/walpost/internal/debezium/column"
	"github.com/walpost/walpost/internal/debezium/connect"
)

// builtin is a nullable column of a built-in type.
func builtin(name string, oid uint32, mod int32) column.Info {
	return column.Info{Name: "c", TypeOID: oid, TypeMod: mod, Type: column.TypeInfo{OID: oid, Name: name, Kind: 'b', TypMod: -1}}
}

func arrayOf(elem column.Info) column.Info {
	elem.Type = column.TypeInfo{OID: 1, Name: "_" + elem.Type.Name, Kind: 'b', TypMod: -1, Elem: &column.TypeInfo{OID: elem.Type.OID, Name: elem.Type.Name, Kind: elem.Type.Kind, TypMod: -1}}
	elem.TypeOID = 1
	return elem
}

func make1(t testing.TB, info column.Info, m column.Modes) *column.Column {
	t.Helper()
	c, err := column.New(info, m)
	if err != nil {
		t.Fatal(err)
	}
	if c == nil {
		t.Fatalf("%s: left out", info.Type.Name)
	}
	return c
}

var (
	int4        = builtin("int4", 23, -1)
	text        = builtin("text", 25, -1)
	name        = builtin("name", 19, -1)
	numeric102  = builtin("numeric", 1700, 10<<16+2+4)
	timestampTZ = builtin("timestamptz", 1184, -1)
	timestamp   = builtin("timestamp", 1114, -1)
	timetz      = builtin("timetz", 1266, -1)
	bytea       = builtin("bytea", 17, -1)
	money       = builtin("money", 790, -1)
)

// A plain value costs nothing beyond the text it came in.
func TestValueDoesNotAllocate(t *testing.T) {
	// Not parallel: AllocsPerRun counts for the whole process.
	for _, test := range []struct {
		info column.Info
		text string
	}{
		{int4, "-2147483648"},
		{text, "a text that is passed on"},
		{numeric102, "123456789.25"},
		{builtin("numeric", 1700, -1), "12.340"},
		{builtin("uuid", 2950, -1), "59a42efd-b015-44a9-9dde-cb36d9002425"},
		{builtin("jsonb", 3802, -1), `{"a": 1}`},
		{builtin("float8", 701, -1), "0.1"},
		{builtin("bool", 16, -1), "t"},
		{timestamp, "2019-03-24 20:52:59.123456"},
		{timestampTZ, "2019-03-24 20:52:59.123456+00"},
		{builtin("date", 1082, -1), "2019-03-24"},
		{builtin("interval", 1186, -1), "1 year 2 mons 3 days 04:05:06.7"},
		{bytea, `\xdeadbeef`},
		{arrayOf(int4), "{1,2,NULL}"},
		{arrayOf(text), `{a,"b \" c",NULL}`},
	} {
		c := make1(t, test.info, column.Modes{})
		s := &column.Scratch{}
		in := []byte(test.text)
		if n := testing.AllocsPerRun(100, func() {
			s.Reset()
			if _, err := c.Value(s, in, false); err != nil {
				t.Error(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations for %q", test.info.Type.Name, n, test.text)
		}
	}
}

func TestTextIsNotCopied(t *testing.T) {
	t.Parallel()
	c := make1(t, text, column.Modes{})
	in := []byte("abc")
	v, err := c.Value(&column.Scratch{}, in, false)
	if err != nil || &v.Bytes[0] != &in[0] {
		t.Errorf("value %q, %v: want the text itself", v.Bytes, err)
	}
}

// Values of one row stay what they are while others are made.
func TestValuesKeepUntilReset(t *testing.T) {
	t.Parallel()
	s := &column.Scratch{}
	c := make1(t, arrayOf(builtin("numeric", 1700, -1)), column.Modes{})
	var values []connect.Value
	for range 200 {
		v, err := c.Value(s, []byte("{1.5,NULL,-2.25}"), false)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	number := func(scale int64, unscaled ...byte) connect.Value {
		return connect.Value{Valid: true, List: []connect.Value{{Valid: true, Int: scale}, {Valid: true, Bytes: unscaled}}}
	}
	want := connect.Value{Valid: true, List: []connect.Value{number(1, 15), {}, number(2, 0xff, 0x1f)}}
	for i, v := range values {
		if diff := cmp.Diff(want, v); diff != "" {
			t.Fatalf("value %d (-want +got):\n%s", i, diff)
		}
	}
}

// What cannot be converted, by what Debezium does about it.
func TestFailures(t *testing.T) {
	t.Parallel()
	required := numeric102
	required.NotNull = true
	withDefault := required
	withDefault.HasDefault, withDefault.Default = true, "5"
	nano := column.Modes{Time: "nanoseconds"}
	for _, test := range []struct {
		name     string
		info     column.Info
		modes    column.Modes
		text     string
		problem  string // of the error; none if the value is lost
		lost     string // the problem in Scratch.Lost
		refused  bool
		hintWord string
	}{
		{name: "warn", info: numeric102, text: "NaN", lost: "NaN or Infinity", hintWord: "decimal.handling.mode"},
		{name: "skip", info: numeric102, modes: column.Modes{Failure: "skip"}, text: "NaN", lost: "NaN or Infinity", hintWord: "decimal.handling.mode"},
		{name: "fail", info: numeric102, modes: column.Modes{Failure: "fail"}, text: "Infinity", problem: "NaN or Infinity", hintWord: "decimal.handling.mode"},
		{name: "not null", info: required, text: "NaN", problem: "NaN or Infinity", hintWord: "decimal.handling.mode"},
		{name: "not null with default", info: withDefault, text: "NaN", lost: "NaN or Infinity", hintWord: "decimal.handling.mode"},
		{name: "unexpected, in spite of fail", info: timestamp, modes: column.Modes{Time: "nanoseconds", Failure: "fail"}, text: "2300-01-01 00:00:00", lost: "nanoseconds", hintWord: "time.precision.mode"},
		{name: "element out of range", info: arrayOf(timestamp), modes: nano, text: `{"2300-01-01 00:00:00"}`},
		{name: "task fails, in spite of warn", info: timetz, text: "10:00:00+05:30:15", problem: "seconds in its offset", hintWord: "time.precision.mode"},
		{name: "not a number", info: int4, text: "x", problem: "unexpected text", hintWord: "session"},
		{name: "money of another place", info: money, text: "12,34 kr.", problem: "money", hintWord: "lc_monetary"},
		{name: "memory address", info: arrayOf(text), text: "{{a},{b}}", problem: "multidimensional", refused: true, hintWord: "one-dimensional"},
		{name: "NaN in an array", info: arrayOf(builtin("numeric", 1700, -1)), modes: column.Modes{Decimal: "string"}, text: "{1,NaN}", lost: "in an array", hintWord: "float8[]"},
		{name: "bit strings", info: arrayOf(builtin("bit", 1560, 4)), text: "{1010}", lost: "bit strings", hintWord: "leave"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := make1(t, test.info, test.modes)
			s := &column.Scratch{}
			v, err := c.Value(s, []byte(test.text), false)
			var e *column.Error
			switch {
			case errors.As(err, &e):
			case len(s.Lost) == 1:
				e = s.Lost[0]
			}
			if test.problem == "" && err != nil || test.problem != "" && err == nil {
				t.Fatalf("value %v, error %v; want the problem %q", v, err, test.problem)
			}
			if want := test.problem + test.lost; want != "" {
				if e == nil || !strings.Contains(e.Error(), want) || !strings.Contains(e.Error(), `column "c"`) {
					t.Fatalf("error %v: want %q in it, and the column", e, want)
				}
				if !strings.Contains(e.Hint(), test.hintWord) || e.Refused != test.refused {
					t.Errorf("hint %q, refused %v; want %q in it, and %v", e.Hint(), e.Refused, test.hintWord, test.refused)
				}
				if len(test.text) > 8 && strings.Contains(e.Error(), test.text) {
					t.Errorf("%v: it holds the value", e)
				}
				if v.Valid {
					t.Errorf("value %v: want null", v)
				}
			} else if len(s.Lost) != 0 {
				t.Errorf("lost %v, want nothing", s.Lost)
			}
		})
	}
}

// Null in a NOT NULL column, which a name column has in the stream, and any
// column can have that got NOT NULL later.
func TestNullInNotNull(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		info     column.Info
		standard string // default
		modes    column.Modes
		want     connect.Value
	}{
		{info: name, want: connect.Value{Valid: true, Bytes: []byte{}}},
		{info: int4, want: connect.Value{Valid: true}},
		{info: int4, standard: "7", want: connect.Value{Valid: true, Int: 7}},
		{info: numeric102, want: connect.Value{Valid: true, Bytes: []byte{0}}},
		{info: numeric102, modes: column.Modes{Decimal: "string"}, want: connect.Value{Valid: true, Bytes: []byte("0.00")}},
		{info: timestampTZ, want: connect.Value{Valid: true, Bytes: []byte("1970-01-01T00:00:00Z")}},
		{info: timestamp, modes: column.Modes{Time: "isostring"}, want: connect.Value{Valid: true, Bytes: []byte("1970-01-01T00:00:00Z")}},
		{info: arrayOf(int4), want: connect.Value{Valid: true, List: []connect.Value{}}},
	} {
		test.info.NotNull = true
		test.info.HasDefault, test.info.Default = test.standard != "", test.standard
		c := make1(t, test.info, test.modes)
		v, err := c.Value(&column.Scratch{}, nil, true)
		if diff := cmp.Diff(test.want, v); err != nil || diff != "" {
			t.Errorf("%s: error %v (-want +got):\n%s", test.info.Type.Name, err, diff)
		}
		if c.Schema.Optional {
			t.Errorf("%s: the schema is optional", test.info.Type.Name)
		}
	}
}

func TestNameOnlyInSnapshots(t *testing.T) {
	t.Parallel()
	c := make1(t, name, column.Modes{})
	if v, err := c.Value(&column.Scratch{}, []byte("x"), false); err != nil || v.Valid {
		t.Errorf("streaming: %v, %v; want null", v, err)
	}
	if v, err := c.Value(&column.Scratch{Snapshot: true}, []byte("x"), false); err != nil || string(v.Bytes) != "x" {
		t.Errorf("snapshot: %v, %v; want x", v, err)
	}
	c = make1(t, name, column.Modes{IncludeUnknown: true})
	if v, err := c.Value(&column.Scratch{}, []byte("x"), false); err != nil || string(v.Bytes) != "x" {
		t.Errorf("include.unknown.datatypes: %v, %v; want x", v, err)
	}
}

func TestMoney(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text   string
		digits int
		want   string
	}{
		{"$12.34", 2, "\x04\xd2"},
		{"-$12.34", 2, "\xfb\x2e"},
		{"($12.34)", 2, "\xfb\x2e"},
		{"€1,234.50", 2, "\x01\xe2\x3a"},
		{"12.34", 4, "\x01\xe2\x08"},
		{"$12.35", 1, "\x7c"},  // half up
		{"-$12.35", 1, "\x84"}, // away from zero
		{"$12.34", 0, "\x0c"},  // down
		{"$0.99", 0, "\x01"},   // over the point
		{"-$0.10", 0, "\x00"},  // no negative zero
		{"¥1,000", 2, "\x01\x86\xa0"},
	} {
		c := make1(t, money, column.Modes{MoneyDigits: test.digits})
		v, err := c.Value(&column.Scratch{}, []byte(test.text), false)
		if err != nil || string(v.Bytes) != test.want {
			t.Errorf("%s with %d digits: %x, %v; want %x", test.text, test.digits, v.Bytes, err, test.want)
		}
	}
}

// Types of extensions that no test server has.
func TestExtensions(t *testing.T) {
	t.Parallel()
	base := func(name string) column.Info { return builtin(name, 99999, -1) }
	number := func(f float64) connect.Value { return connect.Value{Valid: true, Float: f} }
	wkb := []byte{1, 1, 0, 0, 0x20, 0xe6, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0x40}
	for _, test := range []struct {
		info column.Info
		text string
		name string
		want connect.Value
	}{
		{base("vector"), "[1,2.5,-3]", "io.debezium.data.DoubleVector", connect.Value{Valid: true, List: []connect.Value{number(1), number(2.5), number(-3)}}},
		{base("halfvec"), "[0.5]", "io.debezium.data.FloatVector", connect.Value{Valid: true, List: []connect.Value{number(0.5)}}},
		{base("sparsevec"), "{17:1,1:2}/20", "io.debezium.data.SparseDoubleVector", connect.Value{Valid: true, List: []connect.Value{
			{Valid: true, Int: 20},
			{Valid: true, List: []connect.Value{{Valid: true, Int: 17}, number(1), {Valid: true, Int: 1}, number(2)}},
		}}},
		{base("sparsevec"), "{}/3", "io.debezium.data.SparseDoubleVector", connect.Value{Valid: true, List: []connect.Value{{Valid: true, Int: 3}, {Valid: true}}}},
		{base("geometry"), "0101000020E6100000000000000000F03F0000000000000040", "io.debezium.data.geometry.Geometry", connect.Value{Valid: true, List: []connect.Value{
			{Valid: true, Bytes: wkb}, {Valid: true, Int: 4326},
		}}},
		{base("geography"), "0101000000000000000000F03F0000000000000040", "io.debezium.data.geometry.Geography", connect.Value{Valid: true, List: []connect.Value{
			{Valid: true, Bytes: append([]byte{1, 1, 0, 0, 0}, wkb[9:]...)}, {},
		}}},
	} {
		c := make1(t, test.info, column.Modes{})
		v, err := c.Value(&column.Scratch{}, []byte(test.text), false)
		if diff := cmp.Diff(test.want, v); err != nil || diff != "" {
			t.Errorf("%s %s: error %v (-want +got):\n%s", test.info.Type.Name, test.text, err, diff)
		}
		if c.Schema.Name != test.name {
			t.Errorf("%s: schema %s, want %s", test.info.Type.Name, c.Schema.Name, test.name)
		}
	}
}

func TestDomainOfDomain(t *testing.T) {
	t.Parallel()
	inner := &column.TypeInfo{OID: 50001, Name: "amount", Kind: 'd', TypMod: 10<<16 + 2 + 4, Base: &column.TypeInfo{OID: 1700, Name: "numeric", Kind: 'b', TypMod: -1}}
	info := column.Info{Name: "c", TypeOID: 50002, TypeMod: -1, HasDefault: true, Default: "1.5",
		Type: column.TypeInfo{OID: 50002, Name: "price", Kind: 'd', TypMod: -1, Base: inner}}
	c := make1(t, info, column.Modes{})
	want := []connect.Parameter{{Name: "scale", Value: "2"}, {Name: "connect.decimal.precision", Value: "10"}}
	if diff := cmp.Diff(want, c.Schema.Parameters); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	if c.Schema.Default != nil {
		t.Errorf("default %v: Debezium reads none of domains", c.Schema.Default)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	if err := (column.Modes{Decimal: " STRING ", Time: "Connect"}).Check(); err != nil {
		t.Error(err)
	}
	_, err := column.New(text, column.Modes{Binary: "base32"})
	var e *column.ModeError
	if !errors.As(err, &e) || e.Name != "binary.handling.mode" || !strings.Contains(e.Hint(), "base64-url-safe") {
		t.Errorf("error %v: want one about binary.handling.mode with the modes in its hint", err)
	}
	if c, err := column.New(builtin("box", 603, -1), column.Modes{}); c != nil || err != nil {
		t.Errorf("box: %v, %v; want it left out", c, err)
	}
}

func TestComments(t *testing.T) {
	t.Parallel()
	info := text
	info.Comment = "what it is"
	if c := make1(t, info, column.Modes{}); c.Schema.Doc != "" {
		t.Errorf("doc %q, want none", c.Schema.Doc)
	}
	if c := make1(t, info, column.Modes{Comments: true}); c.Schema.Doc != info.Comment {
		t.Errorf("doc %q, want %q", c.Schema.Doc, info.Comment)
	}
}
