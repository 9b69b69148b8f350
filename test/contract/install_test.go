package contract

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/fetch"
	"github.com/walpost/walpost/internal/testkit/proc"
)

// command is an example that can be run.
type command struct {
	name string
	run  []string
	env  []string
}

// leftovers of building an example by hand are not part of it.
var leftovers = []string{"target", "node_modules", "__pycache__", "packages", ".venv", "bin", "obj"}

// prepare installs an example, and skips the test if the machine has not what it
// needs.
func (e example) prepare(t *testing.T) command {
	t.Helper()
	if testing.Short() {
		t.Skip("needs real servers: run without -short")
	}
	for _, name := range e.needs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("the example %s needs %s, which is not on PATH", e.name, name)
		}
	}
	if e.dir == "" {
		return command{name: e.name, run: []string{program(t, "test/contract/goexample")}}
	}
	cache, err := fetch.Open(proc.Self(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(root, e.dir)
	key, err := e.key(source)
	if err != nil {
		t.Fatal(err)
	}
	ctx := testkit.Context(t)
	home, err := cache.Once(ctx, "example-"+filepath.Base(e.dir)+"-"+key, func(dir string) error {
		if err := copyExample(source, dir); err != nil {
			return err
		}
		for _, args := range e.install {
			if err := e.runInstall(ctx, dir, args); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("install the example %s: %v\nIts programs are there (%s), so its packages have to be, too: see whether their registry can be reached.",
			e.name, err, strings.Join(e.needs, ", "))
	}
	return command{name: e.name, run: inHome(e.run, home), env: inHome(e.env, home)}
}

// runInstall runs one of the commands in the folder.
func (e example) runInstall(ctx context.Context, dir string, args []string) error {
	args = inHome(args, dir)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), inHome(e.env, dir)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func inHome(texts []string, home string) []string {
	var all []string
	for _, text := range texts {
		all = append(all, strings.ReplaceAll(text, "{home}", home))
	}
	return all
}

// key is made of the files' names and content, and how they are installed.
func (e example) key(source string) (string, error) {
	parts := [][]byte{[]byte(fmt.Sprint(e.install, e.env))}
	err := walkExample(source, func(name string) error {
		content, err := os.ReadFile(filepath.Join(source, name))
		parts = append(parts, []byte(name), content)
		return err
	})
	if err == nil && len(parts) == 1 {
		err = errors.New("no files in " + source)
	}
	return fetch.Key(parts...), err
}

func copyExample(source, dir string) error {
	return walkExample(source, func(name string) error {
		content, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return err
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, content, 0o644)
	})
}

func walkExample(source string, visit func(name string) error) error {
	return filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(leftovers, d.Name()) && path != source:
			return filepath.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		name, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		return visit(name)
	})
}
