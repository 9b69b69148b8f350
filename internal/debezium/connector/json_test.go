package connector

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadJSON(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want []pair
	}{
		"bare map": {"{\"a\": \"x\",\n\"b\": 5432,\n\"c\": true, \"d\": 1.50}", []pair{{"a", "x", 1}, {"b", "5432", 2}, {"c", "true", 3}, {"d", "1.50", 3}}},
		"body":     {"{\n\"name\": \"n\",\n\"config\": {\n\"a\": \"x\"}}", []pair{{"name", "n", 2}, {"a", "x", 4}}},
		"name in both": {
			`{"name": "n", "config": {"name": "n", "a": "x"}}`,
			[]pair{{"name", "n", 1}, {"a", "x", 1}},
		},
		"answer of GET":      {`{"name": "n", "config": {"a": "x"}, "tasks": [{"connector": "n", "task": 0}], "type": "source"}`, []pair{{"name", "n", 1}, {"a", "x", 1}}},
		"byte order mark":    {"\ufeff{\"a\": \"x\"}", []pair{{"a", "x", 1}}},
		"escapes":            {`{"a": "\u00e9\n\"\\."}`, []pair{{"a", "é\n\"\\.", 1}}},
		"a key named config": {`{"config": "x"}`, []pair{{"config", "x", 1}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readPairs("c.json", []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(pair{})); diff != "" {
				t.Errorf("pairs differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadJSONFaults(t *testing.T) {
	t.Parallel()
	const shape = `a connector is {"name": …, "config": {key: value, …}} or the map of keys and values alone`
	tests := map[string]struct{ text, want string }{
		"empty":          {" \n", "c.json: the file is empty\n  " + shape + "\n"},
		"array":          {"[1]", "c.json: the file holds an array\n  put one connector in one file: " + shape + "\n"},
		"text":           {`"x"`, "c.json: expected an object\n  " + shape + "\n"},
		"cut off":        {"{\"a\":\n\"x\"", "c.json:2: the file ends within the object\n  the file is cut off, or a } is missing\n"},
		"comma":          {"{\"a\": \"x\",\n}", "c.json:2: not valid JSON: invalid character '}' looking for beginning of object key string\n  check quotes and commas; JSON has no comments\n"},
		"comment":        {"{\n// no\n\"a\": \"x\"}", "c.json:2: not valid JSON: invalid character '/' looking for beginning of object key string\n  check quotes and commas; JSON has no comments\n"},
		"twice":          {"{\"a\": \"x\",\n\"a\": \"y\"}", "c.json:2: key \"a\" is given twice, first on line 1\n  keep one of them\n"},
		"null":           {"{\"a\": null}", "c.json:1: \"a\" is null\n  give it a value, or remove the key\n"},
		"array inside":   {"{\"a\":\n[1, [2]], \"b\": {\"c\": 1}}", "c.json:1: the value of \"a\" is an array\n  Connect takes text, numbers, true and false; write a list as text with commas\nc.json:2: the value of \"b\" is an object\n  Connect takes text, numbers, true and false; write a list as text with commas\n"},
		"other key":      {`{"config": {}, "colour": "x"}`, "c.json:1: unexpected \"colour\" beside \"config\"\n  " + shape + "\n"},
		"names differ":   {`{"name": "a", "config": {"name": "b"}}`, "c.json:1: name differs from the one beside config\n  Connect refuses this too; keep one of them\n"},
		"two objects":    {"{}\n{}", "c.json:2: more text after the object\n  put one connector in one file\n"},
		"not UTF-8":      {"{\"a\": \"\xe9\"}", "c.json: not UTF-8\n  save the file as UTF-8\n"},
		"secret unsaid":  {`{"database.password": "hunter2" "x": 1}`, "c.json:1: not valid JSON: invalid character '\"' after object key:value pair\n  check quotes and commas; JSON has no comments\n"},
		"config in list": {`{"a": [{"config": {}}]}`, "c.json:1: the value of \"a\" is an array\n  Connect takes text, numbers, true and false; write a list as text with commas\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := readPairs("c.json", []byte(test.text))
			if diff := cmp.Diff(test.want, texts(err)); diff != "" {
				t.Errorf("error differs (-want +got):\n%s", diff)
			}
		})
	}
}
