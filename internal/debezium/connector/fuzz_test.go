package connector

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// FuzzRead feeds any file as connector and as worker. Whatever is in it, there
// is an answer: a Spec that converts, or errors with hints.
func FuzzRead(f *testing.F) {
	for name, file := range map[string]string{
		"c.json": "testdata/outbox.json", "d.json": "testdata/avro.json", "c.properties": "testdata/standalone.properties",
		"application.properties": "testdata/application.properties", "application.yaml": "testdata/application.yaml", "w.properties": "testdata/worker.properties",
	} {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(name, data, true)
	}
	f.Add("c.json", []byte(`{"name":"n","config":{"a":"\ud800","b":1e400,"c":true}}`), false)
	f.Add("c.properties", []byte("a\\:b=\\u00e9\\\n  c\nkey.converter=${file:x:y}\n"), true)
	f.Add("a.properties", []byte("debezium.sink.type=${A:${B:$$}}\n%prod.a=b\n"), false)
	f.Add("a.yml", []byte("debezium.source.a: [b, c]\n? x\n: y\n"), true)
	f.Fuzz(func(t *testing.T, name string, data []byte, lenient bool) {
		opt := Options{
			Config: name, ConfigData: data, Lenient: lenient,
			Environ: []string{"DB_HOST=h", "A=${B}", "B=${A}", "DEBEZIUM_SOURCE_TOPIC_PREFIX=p"}, ReadFile: files{"x": "y=z"}.read,
		}
		checkRead(t, opt)
		checkRead(t, Options{
			Config: "c.properties", ConfigData: properties(base), Worker: name, WorkerData: data, Lenient: lenient, ReadFile: files{"x": "y=z"}.read,
		})
	})
}

func checkRead(t *testing.T, opt Options) {
	t.Helper()
	spec, report, err := Read(opt)
	if err != nil {
		text := texts(err)
		if strings.HasPrefix(text, "not of the package") || text == "" {
			t.Fatalf("error %v of type %T", err, err)
		}
		if report != nil && report.Worst() != SeverityRefused {
			t.Fatalf("error %v, and the worst is %s", err, report.Worst())
		}
		return
	}
	if report.Worst() == SeverityRefused {
		t.Fatal("refused, and no error")
	}
	for _, e := range report.Entries {
		if e.Decision == "" || e.Severity == "" || e.Does == "" || e.Origin == "" {
			t.Fatalf("entry without an answer: %+v", e)
		}
	}
	var b bytes.Buffer
	if err := Convert(&b, spec, opt.Config); err != nil && texts(err) == "" {
		t.Fatal(err)
	}
}
