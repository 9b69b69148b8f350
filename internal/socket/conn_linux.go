package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// Wrap returns the connection with the cheaper calls.
func Wrap(c net.Conn) net.Conn {
	var raw syscall.RawConn
	var err error
	tcp := false
	switch c := c.(type) {
	case *net.TCPConn:
		raw, err = c.SyscallConn()
		tcp = true
	case *net.UnixConn:
		raw, err = c.SyscallConn()
	default: // TLS, or a test's
		return c
	}
	if err != nil {
		return c
	}
	w := &conn{Conn: c}
	w.in = side{raw: raw.Read, call: syscall.SYS_READ}
	w.out = side{raw: raw.Write, call: syscall.SYS_WRITE}
	w.in.try, w.out.try = w.in.once, w.out.once // once, or each call would make them anew
	if tcp {
		w.flow = newFlow(&w.in, raw)
	}
	return w
}

type conn struct {
	net.Conn
	in, out side
	flow    *flow // of in; nil where there is nothing to gain
}

// side is one direction. The buffer of a call is in it because a closure for
// each call would be garbage.
type side struct {
	raw  func(func(fd uintptr) bool) error // waits for the socket until its argument is content
	call uintptr
	try  func(fd uintptr) bool

	mu    sync.Mutex // the connection's methods may be called from several goroutines
	buf   []byte
	n     int
	errno syscall.Errno
}

// once makes the system call; false asks to be called again when the socket is
// ready.
func (s *side) once(fd uintptr) bool {
	for {
		n, _, errno := syscall.RawSyscall(s.call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(s.buf))), uintptr(len(s.buf)))
		switch errno {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		}
		s.n, s.errno = int(n), errno
		return true
	}
}

// do waits until the call was made, and leaves its result in n and errno.
func (s *side) do(b []byte) error { return s.with(b, s.try) }

func (s *side) with(b []byte, try func(fd uintptr) bool) error {
	s.buf, s.n, s.errno = b, 0, 0
	err := s.raw(try)
	s.buf = nil
	if s.errno != 0 {
		s.n = 0
	}
	return err
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	done, err := c.flow.await(b)
	if !done && err == nil {
		err = c.in.do(b)
	}
	if err != nil {
		return 0, c.failed("read", err)
	}
	n, errno := c.in.n, c.in.errno
	c.flow.got(n, len(b))
	switch {
	case errno != 0:
		return 0, c.failed("read", os.NewSyscallError("read", errno))
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	written := 0
	for written < len(b) {
		err := c.out.do(b[written:])
		switch {
		case err != nil:
			return written, c.failed("write", err)
		case c.out.errno != 0:
			return written, c.failed("write", os.NewSyscallError("write", c.out.errno))
		case c.out.n == 0:
			return written, io.ErrUnexpectedEOF // as package net has it
		}
		written += c.out.n
	}
	return written, nil
}

// failed gives an error the form that package net gives it.
func (c *conn) failed(op string, err error) error {
	if raw, ok := errors.AsType[*net.OpError](err); ok {
		err = raw.Err
	}
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
