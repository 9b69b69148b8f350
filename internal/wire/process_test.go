package wire

import (
	"slices"
	"testing"
)

func TestGovernor(t *testing.T) {
	t.Parallel()
	repeat := func(load float64, n int) (loads []float64) {
		for range n {
			loads = append(loads, load)
		}
		return loads
	}
	for name, tt := range map[string]struct {
		loads []float64
		want  []bool // what busy changed to
	}{
		"quiet":                {repeat(0.05, 30), []bool{false}},
		"half busy":            {repeat(0.6, 30), nil},
		"half busy, then calm": {append(repeat(0.6, 1), repeat(0.1, 10)...), []bool{false}},
		"busy":                 {repeat(0.9, 30), nil},
		"quiet, then busy":     {append(repeat(0.1, 2), repeat(0.9, 2)...), []bool{false, true}},
		"busy, then calm":      {append(repeat(0.9, 2), repeat(0.1, 30)...), []bool{false}},
		"busy, not calm yet":   {append(repeat(0.9, 2), repeat(0.1, 9)...), nil},
		"busy now and then":    {append(append(repeat(2.5, 1), repeat(0.1, 9)...), append(repeat(0.5, 1), repeat(0.1, 9)...)...), nil},
		"busy, calm and again": {append(append(repeat(0.8, 1), repeat(0.1, 10)...), repeat(0.8, 3)...), []bool{false, true}},
	} {
		g := newGovernor()
		var got []bool
		for _, load := range tt.loads {
			if g.next(load) {
				got = append(got, g.busy)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: changes %v, want %v", name, got, tt.want)
		}
	}
}
