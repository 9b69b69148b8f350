package socket

import (
	"syscall"
	"time"
)

const (
	beat   = time.Millisecond
	pause  = 4 * beat  // without data; ends a flow
	steady = 10 * beat // is how old a flow must be: the pieces of one transaction are none
	looks  = 2         // at a silent socket, until the kernel is left to wake us
	plenty = 32 << 10  // bytes at once, which are worth being woken for
)

// flow tells when what a connection receives is better looked for on the beat than
// waited for. It belongs to one Read at a time.
//
// To read less often is not enough: the kernel wakes the process for each piece
// that arrives, whether somebody waits for it or not. So SO_RCVLOWAT is raised as
// long as we look, and back at 1 before anybody waits. See socket(7): since
// Linux 2.4 poll and epoll too do not report less; the end of a stream and errors
// they report at all times.
type flow struct {
	in    *side
	fd    syscall.RawConn
	look  func(fd uintptr) bool
	found bool // by look
	high  bool // SO_RCVLOWAT
	err   error
	set   func(fd uintptr)

	since, last time.Duration // by clock: when it began, when it last gave data
	more        bool          // is there, most likely
}

func newFlow(in *side, fd syscall.RawConn) *flow {
	f := &flow{in: in, fd: fd, last: -pause}
	f.look = func(fd uintptr) bool {
		f.found = in.once(fd)
		return true
	}
	f.set = func(fd uintptr) {
		size := 1
		if f.high {
			size = plenty
		}
		f.err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, size)
	}
	return f
}

var started = time.Now()

func clock() time.Duration { return time.Since(started) }

// await reads on the beat. It reports false when the caller has to wait for the
// socket instead.
func (f *flow) await(b []byte) (done bool, err error) {
	if f == nil {
		return false, nil
	}
	now := clock()
	if !together.Load() || f.more || now-f.last > pause || f.last-f.since < steady {
		return false, f.wake(false)
	}
	if err := f.wake(true); err != nil {
		return false, err
	}
	for range looks {
		time.Sleep(beat - clock()%beat)
		if err := f.in.with(b, f.look); err != nil || f.found {
			return true, err
		}
	}
	return false, f.wake(false)
}

// got notes how much a read gave, of how much there was room for.
func (f *flow) got(n, room int) {
	if f == nil || n == 0 {
		return
	}
	now := clock()
	if now-f.last > pause {
		f.since = now
	}
	f.last, f.more = now, n >= plenty || n == room
}

// wake sets from how many bytes on the kernel wakes the process.
func (f *flow) wake(high bool) error {
	if f.high == high {
		return nil
	}
	f.high = high
	if err := f.fd.Control(f.set); err != nil {
		return err
	}
	return f.err
}
