package connector

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"github.com/walpost/walpost/internal/config"
)

var update = flag.Bool("update", false, "write the golden files")

// examples are the files in testdata: what Debezium's documentation and examples
// show, in our words.
var examples = map[string]Options{
	"outbox":      {Config: "testdata/outbox.json", Worker: "testdata/worker.properties"},
	"alone":       {Config: "testdata/outbox.json"},
	"saga":        {Config: "testdata/saga.json"},
	"binary":      {Config: "testdata/binary.json"},
	"avro":        {Config: "testdata/avro.json"},
	"server":      {Config: "testdata/application.properties", Environ: []string{"DB_HOST=pg"}},
	"server-yaml": {Config: "testdata/application.yaml"},
	"corpus":      {Config: "testdata/corpus.json"},
	"envelope":    {Config: "testdata/envelope.json"},
	"seed":        {Config: "testdata/seed.json"},
	"standalone":  {Config: "testdata/standalone.properties", Worker: "testdata/worker.properties"},
}

func readExample(opt Options) (*Spec, *Report, error) {
	opt.Lenient, opt.ReadFile = true, os.ReadFile
	return Read(opt)
}

// golden compares with a file, or writes it.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", file, diff)
	}
}

func TestExamples(t *testing.T) {
	t.Parallel()
	for name, opt := range examples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, report, err := readExample(opt)
			if report == nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			fmt.Fprintf(&b, "worst: %s\n", report.Worst())
			for _, e := range report.Sorted() {
				from := strings.TrimPrefix(e.Origin, "testdata/")
				fmt.Fprintf(&b, "\n%s %s %s = %q (%s)\n  %s\n", e.Severity, e.Decision, e.Key, e.Value, from, e.Does)
				if e.Difference != "" {
					fmt.Fprintf(&b, "  difference: %s\n", e.Difference)
				}
				if e.Way != "" {
					fmt.Fprintf(&b, "  hint: %s\n", e.Way)
				}
			}
			if strings.Contains(b.String(), "hunter2") {
				t.Error("a secret in the report")
			}
			golden(t, filepath.Join("testdata", "golden", name+".explain"), b.Bytes())
		})
	}
}

// TestConvert also reads back what was written: it must mean the same.
func TestConvert(t *testing.T) {
	t.Parallel()
	for name, opt := range examples {
		spec, _, err := readExample(opt)
		if err != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			if err := Convert(&b, spec, strings.TrimPrefix(opt.Config, "testdata/")); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.String(), "hunter2") {
				t.Error("a secret in the file")
			}
			golden(t, filepath.Join("testdata", "golden", name+".yaml"), b.Bytes())
			readBack(t, spec, b.Bytes())
		})
	}
}

// readBack reads a converted file as walpost does.
func readBack(t *testing.T, want *Spec, data []byte) {
	t.Helper()
	var file struct {
		Debezium struct {
			Version    string
			Properties map[string]string
		}
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	got, _, err := Read(Options{Version: file.Debezium.Version, Properties: file.Debezium.Properties, ReadFile: files{}.read})
	if err != nil {
		t.Fatal(texts(err))
	}
	if !got.Partial || want.Partial {
		t.Errorf("partial: got %v from %v", got.Partial, want.Partial)
	}
	// What walpost has options of its own for is not in the properties.
	ignore := cmpopts.IgnoreFields(Spec{}, "Partial", "Database", "Kafka", "SlotName", "PublicationName", "StatusInterval", "TableInclude", "SchemaInclude")
	if diff := cmp.Diff(want, got, ignore, cmpopts.IgnoreUnexported(Spec{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("spec differs (-file +properties):\n%s", diff)
	}
	environ := []string{"WALPOST_CONFIG=walpost.yaml", "WALPOST_BROKERS=k"}
	if overlayOf(want, "kafka.sasl.mechanism") != "" {
		environ = append(environ, "WALPOST_KAFKA_SASL_PASSWORD=x")
	}
	if _, err := config.Load(config.Sources{
		Environ: environ,
		ReadFile: func(name string) ([]byte, error) {
			if name == "walpost.yaml" {
				return data, nil
			}
			return []byte(caPEM), nil
		},
		Need: config.NeedPostgres | config.NeedSink,
	}); err != nil {
		t.Errorf("walpost does not take it: %v\n%s", err, data)
	}
}

func TestConvertNeedsValues(t *testing.T) {
	t.Parallel()
	spec, _, err := readMap(t, map[string]string{"database.hostname": "${env:DB_HOST}", "database.password": "${env:DB_PASSWORD}"},
		func(o *Options) { o.Lenient = true })
	if err != nil {
		t.Fatal(err)
	}
	want := "c.properties:3: database.hostname: its reference cannot be resolved here, and the value has to be written\n" +
		"  run this where the variable or the file is, or set the variable by hand\n"
	if diff := cmp.Diff(want, texts(Convert(&bytes.Buffer{}, spec, "c"))); diff != "" {
		t.Errorf("error differs (-want +got):\n%s", diff)
	}
}

func TestConvertKeepsSwitches(t *testing.T) {
	t.Parallel()
	spec, _, err := readMap(t, map[string]string{"database.password": "${env:DB_PASSWORD}", "producer.override.client.id": "yes"}, func(o *Options) {
		o.Lenient, o.NoContextHeaders, o.ReproduceDebugText, o.Version = true, true, true, "3.4.1"
	})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Convert(&b, spec, "a\nb"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Converted from a b. It", "  version: \"3.4\"\n  context_headers: false\n  reproduce_debug_text: true\n  properties:\n",
		"  # The password is ${env:DB_PASSWORD}: set PGPASSWORD", "  client_id: \"yes\"\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
