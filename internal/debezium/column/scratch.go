package column

import "github.com/walpost/walpost/internal/debezium/connect"

// keep is how much memory a Scratch holds on to from one row to the next.
const keep = 1 << 20

// Scratch is the memory for the values of one row, and what there is to say about
// them. A value lives in the text it was made of or in its Scratch, until Reset.
type Scratch struct {
	// Snapshot says that the row was read from the table, not from the stream.
	Snapshot bool
	// Lost are the values of this row that Debezium replaces by null with a
	// warning (or, with failure handling mode skip, without one).
	Lost []*Error

	bytes  []byte
	values []connect.Value
}

// Reset makes room for the next row; the values of the last one are gone.
func (s *Scratch) Reset() {
	s.Snapshot, s.Lost = false, nil
	s.bytes = s.bytes[:0]
	if cap(s.bytes) > keep {
		s.bytes = nil
	}
	s.values = s.values[:0]
	if cap(s.values) > keep/64 {
		s.values = nil
	}
}

// since returns what was appended to s.bytes after it had length start. Further
// appends do not touch it, even if they move s.bytes elsewhere.
func (s *Scratch) since(start int) []byte { return s.bytes[start:len(s.bytes):len(s.bytes)] }

// text is the Value of what was appended since.
func (s *Scratch) text(start int) connect.Value {
	return connect.Value{Valid: true, Bytes: s.since(start)}
}

// list returns n nulls, which stay where they are when further lists are made.
func (s *Scratch) list(n int) []connect.Value {
	start := len(s.values)
	if start+n > cap(s.values) {
		s.values, start = make([]connect.Value, 0, max(2*cap(s.values), n, 16)), 0
	}
	s.values = s.values[:start+n]
	list := s.values[start : start+n : start+n]
	clear(list)
	return list
}
