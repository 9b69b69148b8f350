package connector

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The cases are those of java.util.Properties.load.
func TestReadProperties(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want []pair
	}{
		"separators":           {"a=1\nb:2\nc 3\nd\t=\t4\ne  :5\nf", []pair{{"a", "1", 1}, {"b", "2", 2}, {"c", "3", 3}, {"d", "4", 4}, {"e", "5", 5}, {"f", "", 6}}},
		"second separator":     {"a==1\nb=:2\nc : = 3", []pair{{"a", "=1", 1}, {"b", ":2", 2}, {"c", "= 3", 3}}},
		"comments and blanks":  {"# one\n  ! two\n\n \t\f\na=1 # not one\r\nb=2\rc=3", []pair{{"a", "1 # not one", 5}, {"b", "2", 6}, {"c", "3", 7}}},
		"continued":            {"a=1,\\\n   2,\\\r\n\t3\nb=x\\\\\nc=y\\\\\\\nz", []pair{{"a", "1,2,3", 1}, {"b", "x\\", 4}, {"c", "y\\z", 5}}},
		"continued comment":    {"# x\\\na=1\nb=\\\n# not one", []pair{{"a", "1", 2}, {"b", "# not one", 3}}},
		"backslash at the end": {"a=1\\", []pair{{"a", "1", 1}}},
		"escapes":              {`a\=b\:c\ d=\t\n\r\f\q\"\\` + "\nx=\\u00e9\\ud83d\\ude00", []pair{{"a=b:c d", "\t\n\r\fq\"\\", 1}, {"x", "é😀", 2}}},
		"trailing space":       {"a = 1 ", []pair{{"a", "1 ", 1}}},
		"regular expression":   {`a=(.*)\\.(x)`, []pair{{"a", `(.*)\.(x)`, 1}}},
		"no key":               {"=x", []pair{{"", "x", 1}}},
		"Latin-1":              {"a=\xe9\xc3", []pair{{"a", "éÃ", 1}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readPairs("c.properties", []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(pair{})); diff != "" {
				t.Errorf("pairs differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadPropertiesFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a=1\nb=\\u12":           "c.properties:2: \\u is not followed by four hexadecimal digits\n  write key=value; a backslash in a value is written twice\n",
		"a=\\u12xy":              "c.properties:1: \\u is not followed by four hexadecimal digits\n  write key=value; a backslash in a value is written twice\n",
		"debezium.source.a=\xff": "c.properties: not UTF-8\n  save the file as UTF-8\n",
	} {
		_, err := readPairs("c.properties", []byte(text))
		if diff := cmp.Diff(want, texts(err)); diff != "" {
			t.Errorf("%q: error differs (-want +got):\n%s", text, diff)
		}
	}
}

func TestServerFileIsUTF8(t *testing.T) {
	t.Parallel()
	got, err := readPairs("application.properties", []byte("debezium.source.topic.prefix=é"))
	if err != nil || got[0].value != "é" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestReadYAML(t *testing.T) {
	t.Parallel()
	text := "debezium:\n  source:\n    topic.prefix: app\n    database:\n      port: 5432\n      tables: [a, b]\n\"%dev\":\n  x: true\n"
	got, err := readPairs("application.yaml", []byte(text))
	want := []pair{
		{"debezium.source.topic.prefix", "app", 3},
		{"debezium.source.database.port", "5432", 5},
		{"debezium.source.database.tables", "a,b", 6},
		{"%dev.x", "true", 8},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pair{})); err != nil || diff != "" {
		t.Errorf("%v, pairs differ (-want +got):\n%s", err, diff)
	}
	for text, want := range map[string]string{
		"a: [":               "c.yml: not valid YAML\n  check indentation and quotes\n",
		"a: 1\n---\nb: 1":    "c.yml: more than one YAML document\n  put everything in one document\n",
		"a.b: 1\na:\n  b: 2": "c.yml:3: key \"a.b\" is given twice, first on line 1\n  keep one of them\n",
		"a:":                 "c.yml:1: a has no value\n  give it a value, or remove the key\n",
		"- a":                "c.yml:1: expected keys and values\n  write key: value, one a line\n",
		"a: [{b: 1}]":        "c.yml:1: a: expected a list of texts\n  write the list as text with commas\n",
		"a: &x 1\nb: *x":     "c.yml:2: b: expected text\n  write the value out; aliases are not used\n",
	} {
		_, err := readPairs("c.yml", []byte(text))
		if diff := cmp.Diff(want, texts(err)); diff != "" {
			t.Errorf("%q: error differs (-want +got):\n%s", text, diff)
		}
	}
}
