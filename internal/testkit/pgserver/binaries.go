package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/walpost/walpost/internal/testkit/fetch"
	"github.com/walpost/walpost/internal/testkit/proc"
)

// artifacts are the versions that are fetched when none is installed.
var artifacts = map[int]string{
	14: "14.23.0",
	15: "15.18.0",
	16: "16.14.0",
	17: "17.10.0",
	18: "18.4.0",
}

const newest = 18

// Majors returns the major versions that can be started, oldest first.
func Majors() []int { return []int{14, 15, 16, 17, newest} }

// Binaries is an unpacked or installed PostgreSQL.
type Binaries struct {
	Dir     string // with initdb and postgres
	Version string // such as 17.10
	Major   int
	Source  string // "the machine" or "Maven artifacts"
}

// NoBinariesError says that there is no server to start.
type NoBinariesError struct {
	Major int
	Err   error
}

func (e *NoBinariesError) Error() string {
	return fmt.Sprintf("find PostgreSQL %d: none installed, and %v", e.Major, e.Err)
}

// Unwrap returns the cause.
func (e *NoBinariesError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *NoBinariesError) Hint() string {
	return fmt.Sprintf("install the server package of PostgreSQL %d, or Maven (mvn on PATH) with access to Maven Central", e.Major)
}

// Find looks for binaries of that major version, 0 for any.
func Find(ctx context.Context, major int, log func(string, ...any)) (Binaries, error) {
	user, err := proc.Unprivileged()
	if err != nil {
		return Binaries{}, err
	}
	if found, ok := installed(ctx, user, major); ok {
		return found, nil
	}
	if major == 0 {
		major = newest
	}
	version, ok := artifacts[major]
	if !ok {
		return Binaries{}, &NoBinariesError{Major: major, Err: errors.New("artifacts are known for 14 to 18 only")}
	}
	cache, err := fetch.Open(user, log)
	if err != nil {
		return Binaries{}, err
	}
	dir, err := cache.Postgres(ctx, version)
	if err != nil {
		return Binaries{}, &NoBinariesError{Major: major, Err: err}
	}
	found, err := inspect(ctx, user, filepath.Join(dir, "bin"))
	if err != nil {
		return Binaries{}, &NoBinariesError{Major: major, Err: err}
	}
	found.Source = "Maven artifacts"
	return found, nil
}

// installed finds the newest installed server of that major version.
func installed(ctx context.Context, user proc.User, major int) (Binaries, bool) {
	var best Binaries
	for _, dir := range installedDirs(ctx) {
		found, err := inspect(ctx, user, dir)
		if err != nil || major != 0 && found.Major != major || found.Major <= best.Major {
			continue
		}
		best = found
		best.Source = "the machine"
	}
	return best, best.Dir != ""
}

func installedDirs(ctx context.Context) []string {
	var dirs []string
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
		"/usr/pgsql-*/bin",                   // Red Hat
		"/opt/homebrew/opt/postgresql@*/bin", // macOS
		"/usr/local/opt/postgresql@*/bin",
	} {
		found, _ := filepath.Glob(pattern)
		dirs = append(dirs, found...)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) ((\d+)\.\d+)`)

// inspect runs the server as the user that it is for, so a folder that the user
// cannot reach does not count.
func inspect(ctx context.Context, user proc.User, dir string) (Binaries, error) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return Binaries{}, err
	}
	out, err := proc.Run(ctx, user, proc.Env(), filepath.Join(dir, "postgres"), "--version")
	if err != nil {
		return Binaries{}, err
	}
	match := versionPattern.FindStringSubmatch(out)
	if match == nil {
		return Binaries{}, fmt.Errorf("%s --version says %q", dir, out)
	}
	major, err := strconv.Atoi(match[2])
	if err != nil {
		return Binaries{}, err
	}
	return Binaries{Dir: dir, Version: match[1], Major: major}, nil
}

// Tool returns the path of a client program such as pg_recvlogical or pgbench:
// the server's own, else an installed one (Maven artifacts have none).
func (s *Server) Tool(ctx context.Context, name string) (string, error) {
	for _, dir := range append([]string{s.binaries.Dir}, installedDirs(ctx)...) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find %s: %w (install the PostgreSQL client programs)", name, err)
	}
	return path, nil
}
