package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/walpost/walpost/internal/testkit/proc"
)

// CacheEnv is the environment variable that names the cache's folder.
const CacheEnv = "WALPOST_TEST_CACHE"

// Cache is a folder of things that are made once.
type Cache struct {
	Dir string
	Log func(format string, args ...any)
}

// Open finds the cache's folder: the first that exists or can be created and
// that the user can read.
func Open(user proc.User, log func(string, ...any)) (*Cache, error) {
	if log == nil {
		log = func(string, ...any) {}
	}
	var dirs []string
	if dir := os.Getenv(CacheEnv); dir != "" {
		dirs = append(dirs, dir)
	} else {
		if dir, err := os.UserCacheDir(); err == nil {
			dirs = append(dirs, filepath.Join(dir, "walpost-test"))
		}
		name := "walpost-test-cache-" + strconv.Itoa(os.Geteuid())
		dirs = append(dirs, filepath.Join(os.TempDir(), name), filepath.Join("/tmp", name))
	}
	var errs []error
	for _, dir := range dirs {
		err := usable(dir, user)
		if err == nil {
			return &Cache{Dir: dir, Log: log}, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("find a folder for the cache of server binaries: %w", errors.Join(errs...))
}

func usable(dir string, user proc.User) error {
	// Not before the parent was looked at: no empty folder in a place that is
	// of no use.
	parent := filepath.Dir(dir)
	if _, err := os.Stat(parent); err == nil {
		if err := user.Reaches(parent); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return user.Reaches(dir)
}

// Once returns the folder of that name, which build fills in if it is not there
// yet. What build is given is renamed when it returns, so nothing in there may
// hold its own path.
func (c *Cache) Once(ctx context.Context, name string, build func(dir string) error) (string, error) {
	path := filepath.Join(c.Dir, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	lock, err := proc.TakeLock(ctx, path+".lock")
	if err != nil {
		return "", err
	}
	defer lock.Unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil // somebody else built it while we waited
	}
	partial := path + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return "", err
	}
	if err := os.Mkdir(partial, 0o755); err != nil {
		return "", err
	}
	if err := build(partial); err != nil {
		return "", errors.Join(err, os.RemoveAll(partial))
	}
	return path, os.Rename(partial, path)
}
