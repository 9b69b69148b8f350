// Package e2e runs the real binary between a real PostgreSQL and a real Kafka.
package e2e

import (
	"flag"
	"os"
	"testing"

	"github.com/walpost/walpost/internal/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv(consumerVariable) != "" {
		os.Exit(consumerProcess())
	}
	// The tests wait far more than they compute.
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("6")
	}
	testkit.DependOn("../..", "cmd", "checkpoint", "decoder", "internal", "sink", "slot")
	testkit.Main(m)
}

// binary builds cmd/walpost: with the race detector if the tests have it, or
// always without.
func binary(t *testing.T, plain bool) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs real servers: run without -short")
	}
	if plain {
		return testkit.Program(t, "cmd/walpost")
	}
	return testkit.Program(t, "cmd/walpost", testkit.RaceFlag()...)
}
