package expand

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/walpost/walpost/internal/debezium/connect"
)

func newExpander(t testing.TB, o Options) *Expander {
	t.Helper()
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func plain(t testing.TB) connect.Converter {
	t.Helper()
	c, err := connect.New(connect.ClassJSON, connect.RoleValue, map[string]string{"schemas.enable": "false"}, connect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The golden records are what a real Debezium 3.6.1 published for a range of
// configurations with table.expand.json.payload.
func TestGoldenRecords(t *testing.T) {
	t.Parallel()
	file, err := os.Open(filepath.Join("testdata", "golden.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	json17, text := newConverters(t).json, plain(t)
	lines := 0
	for scan := bufio.NewScanner(file); scan.Scan(); lines++ {
		var r struct {
			Corpus, Setup, Null, Payload, Want string
			Failed                             bool
		}
		if err := json.Unmarshal(scan.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		s, v, outcome, _ := newExpander(t, Options{JSONNull: r.Null}).Expand([]byte(r.Payload))
		if outcome == Kept {
			s, v = payloadSchema(), connect.Value{Valid: true, Bytes: []byte(r.Payload)}
		}
		c := text
		if r.Setup == "json" {
			c = json17
		}
		got, _, err := c.Convert(nil, s, v)
		if (err != nil) != r.Failed || err == nil && string(got) != r.Want {
			t.Errorf("%s: %s:\n got %s, %v\nwant %s", r.Corpus, r.Payload, got, err, r.Want)
		}
	}
	if lines < 30 {
		t.Errorf("only %d records", lines)
	}
}

// Schemas are written as field names with types here, all of them optional unless
// marked by an exclamation mark, structs with their name.
func sketch(s *connect.Schema) string {
	mark := ""
	if !s.Optional {
		mark = "!"
	}
	switch s.Type {
	case connect.Struct:
		var fields []string
		for _, f := range s.Fields {
			fields = append(fields, f.Name+" "+sketch(f.Schema))
		}
		return s.Name + "{" + strings.Join(fields, ", ") + "}" + mark
	case connect.Array:
		return "[" + sketch(s.Elem) + "]" + mark
	}
	return map[connect.Type]string{
		connect.Int32: "int32", connect.Int64: "int64", connect.Float64: "double",
		connect.Boolean: "boolean", connect.String: "string", connect.Bytes: "bytes",
	}[s.Type] + mark
}

// The cases of Debezium's EventRouterTest (ER) and JsonSchemaDataTest (JS) that
// concern expansion, and what their documents come to.
func TestExpand(t *testing.T) {
	t.Parallel()
	bytes, str := Options{JSONNull: "optional_bytes"}, Options{JSONEmptyArray: "optional_string"}
	for _, test := range []struct {
		name    string
		options Options
		payload string
		outcome Outcome
		schema  string
		value   string // by JsonConverter without schemas; ! for an error
	}{
		{
			"ER-35", Options{}, `{"fullName": "John Doe", "enabled": true, "rating": 4.9, "age": 42, "pets": ["dog", "cat"], "petObjects": [{"type": "dog"}, {"type": "cat"}]}`,
			Expanded, "payload{fullName string, enabled boolean, rating double, age int32, pets [string], petObjects [payload.petObjects{type string}]}",
			`{"fullName":"John Doe","enabled":true,"rating":4.9,"age":42,"pets":["dog","cat"],"petObjects":[{"type":"dog"},{"type":"cat"}]}`,
		},
		{
			"ER-37", Options{}, `{"petObjects": [{"type": "dog", "colors": []}, {"type": "cat", "colors": [{"name": "white"}]}]}`,
			Expanded, "payload{petObjects [payload.petObjects{type string, colors [payload.petObjects.colors{name string}]}!]}",
			`{"petObjects":[{"type":"dog","colors":[]},{"type":"cat","colors":[{"name":"white"}]}]}`,
		},
		{
			"ER-38", Options{}, `{"petObjects": [{"type": "dog", "colors": []}]}`,
			Expanded, "payload{petObjects [payload.petObjects{type string}]}", `{"petObjects":[{"type":"dog"}]}`,
		},
		{"ER-40", Options{}, `{"fullName": "John Doe"}`, Expanded, "payload{fullName string}", `{"fullName":"John Doe"}`},
		{"ER-41", Options{}, `{"fullName": "John Doe", "numbers": [null, 2, 3]}`, Expanded, "payload{fullName string, numbers [int32]}", `{"fullName":"John Doe","numbers":[null,2,3]}`},
		{
			"ER-42", Options{}, `{"id": 1, "attributes": [{"id": 7, "adr": null, "eans": [{"ean": "1"}, {"ean": "2"}], "booleans": [true, false], "strings": ["a"]}]}`,
			Expanded, "payload{id int32, attributes [payload.attributes{id int32, eans [payload.attributes.eans{ean string}], booleans [boolean], strings [string]}]}",
			`{"id":1,"attributes":[{"id":7,"eans":[{"ean":"1"},{"ean":"2"}],"booleans":[true,false],"strings":["a"]}]}`,
		},
		{
			"JS-01", Options{RootName: "key"}, `{"a": [{"code": "1", "description": "x"}, {"code": "2"}], "b": [{"code": "1", "description": null}, {"code": "2", "description": "y"}]}`,
			Expanded, "key{a [key.a{code string, description string}!], b [key.b{code string, description string}!]}",
			`{"a":[{"code":"1","description":"x"},{"code":"2","description":null}],"b":[{"code":"1","description":null},{"code":"2","description":"y"}]}`,
		},
		{
			"JS-01, bytes", Options{RootName: "key", JSONNull: "optional_bytes"}, `{"a": [{"code": "1", "description": null}, {"code": "2"}], "b": [{"description": null}, {"description": "y"}]}`,
			Expanded, "key{a [key.a{code string, description bytes}!], b [key.b{description string}!]}",
			`{"a":[{"code":"1","description":null},{"code":"2","description":null}],"b":[{"description":null},{"description":"y"}]}`,
		},
		{"JS-02", Options{}, `{"test": [1, 2.0, 3.0]}`, Kept, "", ""},
		{
			"JS-03", Options{RootName: "pub"}, `{"address": {"building": "1007", "floor": {"level": 17}, "coord": [-73.856077, 40.848447]}, "grades": [{"date": {"$date": 1393804800000}, "score": 2}]}`,
			Expanded, "pub{address pub.address{building string, floor pub.address.floor{level int32}, coord [double]}, grades [pub.grades{date pub.grades.date{$date int64}, score int32}]}",
			`{"address":{"building":"1007","floor":{"level":17},"coord":[-73.856077,40.848447]},"grades":[{"date":{"$date":1393804800000},"score":2}]}`,
		},
		{"JS-04", bytes, `{"heartbeat": 1, "email": null}`, Expanded, "payload{heartbeat int32, email bytes}", `{"heartbeat":1,"email":null}`},
		{"JS-05", Options{}, `{"heartbeat": 1, "tags": []}`, Expanded, "payload{heartbeat int32}", `{"heartbeat":1}`},
		{"JS-06", str, `{"heartbeat": 1, "tags": []}`, Expanded, "payload{heartbeat int32, tags [string]}", `{"heartbeat":1,"tags":[]}`},
		{"JS-07", Options{}, `{"a": {"tags": []}}`, Expanded, "payload{a payload.a{}}", `{"a":{}}`},
		{"JS-08", str, `{"a": {"tags": []}}`, Expanded, "payload{a payload.a{tags [string]}}", `{"a":{"tags":[]}}`},

		{"leading space", Options{}, ` {"a": 1}`, Kept, "", ""},
		{"empty", Options{}, ``, Kept, "", ""},
		{"trailing text", Options{}, `{"a": 1} and more`, Expanded, "payload{a int32}", `{"a":1}`},
		{"duplicate", Options{}, `{"a": 1, "b": 2, "a": "x"}`, Expanded, "payload{a string, b int32}", `{"a":"x","b":2}`},
		{"top-level array", Options{}, `[1, 2]`, Replaced, "[int32]", "!"},
		{"top-level array of objects", Options{}, `[{"a": 1}]`, Replaced, "[payload{a int32}]", "!"},
		{"top-level empty array", Options{}, `[]`, Replaced, "", `"[]"`},
		{"top-level empty array, kept as strings", str, `[]`, Replaced, "[string]", "!"},
		{"beyond int64", Options{}, `{"a": 9223372036854775808}`, Replaced, "payload{a double}", "!"},
		{"infinite", Options{}, `{"a": 1e400, "b": -1e400}`, Expanded, "payload{a double, b double}", `{"a":"Infinity","b":"-Infinity"}`},
		{"empty name", Options{}, `{"": 1}`, Kept, "", ""},
		{"empty name, dropped", Options{}, `{"": null, "b": 1}`, Expanded, "payload{b int32}", `{"b":1}`},
		{"merged in order of appearance", Options{}, `{"o": [{"b": 1}, {"a": "x", "b": 2}, {"c": true}]}`, Expanded, "payload{o [payload.o{b int32, a string, c boolean}!]}", `{"o":[{"b":1,"a":null,"c":null},{"b":2,"a":"x","c":null},{"b":null,"a":null,"c":true}]}`},
		{"merged with null", Options{}, `{"o": [{"a": 1}, null, {"b": 2}]}`, Replaced, "payload{o [payload.o{a int32, b int32}!]}", "!"},
		{"merged of different types", Options{}, `{"o": [{"a": 1}, {"a": "x"}]}`, Replaced, "payload{o [payload.o{a int32}!]}", "!"},
		{"arrays of arrays have no name", Options{}, `{"a": [[{"x": {"y": 1}}]]}`, Expanded, "payload{a [[{x x{y int32}}]]}", `{"a":[[{"x":{"y":1}}]]}`},
		{"surrogates", Options{}, `{"a": "\ud83d\ude00 \ud83d \ude00"}`, Expanded, "payload{a string}", `{"a":"\uD83D\uDE00 \uD83D \uDE00"}`},
		{"surrogates without order", Options{}, `{"a": "\ude00\ude00\ud83d\ud83d\ude00"}`, Expanded, "payload{a string}", `{"a":"\uDE00\uDE00\uD83D\uD83D\uDE00"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, v, outcome, err := newExpander(t, test.options).Expand([]byte(test.payload))
			if outcome != test.outcome || (err == nil) != (outcome == Expanded) {
				t.Fatalf("got %d, %v, want %d", outcome, err, test.outcome)
			}
			schema := ""
			if s != nil {
				schema = sketch(s)
			}
			if schema != test.schema {
				t.Errorf("schema\n got %s\nwant %s", schema, test.schema)
			}
			if outcome == Kept {
				return
			}
			out, _, err := plain(t).Convert(nil, s, v)
			got := string(out)
			if err != nil {
				got = "!"
			}
			if got != test.value {
				t.Errorf("value\n got %s, %v\nwant %s", got, err, test.value)
			}
		})
	}
}

func TestRecordsOfOneShapeShareTheirSchema(t *testing.T) {
	t.Parallel()
	e := newExpander(t, Options{})
	first, _, _, _ := e.Expand([]byte(`{"id": 1, "lines": [{"sku": "a", "n": 1}]}`))
	second, _, _, _ := e.Expand([]byte(`{"id": 2, "lines": [{"sku": "b", "n": 2}, {"sku": "c", "n": 3}]}`))
	third, _, _, _ := e.Expand([]byte(`{"id": 2, "lines": [{"sku": "b", "n": "2"}]}`))
	if first != second {
		t.Error("two schemas for one shape")
	}
	if first == third {
		t.Error("one schema for two shapes")
	}
}

func TestShapesAreBounded(t *testing.T) {
	t.Parallel()
	e := newExpander(t, Options{})
	c := plain(t)
	for i := range 3 * maxShapes {
		name := "k" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26))
		payload := `{"` + name + `":[{"v":1},{"w":2}]}`
		s, v, outcome, err := e.Expand([]byte(payload))
		if outcome != Expanded {
			t.Fatal(err)
		}
		out, _, err := c.Convert(nil, s, v)
		if want := `{"` + name + `":[{"v":1,"w":null},{"v":null,"w":2}]}`; err != nil || string(out) != want {
			t.Fatalf("got %s, %v, want %s", out, err, want)
		}
		if len(e.infer.known) > maxShapes+8 {
			t.Fatalf("%d shapes", len(e.infer.known))
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return `{"a":` + strings.Repeat("[", n) + "1" + strings.Repeat("]", n) + "}" }
	for _, test := range []struct {
		name, payload string
		want          Outcome
	}{
		{"depth", deep(999), Expanded},
		{"too deep", deep(1000), Kept},
		{"digits", `{"a":-` + strings.Repeat("1", 1000) + `}`, Replaced},
		{"too many digits", `{"a":-` + strings.Repeat("1", 1001) + `}`, Kept},
		{"digits with exponent", `{"a":1.` + strings.Repeat("1", 998) + `e+1}`, Expanded},
		{"too many digits with exponent", `{"a":1.` + strings.Repeat("1", 999) + `e+1}`, Kept},
		{"name", `{"` + strings.Repeat("é", 50_000) + `":1}`, Expanded},
		{"name too long", `{"` + strings.Repeat("é", 50_001) + `":1}`, Kept},
		{"name of pairs too long", `{"` + strings.Repeat("😀", 25_001) + `":1}`, Kept},
		{"string too long", `{"a":"` + strings.Repeat("x", maxString+1) + `"}`, Kept},
	} {
		if _, _, got, err := newExpander(t, Options{}).Expand([]byte(test.payload)); got != test.want {
			t.Errorf("%s: got %d (%v), want %d", test.name, got, err, test.want)
		}
	}
}

func TestManyMembers(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"m0":"first"`)
	for i := range 5000 {
		b.WriteString(`,"m` + strings.Repeat("i", i%50) + string(rune('a'+i%26)) + `":` + string(rune('0'+i%10)))
	}
	b.WriteString(`,"m0":"last"}`)
	s, v, outcome, err := newExpander(t, Options{}).Expand([]byte(b.String()))
	if outcome != Expanded || len(s.Fields) != 651 || s.Fields[0].Name != "m0" || string(v.List[0].Bytes) != "last" {
		t.Errorf("%v, %d fields", err, len(s.Fields))
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{JSONNull: "drop"}, {JSONEmptyArray: "optional_bytes"}} {
		_, err := New(o)
		var option *OptionError
		if !errors.As(err, &option) || option.Hint() == "" || !strings.Contains(err.Error(), "behavior=") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func BenchmarkExpand(b *testing.B) {
	e := newExpander(b, Options{})
	payload := []byte(`{"id": "59a42efd-b015-44a9-9dde-cb36d9002425", "total": 12.30, "lines": [{"sku": "x", "n": 1}, {"sku": "y", "n": 2}], "name": "Grüße"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, outcome, err := e.Expand(payload); outcome != Expanded {
			b.Fatal(err)
		}
	}
}
