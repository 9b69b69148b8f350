package connect

import (
	"errors"
	"strings"
	"testing"
)

func converter(t testing.TB, setup string) Converter {
	t.Helper()
	s := setups[setup]
	c, err := New(s.class, s.role, s.options, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What BinaryDataConverterTest and ByteArrayConverterTest of Debezium check.
func TestBinary(t *testing.T) {
	t.Parallel()
	data := "\x00\xff\x10\xde\xad\xbe\xef"
	buffer, array := &Schema{Type: Bytes, Optional: true}, &Schema{Type: Bytes, Name: bitsName}
	number := &Schema{Type: Int32}
	message := &Schema{Type: String, Optional: true}
	bytes := Value{Valid: true, Bytes: []byte(data)}
	text := Value{Valid: true, Bytes: []byte(`{"message": "Hello World"}`)}
	enveloped := `{"schema":{"type":"string","optional":true},"payload":"{\"message\": \"Hello World\"}"}`
	for _, test := range []struct {
		name, setup string
		schema      *Schema
		value       Value
		want        string // "null" or "!" for an error
	}{
		{"buffer", "binary", buffer, bytes, data},
		{"array", "binary", array, bytes, data},
		{"null", "binary", buffer, Value{}, "null"},
		{"null without schema", "binary", nil, Value{}, "null"},
		{"number", "binary", number, Value{Valid: true, Int: 1}, "!"},
		{"string without schema", "binary", nil, text, "!"},
		{"null number", "binary", number, Value{}, "!"},
		{"delegate", "binary+plain", message, text, `"{\"message\": \"Hello World\"}"`},
		{"delegate without schema", "binary+plain", nil, text, `"{\"message\": \"Hello World\"}"`},
		{"delegate passes bytes", "binary+plain", buffer, bytes, data},
		{"header", "header-binary", buffer, bytes, data},
		{"debezium's own, array", "dbzbytes", array, bytes, data},
		{"debezium's own, buffer", "dbzbytes", buffer, bytes, "!"},
		{"debezium's own, null", "dbzbytes", buffer, Value{}, "null"},
		{"debezium's own, delegate", "dbzbytes+json", message, text, enveloped},
		{"debezium's own, delegate without schema", "dbzbytes+json", nil, text, `{"schema":null,"payload":"{\"message\": \"Hello World\"}"}`},
		{"debezium's own, delegate for buffer", "dbzbytes+json", buffer, bytes, `{"schema":{"type":"bytes","optional":true},"payload":"AP8Q3q2+7w=="}`},
		{"kafka's, buffer", "bytes", buffer, bytes, data},
		{"kafka's, array", "bytes", array, bytes, data},
		{"kafka's, without schema", "bytes", nil, text, "!"},
		{"kafka's, text under a schema of bytes", "bytes", buffer, Value{Valid: true, Text: true}, "!"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			out, null, err := converter(t, test.setup).Convert(nil, test.schema, test.value)
			got := string(out)
			switch {
			case err != nil:
				got = "!"
			case null:
				got = "null"
			}
			if got != test.want {
				t.Errorf("got %q (%v), want %q", got, err, test.want)
			}
		})
	}
}

// A surrogate without its pair, which only JSON expansion can make: printed as a
// question mark, and escaped in JSON.
func TestUnpairedSurrogate(t *testing.T) {
	t.Parallel()
	lone := "a\xed\xa0\x80b\xed\xbf\xbf\xff"
	s := &Schema{Type: Struct, Fields: []Field{{Name: lone, Schema: &Schema{Type: String}}}}
	v := Value{Valid: true, List: []Value{{Valid: true, Bytes: []byte(lone)}}}
	for setup, want := range map[string]string{
		"string": "Struct{a?b?\ufffd=a?b?\ufffd}",
		"plain":  `{"a\uD800b\uDFFF` + "\ufffd" + `":"a\uD800b\uDFFF` + "\ufffd" + `"}`,
		"header": `{"a?b?` + "\ufffd" + `":"a?b?` + "\ufffd" + `"}`,
	} {
		out, _, err := converter(t, setup).Convert(nil, s, v)
		if err != nil || string(out) != want {
			t.Errorf("%s: got %q, %v, want %q", setup, out, err, want)
		}
	}
}

func TestRefusedIsNotPoison(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		schema  *Schema
		value   Value
		refused bool
	}{
		"date":          {&Schema{Type: Int32, Name: NameDate}, Value{Valid: true}, true},
		"byte array":    {&Schema{Type: Bytes, Name: bitsName}, Value{Valid: true}, true},
		"no such type":  {&Schema{}, Value{Valid: true}, false},
		"no scale":      {&Schema{Type: Bytes, Name: NameDecimal}, Value{Valid: true}, false},
		"short struct":  {&Schema{Type: Struct, Fields: []Field{{"a", &Schema{Type: Bytes, Name: bitsName}}}}, Value{Valid: true, List: []Value{{Valid: true}}}, true},
		"empty element": {&Schema{Type: Array, Elem: &Schema{}}, Value{Valid: true, List: []Value{{Valid: true}}}, false},
	} {
		_, _, err := converter(t, "string").Convert(nil, test.schema, test.value)
		var e *Error
		if !errors.As(err, &e) || e.Refused != test.refused || !strings.HasPrefix(e.Error(), "StringConverter: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Values that do not fit their schema must not bring the process down.
func TestMalformed(t *testing.T) {
	t.Parallel()
	leaf := &Schema{Type: String}
	schemas := []*Schema{
		{}, {Type: 99}, {Type: Array}, {Type: Map}, {Type: Map, Key: leaf}, {Type: Struct, Fields: []Field{{Name: "a"}}},
		{Type: Struct, Fields: []Field{{"a", leaf}, {"b", leaf}}}, {Type: Map, Key: leaf, Elem: leaf}, {Type: Bytes, Name: NameDecimal},
	}
	values := []Value{{}, {Valid: true}, {Valid: true, List: []Value{{Valid: true}}}, {Valid: true, List: make([]Value, 3)}, {Valid: true, Text: true}}
	for setup := range setups {
		c := converter(t, setup)
		for _, s := range schemas {
			for _, v := range values {
				if _, null, err := c.Convert(nil, s, v); null && err != nil {
					t.Errorf("%s: null and %v", setup, err)
				}
			}
		}
	}
}
