package main

import (
	"math"
	"slices"
)

// percentile of sorted values by the nearest rank: a value that occurred, never
// one in between. NaN without values.
func percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Stat is a value that was measured in one or several runs.
type Stat struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// stat leaves out NaN, which stands for "not measured"; nil if nothing is left.
func stat(values []float64) *Stat {
	values = slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	n := len(values)
	return &Stat{Min: values[0], Median: (values[(n-1)/2] + values[n/2]) / 2, Max: values[n-1]}
}

// nan is "not measured".
func nan() float64 { return math.NaN() }
