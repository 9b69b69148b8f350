package contract

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

// root is that of the repository.
const root = "../.."

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "walpost-contract-")
	if err != nil {
		panic(err)
	}
	programs.dir = dir
	// The tests wait far more than they compute.
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("6")
	}
	dependOnSources()
	testkit.OnClose(func() error { return os.RemoveAll(dir) })
	testkit.Main(m)
}

// dependOnSources looks at the files of the programs and the examples: "go test"
// remembers which files a test looked at, and does not take an old result for new
// code.
func dependOnSources() {
	for _, folder := range []string{"cmd", "checkpoint", "decoder", "internal", "outbox", "sink", "slot", "test/contract/goexample", "docs/examples"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
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

// programs of this repository are built by the first test that wants them.
var programs struct {
	dir   string
	mu    sync.Mutex
	built map[string]error
}

// program builds a package of this repository, with the race detector if the tests
// have it, and returns the path of the result.
func program(t *testing.T, pkg string) string {
	t.Helper()
	programs.mu.Lock()
	defer programs.mu.Unlock()
	path := filepath.Join(programs.dir, filepath.Base(pkg))
	err, done := programs.built[pkg]
	if !done {
		args := []string{"build", "-o", path}
		if raceDetector {
			args = append(args, "-race")
		}
		cmd := exec.CommandContext(testkit.Context(t), "go", append(args, pkg)...)
		cmd.Dir = root
		var out []byte
		if out, err = cmd.CombinedOutput(); err != nil {
			t.Logf("%s", out)
		}
		if programs.built == nil {
			programs.built = map[string]error{}
		}
		programs.built[pkg] = err
	}
	if err != nil {
		t.Fatalf("build %s: %v", pkg, err)
	}
	return path
}
