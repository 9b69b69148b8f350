package socket

import (
	"syscall"
	"time"
)

const (
	beat   = time.Millisecond
	often  = 7 * beat / 4 // between pieces, on average: below, they are looked for
	seldom = 5 * beat / 2 // above, they are waited for
	apart  = beat / 2     // less is between pieces of one transaction, and counts as nothing
	pause  = 16 * beat    // more counts as this
	looks  = 3            // at a silent socket, until the kernel is left to wake us
	plenty = 32 << 10     // bytes at once, which are worth being woken for
)

// flow tells when what a connection receives is better looked for on the beat than
// waited for. It belongs to one Read at a time.
//
// To read less often is not enough: the kernel wakes the process for each piece
// that arrives, whether somebody waits for it or not. So SO_RCVLOWAT is raised as
// long as we look, and back at 1 before anybody waits. See socket(7): since
// Linux 2.6.28 poll and epoll do not report less; the end of a stream and errors
// they report at all times.
//
// Looking costs more than waiting where there is little to find, and so does to
// change between the two; hence an average, with a space between on and off.
type flow struct {
	in    *side
	fd    syscall.RawConn
	look  func(fd uintptr) bool
	found bool // by look
	high  bool // SO_RCVLOWAT is plenty
	off   bool // it cannot be raised here
	size  int  // for set
	err   error
	set   func(fd uintptr)

	last  time.Duration // by clock: when a piece came
	gap   time.Duration // between pieces, on average over the last eight or so
	flows bool
	more  bool // is there, most likely
}

func newFlow(in *side, fd syscall.RawConn) *flow {
	f := &flow{in: in, fd: fd, last: clock() - pause, gap: pause}
	f.look = func(fd uintptr) bool {
		f.found = in.once(fd)
		return true
	}
	f.set = func(fd uintptr) {
		f.err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, f.size)
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
	if f.off || !f.flows || f.more || !together.Load() || clock()-f.last > seldom {
		return false, f.wake(1)
	}
	if err := f.wake(plenty); err != nil {
		f.off = true // or closed, which the caller will see
		return false, nil
	}
	for range looks {
		time.Sleep(beat - clock()%beat)
		if err := f.in.with(b, f.look); err != nil || f.found {
			return true, err
		}
	}
	return false, f.wake(1)
}

// got notes how much a read gave, of how much there was room for.
func (f *flow) got(n, room int) {
	if f == nil || n == 0 {
		return
	}
	f.more = n >= plenty || n == room
	now := clock()
	gap := now - f.last
	if gap < apart {
		return
	}
	f.last = now
	f.gap += (min(gap, pause) - f.gap) / 8
	switch {
	case f.gap < often:
		f.flows = true
	case f.gap > seldom:
		f.flows = false
	}
}

// wake sets from how many bytes on the kernel wakes the process.
func (f *flow) wake(size int) error {
	if f.high == (size > 1) {
		return nil
	}
	f.size = size
	if err := f.fd.Control(f.set); err != nil {
		return err
	}
	if f.err == nil {
		f.high = size > 1
	}
	return f.err
}
