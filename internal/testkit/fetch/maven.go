package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Error says that binaries could not be got.
type Error struct {
	What string
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("get %s from Maven: %v", e.What, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *Error) Hint() string {
	return "install Maven (mvn on PATH) with access to Maven Central or a mirror of it"
}

// plugin is pinned: what mvn picks by itself depends on its version.
const plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"

// Postgres returns the folder with bin, lib and share of that version.
func (c *Cache) Postgres(ctx context.Context, version string) (string, error) {
	system := runtime.GOOS + "-" + runtime.GOARCH
	if runtime.GOARCH == "arm64" {
		system += "v8"
	}
	dir, err := c.Once(ctx, "postgres-"+version+"-"+system, func(dir string) error {
		artifact := "io.zonky.test.postgres:embedded-postgres-binaries-" + system + ":" + version + ":jar"
		c.Log("fetching %s (once)", artifact)
		jars := filepath.Join(dir, "jar")
		if err := maven(ctx, "dependency:copy", "-Dartifact="+artifact, "-DoutputDirectory="+jars); err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(jars, "*.jar"))
		if err != nil || len(files) != 1 {
			return fmt.Errorf("want one jar in %s, have %d", jars, len(files))
		}
		if err := unpackJar(files[0], dir); err != nil {
			return err
		}
		return os.RemoveAll(jars)
	})
	if err != nil {
		return "", &Error{What: "PostgreSQL " + version, Err: err}
	}
	return dir, nil
}

// Jars returns the folder with all runtime dependencies of a pom.
func (c *Cache) Jars(ctx context.Context, name string, pom []byte) (string, error) {
	dir, err := c.Once(ctx, name+"-"+Key(pom), func(dir string) error {
		c.Log("fetching the jars of %s (once)", name)
		file := filepath.Join(dir, "pom.xml")
		if err := os.WriteFile(file, pom, 0o644); err != nil {
			return err
		}
		return maven(ctx, "dependency:copy-dependencies", "-f", file,
			"-DoutputDirectory="+dir, "-DincludeScope=runtime")
	})
	if err != nil {
		return "", &Error{What: name, Err: err}
	}
	return dir, nil
}

// Key returns a short name for some content.
func Key(parts ...[]byte) string {
	sum := sha256.Sum256(bytes.Join(parts, []byte{0}))
	return hex.EncodeToString(sum[:6])
}

func maven(ctx context.Context, goal string, args ...string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return err
	}
	_, name, _ := bytes.Cut([]byte(goal), []byte(":"))
	cmd := exec.CommandContext(ctx, mvn, append([]string{"-q", "-B", plugin + ":" + string(name)}, args...)...)
	cmd.Dir = os.TempDir() // not in a folder that may hold a pom of somebody
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mvn %s: %w: %s", goal, err, bytes.TrimSpace(out))
	}
	return nil
}
