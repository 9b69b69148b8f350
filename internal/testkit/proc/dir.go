package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// maxRoot keeps unix sockets below the 107 bytes that a socket address holds.
const maxRoot = 60

// root returns the folder that holds the folders of all running servers: below
// the temporary directory if that is short and everybody may pass it, else
// below /tmp.
func root() (string, error) {
	name := "walpost-test-" + strconv.Itoa(os.Geteuid())
	dir := filepath.Join(os.TempDir(), name)
	user, err := Unprivileged()
	if err != nil {
		user = Self()
	}
	if len(dir) > maxRoot || user.Reaches(os.TempDir()) != nil {
		dir = filepath.Join("/tmp", name)
	}
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	// The name can be guessed and everybody may write to /tmp.
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || ok && int(stat.Uid) != os.Geteuid() {
		return "", fmt.Errorf("%s is not a folder of ours", dir)
	}
	return dir, os.Chmod(dir, 0o711)
}

// Dir is a folder for the data of one server. It is locked while its owner
// lives, so that what a killed owner left can be told from what is in use.
type Dir struct {
	Path string
	lock *Lock
}

// NewDir creates a folder that everybody may pass but not list, and deletes
// those whose owner died without removing them.
func NewDir(ctx context.Context, name string) (*Dir, error) {
	dir, err := newDir(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("create a folder for %s: %w", name, err)
	}
	return dir, nil
}

func newDir(ctx context.Context, name string) (*Dir, error) {
	root, err := root()
	if err != nil {
		return nil, err
	}
	// Creating and locking has to be one step for those who sweep.
	all, err := TakeLock(ctx, filepath.Join(root, "lock"))
	if err != nil {
		return nil, err
	}
	defer all.Unlock()
	sweep(root)
	path, err := os.MkdirTemp(root, "run-"+name+"-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o711); err != nil {
		return nil, err
	}
	lock, err := TryLock(path + ".lock")
	if err != nil {
		return nil, err
	}
	return &Dir{Path: path, lock: lock}, nil
}

func sweep(root string) {
	locks, _ := filepath.Glob(filepath.Join(root, "run-*.lock"))
	for _, path := range locks {
		lock, err := TryLock(path)
		if err != nil {
			continue // in use
		}
		// What cannot be deleted now, because its server is still ending, is
		// for the next sweep: so the lock file goes last.
		if os.RemoveAll(strings.TrimSuffix(path, ".lock")) == nil {
			_ = os.Remove(path)
		}
		lock.Unlock()
	}
}

// Remove deletes the folder.
func (d *Dir) Remove() error {
	err := os.RemoveAll(d.Path)
	if err == nil {
		err = os.Remove(d.Path + ".lock")
	}
	d.lock.Unlock()
	return err
}
