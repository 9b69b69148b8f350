package offsets

import (
	"encoding/binary"
	"fmt"
)

// The parts of Java's serialized form that a HashMap of byte arrays has
// (java.io.ObjectStreamConstants).
const (
	streamMagic   = 0xaced
	streamVersion = 5

	tcNull         = 0x70
	tcReference    = 0x71
	tcClassDesc    = 0x72
	tcObject       = 0x73
	tcArray        = 0x75
	tcBlockData    = 0x77
	tcEndBlockData = 0x78

	scWriteMethod  = 0x01
	scSerializable = 0x02

	baseHandle = 0x7e0000
)

const (
	classMap   = "java.util.HashMap"
	classBytes = "[B"

	uidMap   = 0x0507dac1c31660d1
	uidBytes = 0xacf317f8060854e0
)

// entry of the map; nil stands for Java's null.
type entry struct{ key, value []byte }

// class is a class description of the stream; array the content of an array.
type (
	class string
	array []byte
)

// javaMap reads a stream that holds one HashMap<byte[], byte[]>. The entries are
// parts of data.
func javaMap(data []byte) ([]entry, error) {
	s := &stream{data: data}
	if s.uint16() != streamMagic || s.uint16() != streamVersion {
		return nil, s.failed("it does not begin like a Java object stream")
	}
	s.expect(tcObject, "an object")
	if s.class() != classMap && s.err == nil {
		return nil, s.failed("the object is no java.util.HashMap")
	}
	s.handles = append(s.handles, nil) // the map's own
	s.take(8)                          // load factor and threshold
	s.expect(tcBlockData, "the size of the map")
	if s.byte() != 8 {
		return nil, s.failed("the size of the map is not where it should be")
	}
	s.take(4) // buckets
	n := s.uint32()
	// An entry takes at least two bytes, two nulls.
	if s.err == nil && uint64(n) > uint64(len(s.data)-s.at)/2 {
		return nil, s.failed(fmt.Sprintf("it ends before its %d entries", n))
	}
	var entries []entry
	for range n {
		e := entry{key: s.bytes(), value: s.bytes()}
		if s.err != nil {
			return nil, s.err
		}
		entries = append(entries, e)
	}
	s.expect(tcEndBlockData, "the end of the map")
	if s.err == nil && s.at != len(s.data) {
		return nil, s.failed("something follows the map")
	}
	if s.err != nil {
		return nil, s.err
	}
	return entries, nil
}

// stream reads on until the first fault, which stays.
type stream struct {
	data    []byte
	at      int
	handles []any // what a reference can mean: class, array, or nil for the map
	err     error
}

func (s *stream) failed(text string) error {
	if s.err == nil {
		s.err = fmt.Errorf("at byte %d: %s", s.at, text)
	}
	return s.err
}

// take gives n bytes of the rest; nil after a fault.
func (s *stream) take(n int) []byte {
	if s.err != nil {
		return nil
	}
	if n < 0 || n > len(s.data)-s.at {
		_ = s.failed("it ends too early")
		return nil
	}
	part := s.data[s.at : s.at+n : s.at+n]
	s.at += n
	return part
}

func (s *stream) byte() byte {
	if b := s.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (s *stream) uint16() uint16 {
	if b := s.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (s *stream) uint32() uint32 {
	if b := s.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (s *stream) uint64() uint64 {
	if b := s.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (s *stream) expect(tag byte, what string) {
	if got := s.byte(); s.err == nil && got != tag {
		_ = s.failed(fmt.Sprintf("tag 0x%02x where %s should begin", got, what))
	}
}

// reference gives what was read before under the next handle.
func (s *stream) reference() any {
	h := int64(s.uint32()) - baseHandle
	if s.err != nil {
		return nil
	}
	if h < 0 || h >= int64(len(s.handles)) {
		_ = s.failed("a reference to nothing")
		return nil
	}
	return s.handles[h]
}

// class reads a class description, or a reference to one.
func (s *stream) class() class {
	switch tag := s.byte(); {
	case s.err != nil:
		return ""
	case tag == tcReference:
		c, ok := s.reference().(class)
		if !ok {
			_ = s.failed("a reference to what is no class")
		}
		return c
	case tag != tcClassDesc:
		_ = s.failed(fmt.Sprintf("tag 0x%02x where a class should begin", tag))
		return ""
	}
	c := class(s.take(int(s.uint16())))
	uid, flags := s.uint64(), s.byte()
	if s.err != nil {
		return ""
	}
	s.handles = append(s.handles, c)
	switch {
	case c == classMap && uid == uidMap && flags == scSerializable|scWriteMethod:
		s.mapFields()
	case c == classBytes && uid == uidBytes && flags == scSerializable:
		if s.uint16() != 0 {
			_ = s.failed("an array has no fields")
		}
	default:
		_ = s.failed(fmt.Sprintf("class %.100q is not one of a map of bytes", string(c)))
	}
	s.expect(tcEndBlockData, "the end of a class")
	s.expect(tcNull, "the class above it")
	return c
}

// mapFields reads the two fields of HashMap.
func (s *stream) mapFields() {
	if s.uint16() != 2 {
		_ = s.failed("a HashMap has two fields")
		return
	}
	for _, field := range []string{"FloadFactor", "Ithreshold"} {
		kind := s.byte()
		name := s.take(int(s.uint16()))
		if s.err == nil && string(kind)+string(name) != field {
			_ = s.failed("a HashMap's fields are loadFactor and threshold")
		}
	}
}

// bytes reads an array of bytes, null, or a reference to an array before.
func (s *stream) bytes() []byte {
	switch tag := s.byte(); {
	case s.err != nil, tag == tcNull:
		return nil
	case tag == tcReference:
		a, ok := s.reference().(array)
		if !ok {
			_ = s.failed("a reference to what is no array")
		}
		return a
	case tag != tcArray:
		_ = s.failed(fmt.Sprintf("tag 0x%02x where an array of bytes should begin", tag))
		return nil
	}
	if s.class() != classBytes && s.err == nil {
		_ = s.failed("an array of something else than bytes")
	}
	a := array(s.take(int(int32(s.uint32()))))
	s.handles = append(s.handles, a)
	if s.err == nil && a == nil {
		a = array{}
	}
	return a
}
