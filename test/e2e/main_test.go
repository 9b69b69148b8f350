// Package e2e runs the real binary between a real PostgreSQL and a real Kafka.
package e2e

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/walpost/walpost/internal/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv(consumerVariable) != "" {
		os.Exit(consumerProcess())
	}
	dir, err := os.MkdirTemp("", "walpost-e2e-")
	if err != nil {
		panic(err)
	}
	binaries.dir = dir
	// The tests wait far more than they compute.
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("6")
	}
	dependOnSources()
	// testkit.Main exits, so the folder is removed by the last thing it runs.
	testkit.OnClose(func() error { return os.RemoveAll(dir) })
	testkit.Main(m)
}

// dependOnSources looks at the files that the binary is made of: "go test"
// remembers which files a test looked at, and does not take an old result for
// new code.
func dependOnSources() {
	for _, folder := range []string{"cmd", "checkpoint", "decoder", "internal", "sink", "slot"} {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			panic(err)
		}
	}
}

// binaries are built by the first test that wants them.
var binaries struct {
	dir   string
	once  [2]sync.Once
	err   [2]error
	paths [2]string
}

// binary builds cmd/walpost: with the race detector if the tests have it, or
// always without.
func binary(t *testing.T, plain bool) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs real servers: run without -short")
	}
	i, args := 0, []string{"build"}
	if raceDetector && !plain {
		i, args = 1, append(args, "-race")
	}
	binaries.once[i].Do(func() {
		path := filepath.Join(binaries.dir, []string{"walpost", "walpost-race"}[i])
		cmd := exec.Command("go", append(args, "-o", path, "./cmd/walpost")...)
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			binaries.err[i] = err
			t.Logf("%s", out)
		}
		binaries.paths[i] = path
	})
	if err := binaries.err[i]; err != nil {
		t.Fatalf("build the binary: %v", err)
	}
	return binaries.paths[i]
}
