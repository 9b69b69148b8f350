package test

import (
	"io/fs"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/walpost/walpost/internal/testkit"
)

// TestModules runs vet and the tests of the modules below this one, which "go test
// ./..." leaves out. They are apart because of what they depend on.
func TestModules(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs real servers: run without -short")
	}
	var found []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "go.mod" && filepath.Dir(path) != ".." {
			found = append(found, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("no modules found: the test proves nothing")
	}
	for _, dir := range found {
		t.Run(filepath.ToSlash(dir), func(t *testing.T) {
			t.Parallel()
			for _, args := range [][]string{{"vet", "./..."}, append(append([]string{"test"}, testkit.RaceFlag()...), "./...")} {
				cmd := exec.CommandContext(t.Context(), "go", args...)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("go %s: %v\n%s", args[0], err, out)
				}
				t.Logf("go %s\n%s", args[0], out)
			}
		})
	}
}
