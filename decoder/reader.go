package decoder

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// reader walks over one message. The first read beyond the end, and the first
// call of fail, is remembered; every read after it gives zero and moves nothing.
// So a parser reads a run of fixed fields and asks once.
type reader struct {
	data []byte
	off  int
	text string // what went wrong; empty while all is well
	at   int    // where
}

func (r *reader) ok() bool { return r.text == "" }

func (r *reader) left() int { return len(r.data) - r.off }

// fail remembers a fault at offset at, unless there is one already.
func (r *reader) fail(at int, format string, args ...any) {
	if r.text == "" {
		r.text, r.at = fmt.Sprintf(format, args...), at
	}
}

// need says whether n more bytes are there. It takes the count as uint64, which
// holds any length of the wire, so that none wraps.
func (r *reader) need(n uint64, what string) bool {
	if r.text != "" {
		return false
	}
	if uint64(r.left()) < n {
		r.fail(r.off, "message ends inside %s: %d bytes needed, %d left", what, n, r.left())
		return false
	}
	return true
}

func (r *reader) uint8(what string) byte {
	if !r.need(1, what) {
		return 0
	}
	v := r.data[r.off]
	r.off++
	return v
}

func (r *reader) uint16(what string) uint16 {
	if !r.need(2, what) {
		return 0
	}
	v := binary.BigEndian.Uint16(r.data[r.off:])
	r.off += 2
	return v
}

func (r *reader) uint32(what string) uint32 {
	if !r.need(4, what) {
		return 0
	}
	v := binary.BigEndian.Uint32(r.data[r.off:])
	r.off += 4
	return v
}

func (r *reader) uint64(what string) uint64 {
	if !r.need(8, what) {
		return 0
	}
	v := binary.BigEndian.Uint64(r.data[r.off:])
	r.off += 8
	return v
}

// bytes gives the next n bytes. The slice cannot grow into what follows it.
func (r *reader) bytes(n uint32, what string) []byte {
	if !r.need(uint64(n), what) {
		return nil
	}
	end := r.off + int(n)
	v := r.data[r.off:end:end]
	r.off = end
	return v
}

// text0 gives the bytes up to the next NUL and skips it.
func (r *reader) text0(what string) []byte {
	if r.text != "" {
		return nil
	}
	n := bytes.IndexByte(r.data[r.off:], 0)
	if n < 0 {
		r.fail(r.off, "message ends inside %s: no terminating NUL", what)
		return nil
	}
	v := r.data[r.off : r.off+n : r.off+n]
	r.off += n + 1
	return v
}

// end insists that nothing is left.
func (r *reader) end() {
	if r.text == "" && r.left() > 0 {
		r.fail(r.off, "%d bytes too many", r.left())
	}
}
