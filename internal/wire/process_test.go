package wire

import "testing"

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
		want  []int // the changes
	}{
		"quiet":                {repeat(0.05, 30), []int{1}},
		"half busy":            {repeat(0.6, 30), nil},
		"half busy, then calm": {append(repeat(0.6, 1), repeat(0.1, 10)...), []int{1}},
		"busy":                 {repeat(0.9, 30), nil},
		"quiet, then busy":     {append(repeat(0.1, 2), repeat(0.9, 2)...), []int{1, 4}},
		"busy, then calm":      {append(repeat(0.9, 2), repeat(0.1, 30)...), []int{1}},
		"busy, not calm yet":   {append(repeat(0.9, 2), repeat(0.1, 9)...), nil},
		"busy now and then":    {append(append(repeat(2.5, 1), repeat(0.1, 9)...), append(repeat(0.5, 1), repeat(0.1, 9)...)...), nil},
		"busy, calm and again": {append(append(repeat(0.8, 1), repeat(0.1, 10)...), repeat(0.8, 3)...), []int{1, 4}},
	} {
		g := newGovernor(4)
		var got []int
		for _, load := range tt.loads {
			if n, changed := g.next(load); changed {
				got = append(got, n)
			}
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: changes %v, want %v", name, got, tt.want)
			continue
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%s: changes %v, want %v", name, got, tt.want)
			}
		}
	}
}
