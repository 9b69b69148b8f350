package connect

import "testing"

// The golden records restate what a real Debezium 3.6.1, on Java 17, put on Kafka
// for a range of connector configurations: the parts of its records whose schema
// and value are known. A name begins with the configuration's.
func TestGoldenRecords(t *testing.T) {
	t.Parallel()
	converters := map[string]Converter{}
	for name, s := range setups {
		c, err := New(s.class, s.role, s.options, Options{JavaVersion: 17})
		if err != nil {
			t.Fatal(err)
		}
		converters[name] = c
	}
	vectors := readVectors(t, "golden.jsonl")
	if len(vectors) < 400 {
		t.Fatalf("%d records", len(vectors))
	}
	for _, v := range vectors {
		s := v.Schema.schema(t)
		for name, want := range v.Out {
			datum := value(t, s, v.Value)
			if name == "header" {
				datum = Default(s, datum) // as the router does
			}
			compare(t, v.Name+"/"+name, converters[name], s, datum, want)
		}
	}
}
