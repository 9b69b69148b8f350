package testkit

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/walpost/walpost/"

// Build builds a package of this repository, such as cmd/walpost.
func Build(t testing.TB, path, pkg string, flags ...string) {
	t.Helper()
	if err := build(t, path, pkg, flags); err != nil {
		t.Fatalf("build %s: %v", pkg, err)
	}
}

func build(t testing.TB, path, pkg string, flags []string) error {
	t.Helper()
	args := append([]string{"build", "-o", path}, flags...)
	out, err := exec.Command("go", append(args, module+pkg)...).CombinedOutput()
	if err != nil {
		t.Logf("%s", out)
	}
	return err
}

// programs are built by the first test that wants them.
var programs struct {
	mu    sync.Mutex
	dir   string
	built map[string]error // by name in dir
}

// Program builds a package of this repository once for all tests of a binary, and
// returns the path of the result.
func Program(t testing.TB, pkg string, flags ...string) string {
	t.Helper()
	needMain(t)
	programs.mu.Lock()
	defer programs.mu.Unlock()
	if programs.dir == "" {
		dir, err := os.MkdirTemp("", "walpost-programs-")
		if err != nil {
			t.Fatal(err)
		}
		suite.onClose(func() error { return os.RemoveAll(dir) })
		programs.dir, programs.built = dir, map[string]error{}
	}
	name := strings.Join(append([]string{filepath.Base(pkg)}, flags...), "")
	path := filepath.Join(programs.dir, name)
	err, done := programs.built[name]
	if !done {
		err = build(t, path, pkg, flags)
		programs.built[name] = err
	}
	if err != nil {
		t.Fatalf("build %s: %v", pkg, err)
	}
	return path
}

// RaceFlag is -race for what is built or tested for tests that have it.
func RaceFlag() []string {
	if Race {
		return []string{"-race"}
	}
	return nil
}

// DependOn looks at the files in folders of the repository, whose root is given:
// "go test" remembers which files a test looked at, and does not take an old result
// for new code. It is for TestMain, and panics when there is no such folder.
func DependOn(root string, folders ...string) {
	for _, folder := range folders {
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
