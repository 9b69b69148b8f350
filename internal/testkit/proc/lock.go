package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ErrLocked says that another process, or another part of this one, holds the
// lock.
var ErrLocked = errors.New("locked")

// Lock is a file lock. The kernel drops it when its owner dies; children do not
// inherit it, since Go opens files close-on-exec.
type Lock struct{ file *os.File }

// TryLock takes the lock of that file or returns ErrLocked.
func TryLock(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", path, ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &Lock{file: file}, nil
}

// TakeLock waits for the lock of that file.
func TakeLock(ctx context.Context, path string) (*Lock, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		lock, err := TryLock(path)
		if !errors.Is(err, ErrLocked) {
			return lock, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock %s: %w", path, context.Cause(ctx))
		}
	}
}

// Unlock releases the lock.
func (l *Lock) Unlock() {
	// Closing the last descriptor releases it; there is nothing to flush.
	l.file.Close()
}
