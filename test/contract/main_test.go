package contract

import (
	"flag"
	"testing"

	"github.com/walpost/walpost/internal/testkit"
)

// root is that of the repository.
const root = "../.."

func TestMain(m *testing.M) {
	// The tests wait far more than they compute.
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("6")
	}
	testkit.DependOn(root, "cmd", "checkpoint", "decoder", "internal", "outbox", "sink", "slot", "test/contract/goexample", "docs/examples")
	testkit.Main(m)
}

// program builds a package of this repository, with the race detector if the tests
// have it, and returns the path of the result.
func program(t *testing.T, pkg string) string {
	t.Helper()
	return testkit.Program(t, pkg, testkit.RaceFlag()...)
}
