package connect

import "testing"

func nested(levels int, array bool) (*Schema, Value) {
	s, v := &Schema{Type: Int32, Optional: true}, Value{Valid: true, Int: 1}
	for range levels {
		if array {
			s = &Schema{Type: Array, Optional: true, Elem: s}
		} else {
			s = &Schema{Type: Struct, Optional: true, Fields: []Field{{"a", s}}}
		}
		v = Value{Valid: true, List: []Value{v}}
	}
	return s, v
}

// Jackson writes a thousand levels, and a struct's schema takes two for each.
func TestDepth(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		setup  string
		levels int
		array  bool
		fails  bool
	}{
		{"plain", 1000, true, false},
		{"plain", 1001, true, true},
		{"plain", 1000, false, false},
		{"plain", 1001, false, true},
		{"json", 499, false, false},
		{"json", 500, false, true},
		{"json", 998, true, false},
		{"json", 999, true, true},
		{"string", 2000, true, false},
	} {
		s, v := nested(test.levels, test.array)
		if _, _, err := converter(t, test.setup).Convert(nil, s, v); (err != nil) != test.fails {
			t.Errorf("%s, %d levels (arrays: %t): %v", test.setup, test.levels, test.array, err)
		}
	}
}

// A map whose keys are no strings is written as lists of pairs, two levels.
func TestDepthOfMaps(t *testing.T) {
	t.Parallel()
	number := &Schema{Type: Int32}
	for _, test := range []struct {
		key    *Schema
		levels int
		fails  bool
	}{
		{number, 500, false},
		{number, 501, true},
		{&Schema{Type: String}, 1000, false},
		{&Schema{Type: String}, 1001, true},
	} {
		s, v := number, Value{Valid: true, Int: 1}
		for range test.levels {
			s, v = &Schema{Type: Map, Key: test.key, Elem: s}, Value{Valid: true, List: []Value{{Valid: true}, v}}
		}
		if _, _, err := converter(t, "plain").Convert(nil, s, v); (err != nil) != test.fails {
			t.Errorf("%d maps by %s: %v", test.levels, test.key.Type.javaName(), err)
		}
	}
}
