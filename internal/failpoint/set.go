package failpoint

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// set is what is armed.
type set struct {
	points map[string]*armed
	out    io.Writer // is told before a point acts
	die    func()    // does not return
	wait   func()    // between two looks at the file of a stall
}

type armed struct {
	spec
	hits atomic.Int64
}

func newSet(text string) (*set, error) {
	specs, err := parse(text)
	if err != nil {
		return nil, err
	}
	s := &set{
		points: make(map[string]*armed, len(specs)),
		out:    os.Stderr,
		die:    die,
		wait:   func() { time.Sleep(5 * time.Millisecond) },
	}
	for name, spec := range specs {
		s.points[name] = &armed{spec: spec}
	}
	return s, nil
}

// hit does what the point is armed for; only fail gives an error.
func (s *set) hit(name string) error {
	a := s.points[name]
	if a == nil {
		return nil
	}
	n := a.hits.Add(1)
	if a.nth != 0 && n != a.nth {
		return nil
	}
	// One write: other goroutines log meanwhile.
	_, _ = fmt.Fprintf(s.out, "failpoint %s: %s at hit %d\n", name, a.action, n)
	switch a.action {
	case crash:
		s.die()
	case stall:
		s.stall(a.until)
		_, _ = fmt.Fprintf(s.out, "failpoint %s: goes on\n", name)
	case fail:
		return &Error{name}
	}
	return nil
}

// stall waits until there is no such file.
func (s *set) stall(path string) {
	for {
		if path != "" {
			if _, err := os.Stat(path); os.IsNotExist(err) {
				return
			}
		}
		s.wait()
	}
}

// die ends the process as SIGKILL does: no deferred call, no exit handler, no
// flush.
func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // until it has taken effect
}

// Error is what Fail returns at an armed point. It is a connection that was cut
// to everybody who asks: the one failure that every step with another system
// must be ready for, and after which nobody knows whether it was taken.
type Error struct{ Point string }

func (e *Error) Error() string { return "failpoint " + e.Point + ": " + syscall.ECONNRESET.Error() }

// Unwrap gives the cut connection.
func (e *Error) Unwrap() error { return syscall.ECONNRESET }
