package failpoint

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// build builds the program and returns its bytes and its symbols.
func build(t *testing.T, flags ...string) (program []byte, symbols string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "walpost")
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir = filepath.Join("..", "..")
		var errOut strings.Builder
		cmd.Stderr = &errOut
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &errOut)
		}
		return string(out)
	}
	run(append(append([]string{"build", "-o", path}, flags...), "./cmd/walpost")...)
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return program, run("tool", "nm", path)
}

// TestRelease: a program without the tag holds nothing of this package, neither
// as code nor as text. With the tag it holds all of it, which shows that the
// test looks for the right things.
func TestRelease(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the program twice: run without -short")
	}
	texts := []string{Env, "internal/failpoint."}
	for _, p := range Points() {
		texts = append(texts, p.Name)
	}
	for _, c := range []struct {
		flags []string
		want  bool
	}{{nil, false}, {[]string{"-tags", "failpoint"}, true}} {
		program, symbols := build(t, c.flags...)
		for _, text := range texts {
			if got := bytes.Contains(program, []byte(text)); got != c.want {
				t.Errorf("go build %v: contains %q: %v, want %v", c.flags, text, got, c.want)
			}
		}
		for _, symbol := range []string{"internal/failpoint.Points", "internal/failpoint.(*set).hit", "internal/failpoint.current"} {
			if got := strings.Contains(symbols, symbol); got != c.want {
				t.Errorf("go build %v: symbol %s: %v, want %v", c.flags, symbol, got, c.want)
			}
		}
		if !c.want && strings.Contains(symbols, "internal/failpoint") {
			t.Errorf("go build %v: symbols of this package:\n%s", c.flags, symbols)
		}
	}
}
