package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with testdata/<name>.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got), -update rewrites it:\n%s", path, diff)
	}
}

func TestOptionsAreWellFormed(t *testing.T) {
	t.Parallel()
	path := regexp.MustCompile(`^[a-z]+(\.[a-z_]+)*$`)
	flagName := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[string]bool{}
	places := map[any]string{}
	cfg := &Config{}
	options := Options()
	for i := range options {
		o := &options[i]
		if !path.MatchString(o.Name) || !flagName.MatchString(o.Flag) {
			t.Errorf("%s, --%s: not well formed", o.Name, o.Flag)
		}
		if o.Help == "" || o.Group == "" {
			t.Errorf("%s: no help or no group", o.Name)
		}
		if seen[o.Name] || seen[o.Flag] && o.Flag != o.Name {
			t.Errorf("%s, --%s: used twice", o.Name, o.Flag)
		}
		seen[o.Name], seen[o.Flag] = true, true
		at := o.at(cfg)
		if other := places[at]; other != "" {
			t.Errorf("%s and %s share a place", o.Name, other)
		}
		places[at] = o.Name
		if o.Secret && o.Kind() != Text {
			t.Errorf("%s: a secret must be text, or its value gets into errors", o.Name)
		}
		if o.Default != "" {
			if bad := parseText(at, o.Default); bad != nil {
				t.Errorf("%s: default: %s", o.Name, bad.what)
			}
		}
	}
}

// The reference is a contract: a renamed or removed option shows here.
func TestReferenceGolden(t *testing.T) {
	t.Parallel()
	golden(t, "reference.golden", encode(t, Reference()))
}

func TestSettingsGolden(t *testing.T) {
	t.Parallel()
	cfg, err := loadFixture("good", "WALPOST_SLOT=from_env")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, s := range cfg.Settings() {
		b.WriteString(s.Name + " " + s.Text() + " # " + s.Origin + "\n")
	}
	b.Write(encode(t, cfg.Settings()))
	golden(t, "settings.golden", b.Bytes())
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
