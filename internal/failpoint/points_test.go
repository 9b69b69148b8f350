package failpoint

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	use     = regexp.MustCompile(`failpoint\.(Hit|Fail)\(([^)]*)\)`)
	literal = regexp.MustCompile(`^"([a-z]+\.[a-z]+(?:-[a-z]+)*)"$`)
)

// uses finds every call in the product's sources.
func uses(t *testing.T) (calls map[string][]string, files map[string][]string) {
	t.Helper()
	calls, files = map[string][]string{}, map[string][]string{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch rel, _ := filepath.Rel(root, path); filepath.ToSlash(rel) {
			case "test", "internal/failpoint", "internal/testkit", ".git":
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range use.FindAllStringSubmatch(string(text), -1) {
			name := literal.FindStringSubmatch(m[2])
			if name == nil {
				t.Errorf("%s: %s: the name must be written out, as package.what-happens", path, m[0])
				continue
			}
			calls[name[1]] = append(calls[name[1]], m[1])
			files[name[1]] = append(files[name[1]], path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return calls, files
}

// TestRegistry: each registered point is in the product, once, in the package
// that its name says, and nothing else is.
func TestRegistry(t *testing.T) {
	t.Parallel()
	calls, files := uses(t)
	registered := map[string]bool{}
	for _, p := range Points() {
		if registered[p.Name] {
			t.Errorf("%s is registered twice", p.Name)
		}
		registered[p.Name] = true
		want := "Hit"
		if p.Fails {
			want = "Fail"
		}
		switch got := calls[p.Name]; {
		case len(got) != 1:
			t.Errorf("%s is in the product %d times, want once: %v", p.Name, len(got), files[p.Name])
		case got[0] != want:
			t.Errorf("%s is a call of %s, registered as one of %s", p.Name, got[0], want)
		case filepath.Base(filepath.Dir(files[p.Name][0])) != p.Name[:strings.IndexByte(p.Name, '.')]:
			t.Errorf("%s is in %s", p.Name, files[p.Name][0])
		}
	}
	for name := range calls {
		if !registered[name] {
			t.Errorf("%s (%s) is not registered", name, files[name])
		}
	}
}
