// Package test holds what concerns the repository as a whole: who may import
// whom, and the suites in its subfolders.
package test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/walpost/walpost/"

// mayImport says which of our packages a package may import. A package that is
// not listed fails the test: who may import it has to be decided.
var mayImport = map[string][]string{
	"decoder":            {},
	"checkpoint":         {"internal/pg", "internal/failpoint"},
	"slot":               {"internal/pg", "internal/failpoint", "internal/poison"},
	"sink":               {"internal/retry", "internal/failpoint", "internal/poison", "internal/socket"},
	"sink/sinktest":      {"sink"},
	"internal/event":     {"decoder"},
	"internal/route":     {"decoder", "internal/event", "sink"},
	"internal/relay":     {"slot", "decoder", "sink", "checkpoint", "internal/event", "internal/route", "internal/retry", "internal/failpoint", "internal/pg"},
	"internal/metrics":   {"slot", "sink"},
	"internal/admin":     {"internal/relay", "internal/metrics", "slot", "sink"},
	"outbox":             {},
	"outbox/outboxkafka": {"outbox"},
	"outbox/outboxprom":  {"outbox"},
	"outbox/outboxtest":  {"outbox"},
	"internal/setup":     {"outbox", "checkpoint", "slot", "internal/pg", "internal/event"},
	"internal/config":    {"internal/pg"},
	"internal/drill":     {"outbox", "outbox/outboxkafka", "slot", "internal/pg", "internal/retry", "internal/setup"},
	"internal/cli":       {},
	"internal/logging":   {},
	"internal/retry":     {},
	"internal/failpoint": {},
	"internal/pg":        {"internal/socket"},
	"internal/poison":    {},
	"internal/socket":    {},
	"internal/wire": {
		"decoder", "checkpoint",
		"slot", "sink", "internal/relay", "internal/event", "internal/route", "internal/pg",
		"internal/config", "internal/metrics", "internal/socket", "internal/admin",
	},
	"internal/debezium": {
		"decoder", "slot", "sink", "internal/route", "internal/pg", "internal/retry",
		"internal/debezium/catalog", "internal/debezium/column", "internal/debezium/connect", "internal/debezium/connector",
		"internal/debezium/router", "internal/debezium/start",
	},
	"internal/debezium/catalog":   {"internal/debezium/column"},
	"internal/debezium/column":    {"internal/debezium/connect"},
	"internal/debezium/connect":   {},
	"internal/debezium/connector": {"internal/config", "internal/debezium/column", "internal/debezium/javaregex", "internal/debezium/router"},
	"internal/debezium/expand":    {"internal/debezium/connect"},
	"internal/debezium/javaregex": {},
	"internal/debezium/offsets":   {"sink"},
	"internal/debezium/router": {
		"decoder", "sink", "internal/event", "internal/route",
		"internal/debezium/column", "internal/debezium/connect", "internal/debezium/expand", "internal/debezium/javaregex",
	},
	"internal/debezium/start": {"slot", "internal/pg", "internal/debezium/connector", "internal/debezium/javaregex"},
	"internal/debezium/takeover": {
		"slot", "sink", "checkpoint", "internal/pg", "internal/retry", "internal/setup",
		"internal/debezium/connector", "internal/debezium/offsets", "internal/debezium/start",
	},
}

// onlyIn says which packages may use a library (by import path prefix).
var onlyIn = []struct {
	library string
	why     string
	allowed []string
}{
	{"github.com/segmentio/kafka-go", "the sink is the relay's only user of the Kafka client", []string{"sink", "outbox/outboxkafka", "internal/drill"}},
	{"github.com/jackc/pglogrepl", "the replication protocol is the slot's; the others use its LSN type",
		[]string{"slot", "decoder", "checkpoint", "internal/event", "internal/relay", "internal/admin", "internal/setup", "internal/debezium/offsets", "internal/debezium/takeover", "cmd/walpost"}},
	{"github.com/jackc/pgx/v5", "PostgreSQL connections belong to the slot and pg",
		[]string{
			"slot", "checkpoint", "internal/pg", "internal/setup", "internal/wire", "cmd/walpost",
			"internal/debezium", "internal/debezium/catalog", "internal/debezium/start", "internal/debezium/takeover",
			"outbox", "outbox/outboxtest", "outbox/outboxkafka", "internal/drill",
		}},
	{"github.com/prometheus/", "metrics are named in one place", []string{"internal/metrics", "internal/admin", "outbox/outboxprom"}},
	{"github.com/spf13/", "the command line", []string{"cmd/walpost", "internal/config", "internal/cli"}},
	{"go.yaml.in/yaml", "walpost's own file is read in one place, a connector's in another", []string{"internal/config", "internal/debezium/connector"}},
	{"net/http", "the admin listener", []string{"internal/admin", "internal/metrics", "cmd/walpost"}},
}

// pure packages do no I/O and read no clock.
var pure = []string{
	"decoder", "internal/event", "internal/route", "internal/debezium/column", "internal/debezium/connect",
	"internal/debezium/expand", "internal/debezium/javaregex",
}

// testOnly modules never reach the product's binary.
var testOnly = []string{
	"github.com/twmb/franz-go", "github.com/testcontainers/", "github.com/docker/", "github.com/moby/",
	"go.uber.org/goleak", "github.com/google/go-cmp", "github.com/stretchr/", "github.com/ulikunitz/xz",
	module + "internal/testkit", module + "sink/sinktest", "testing",
}

type pkg struct {
	ImportPath string
	Imports    []string
}

// list runs go list and returns what it prints.
func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports"}, args...)...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var pkgs []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// free packages may import what they like: programs and test code.
func free(name string) bool {
	return strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "test") || strings.HasPrefix(name, "internal/testkit") ||
		strings.HasPrefix(name, "internal/demo") || strings.HasPrefix(name, "docs/examples") || name == "sink/sinktest"
}

func TestImports(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range list(t, "./...") {
		name := strings.TrimPrefix(p.ImportPath, module)
		seen[name] = true
		allowed, listed := mayImport[name]
		if !listed && !free(name) {
			t.Errorf("%s is not in the import table: decide what it may import", name)
		}
		for _, imported := range p.Imports {
			if ours, ok := strings.CutPrefix(imported, module); ok && listed && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s; it may import %v", name, ours, allowed)
			}
			for _, rule := range onlyIn {
				if strings.HasPrefix(imported, rule.library) && !slices.Contains(rule.allowed, name) && (!free(name) || name == "cmd/walpost") {
					t.Errorf("%s imports %s: %s", name, imported, rule.why)
				}
			}
			if slices.Contains(pure, name) && slices.Contains([]string{"net", "os", "io/fs", "go.uber.org/zap"}, imported) {
				t.Errorf("%s imports %s; it must stay pure", name, imported)
			}
		}
	}
	for name := range mayImport {
		if !seen[name] {
			t.Errorf("%s is in the import table and does not exist", name)
		}
	}
}

func TestBinaryHasNoTestModules(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "-deps", "./cmd/walpost") {
		for _, module := range testOnly {
			if p.ImportPath == module || strings.HasPrefix(p.ImportPath, strings.TrimSuffix(module, "/")+"/") {
				t.Errorf("the binary contains %s", p.ImportPath)
			}
		}
	}
}
