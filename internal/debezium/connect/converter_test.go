package connect

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// A vector is a schema and a value, and what Kafka Connect 4.3.1 with Debezium
// 3.6.1 makes of them with each of the converters below: null, the bytes as a
// string, or a string that begins with an exclamation mark for an exception, or
// for text that no two runs have in common.
type vector struct {
	Name   string             `json:"name"`
	Schema *jsonField         `json:"schema"`
	Value  json.RawMessage    `json:"value"`
	Text   *string            `json:"text"` // in place of the value: a string whatever the schema
	Out    map[string]*string `json:"out"`
}

var setups = map[string]struct {
	class   string
	role    Role
	options map[string]string
}{
	"string":        {ClassString, RoleValue, nil},
	"json":          {ClassJSON, RoleValue, nil},
	"plain":         {ClassJSON, RoleKey, map[string]string{"schemas.enable": "false"}},
	"numeric":       {ClassJSON, RoleValue, map[string]string{"schemas.enable": "false", "decimal.format": "numeric"}},
	"nodefault":     {ClassJSON, RoleValue, map[string]string{"schemas.enable": "False ", "replace.null.with.default": "false"}},
	"bytes":         {ClassByteArray, RoleValue, nil},
	"dbzbytes":      {ClassDebeziumByteArray, RoleValue, nil},
	"dbzbytes+json": {ClassDebeziumByteArray, RoleValue, map[string]string{"delegate.converter.type": ClassJSON}},
	"binary":        {ClassDebeziumBinaryData, RoleValue, nil},
	"binary+plain": {ClassDebeziumBinaryData, RoleValue, map[string]string{
		"delegate.converter.type": ClassJSON, "delegate.converter.type.schemas.enable": "false",
	}},
	"header":        {ClassSimpleHeader, RoleHeader, nil},
	"header-binary": {ClassDebeziumBinaryData, RoleHeader, map[string]string{"delegate.converter.type": ClassJSON}},
}

func TestConverters(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		file      string
		java, min int
	}{
		{"converters.jsonl", 0, 130},
		{"converters-java17.jsonl", 17, 1},
	} {
		t.Run(test.file, func(t *testing.T) {
			t.Parallel()
			converters := map[string]Converter{}
			for name, s := range setups {
				c, err := New(s.class, s.role, s.options, Options{JavaVersion: test.java})
				if err != nil {
					t.Fatal(err)
				}
				converters[name] = c
			}
			vectors := readVectors(t, test.file)
			if len(vectors) < test.min {
				t.Fatalf("%d vectors", len(vectors))
			}
			for _, v := range vectors {
				s := v.Schema.schema(t)
				var datum Value
				if v.Text != nil {
					datum = Value{Valid: true, Text: true, Bytes: []byte(*v.Text)}
				} else {
					datum = value(t, s, v.Value)
				}
				if len(v.Out) != len(setups) {
					t.Fatalf("%s: %d results for %d converters", v.Name, len(v.Out), len(setups))
				}
				for name, want := range v.Out {
					compare(t, v.Name+"/"+name, converters[name], s, datum, want)
				}
			}
		})
	}
}

func compare(t *testing.T, name string, c Converter, s *Schema, v Value, want *string) {
	t.Helper()
	out, null, err := c.Convert([]byte("before"), s, v)
	if string(out[:6]) != "before" {
		t.Errorf("%s: wrote over what was there", name)
	}
	out = out[6:]
	switch {
	case want != nil && len(*want) > 0 && (*want)[0] == '!':
		if err == nil {
			t.Errorf("%s: got %q, want an error", name, out)
		} else if h, ok := err.(interface{ Hint() string }); !ok || h.Hint() == "" {
			t.Errorf("%s: no hint for %v", name, err)
		}
		if len(out) != 0 {
			t.Errorf("%s: an error left %q behind", name, out)
		}
	case err != nil:
		t.Errorf("%s: %v", name, err)
	case want == nil:
		if !null || len(out) != 0 {
			t.Errorf("%s: got %q, want null", name, out)
		}
	case null:
		t.Errorf("%s: got null, want %q", name, *want)
	case string(out) != *want:
		t.Errorf("%s:\n got %s\nwant %s", name, out, *want)
	}
}

func readVectors(t *testing.T, name string) (list []vector) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	scan := bufio.NewScanner(file)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var v vector
		if err := json.Unmarshal(scan.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	return list
}
