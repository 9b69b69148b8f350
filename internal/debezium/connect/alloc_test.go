package connect

import "testing"

var plainText = []byte("a \"b\" \\ c; é 😀")

func TestNoAllocation(t *testing.T) {
	version := int32(1)
	text := &Schema{Type: String, Optional: true, Name: "io.debezium.data.Json", Version: &version}
	long := &Schema{Type: Int64}
	double := &Schema{Type: Float64}
	data := &Schema{Type: Bytes}
	envelope := &Schema{Type: Struct, Name: "x.Value", Fields: []Field{{"payload", text}, {"version", long}, {"ratio", double}, {"raw", data}}}
	str := Value{Valid: true, Bytes: plainText}
	all := Value{Valid: true, List: []Value{str, {Valid: true, Int: 7}, {Valid: true, Float: 1.25}, str}}
	buffer := make([]byte, 0, 4096)
	for _, test := range []struct {
		setup  string
		schema *Schema
		value  Value
	}{
		{"string", text, str},
		{"string", long, Value{Valid: true, Int: 1 << 40}},
		{"string", text, Value{}},
		{"json", text, str},
		{"json", envelope, all},
		{"plain", text, str},
		{"plain", envelope, all},
		{"header", text, str},
		{"header", double, Value{Valid: true, Float: 0.1}},
		{"header", data, str},
		{"bytes", data, str},
		{"binary", data, str},
		{"binary+plain", text, str},
	} {
		c := converter(t, test.setup)
		if n := testing.AllocsPerRun(100, func() {
			if _, _, err := c.Convert(buffer, test.schema, test.value); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s of %v: %v allocations", test.setup, test.schema.Type.javaName(), n)
		}
	}
}

func BenchmarkConvert(b *testing.B) {
	text := &Schema{Type: String, Optional: true, Name: "io.debezium.data.Json"}
	double := &Schema{Type: Float64}
	payload := []byte(`{"id": "59a42efd-b015-44a9-9dde-cb36d9002425", "total": 12.30, "lines": [{"sku": "x", "n": 1}], "name": "Grüße"}`)
	for _, bench := range []struct {
		setup  string
		schema *Schema
		value  Value
	}{
		{"string", text, Value{Valid: true, Bytes: payload}},
		{"plain", text, Value{Valid: true, Bytes: payload}},
		{"json", text, Value{Valid: true, Bytes: payload}},
		{"header", double, Value{Valid: true, Float: 1234.5678}},
	} {
		b.Run(bench.setup, func(b *testing.B) {
			b.ReportAllocs()
			c := converter(b, bench.setup)
			buffer := make([]byte, 0, 4096)
			for b.Loop() {
				if _, _, err := c.Convert(buffer, bench.schema, bench.value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
