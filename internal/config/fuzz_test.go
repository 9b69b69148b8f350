package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Any file gives a configuration or errors of two lines, never a panic.
func FuzzFile(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, text := range []string{"", "---", "--- ~", "...", "? ", "? [a]\n: b", "\x00", "kafka: {<<: *x}", "a: &a [*a]", "!!binary x: y"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := Load(Sources{ReadFile: func(path string) ([]byte, error) {
			if path == DefaultFile {
				return data, nil
			}
			return nil, os.ErrNotExist
		}})
		if err == nil {
			cfg.Settings()
			return
		}
		var errs Errors
		if !errors.As(err, &errs) || len(errs) == 0 {
			t.Fatalf("got error %v, want Errors", err)
		}
		for _, e := range errs {
			if e.Text == "" || e.Way == "" {
				t.Errorf("a line is missing: %q, %q", e.Text, e.Way)
			}
		}
	})
}
