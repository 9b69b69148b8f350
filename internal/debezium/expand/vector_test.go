package expand

import (
	"bufio"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/walpost/walpost/internal/debezium/connect"
)

// converters are those that the vectors were recorded with.
type converters struct{ json, text connect.Converter }

func newConverters(t testing.TB) converters {
	t.Helper()
	j, err := connect.New(connect.ClassJSON, connect.RoleValue, nil, connect.Options{JavaVersion: 17})
	if err != nil {
		t.Fatal(err)
	}
	s, err := connect.New(connect.ClassString, connect.RoleValue, nil, connect.Options{JavaVersion: 17})
	if err != nil {
		t.Fatal(err)
	}
	return converters{j, s}
}

// payloadSchema is that of a nullable jsonb column.
func payloadSchema() *connect.Schema {
	version := int32(1)
	return &connect.Schema{Type: connect.String, Optional: true, Name: "io.debezium.data.Json", Version: &version}
}

// Each line of the vectors is the payload in base64, Debezium's outcome, and what
// its JsonConverter with schemas and its StringConverter make of the result, in
// base64, or with an exclamation mark in front the exception.
func TestVectors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ file, null, array string }{
		{"ignore-ignore.txt", "", ""},
		{"bytes-ignore.txt", "optional_bytes", "ignore"},
		{"ignore-string.txt", "ignore", "optional_string"},
		{"bytes-string.txt", "OPTIONAL_BYTES", " optional_string "},
	} {
		t.Run(test.file, func(t *testing.T) {
			t.Parallel()
			e, err := New(Options{JSONNull: test.null, JSONEmptyArray: test.array})
			if err != nil {
				t.Fatal(err)
			}
			file, err := os.Open(filepath.Join("testdata", test.file))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			c, kept := newConverters(t), payloadSchema()
			scan := bufio.NewScanner(file)
			scan.Buffer(nil, 1<<24)
			lines, faults := 0, 0
			for ; scan.Scan() && faults < 10; lines++ {
				field := strings.Split(scan.Text(), "\t")
				payload := decode(t, field[0])
				s, v, outcome, err := e.Expand(payload)
				if (outcome == Expanded) != (err == nil) {
					t.Errorf("%.200s: %v with %v", payload, outcome, err)
				}
				if outcome == Kept {
					s, v = kept, connect.Value{Valid: true, Bytes: payload}
				}
				got := [...]string{Kept: "kept", Expanded: "expanded", Replaced: "replaced"}[outcome]
				if got != field[1] {
					t.Errorf("%.200s: got %s (%v), want %s", payload, got, err, field[1])
					faults++
				}
				if !same(t, c.json, s, v, field[2], payload) || !same(t, c.text, s, v, field[3], payload) {
					faults++
				}
			}
			if lines < 100 {
				t.Errorf("only %d vectors", lines)
			}
		})
	}
}

func same(t *testing.T, c connect.Converter, s *connect.Schema, v connect.Value, want string, payload []byte) bool {
	t.Helper()
	out, null, err := c.Convert(nil, s, v)
	switch {
	case want[0] == '!':
		if err == nil {
			t.Errorf("%.200s: got %.200s, want %s", payload, out, want)
		}
		return err != nil
	case err != nil:
		t.Errorf("%.200s: %v", payload, err)
		return false
	case null:
		t.Errorf("%.200s: got null", payload)
		return false
	case string(out) != string(decode(t, want)):
		t.Errorf("%.200s:\n got %s\nwant %s", payload, out, decode(t, want))
		return false
	}
	return true
}

func decode(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
