package main

import "fmt"

// Floor is a value that must not be missed.
type Floor struct {
	Name  string   `json:"name"`
	Limit float64  `json:"limit"`
	Least bool     `json:"least"` // the value must be at least Limit, otherwise at most
	Unit  string   `json:"unit"`
	Value *float64 `json:"value"` // nil: not measured in this run
}

// missed reports whether the value is on the wrong side. What was not measured
// is not missed; a phase that fails ends the bench before.
func (f *Floor) missed() bool {
	if f.Value == nil {
		return false
	}
	if f.Least {
		return !(*f.Value >= f.Limit) // NaN is missed
	}
	return !(*f.Value <= f.Limit)
}

// bound is the limit in words.
func (f *Floor) bound() string {
	sign := "≤"
	if f.Least {
		sign = "≥"
	}
	return fmt.Sprintf("%s %g%s", sign, f.Limit, f.Unit)
}

// checkFloors compares a report with what must hold on any machine.
func checkFloors(r *Report) []Floor {
	floors := []Floor{
		{Name: "discarding sink against pg_recvlogical, backlog", Least: true, Limit: 0.7, Value: r.Ratios.Discard},
		{Name: "CPU per event into Kafka, backlog", Limit: 12, Unit: " µs", Value: r.Walpost.CPUMicros},
		{Name: "peak RSS, one large transaction", Limit: 80, Unit: " MB", Value: r.Walpost.BigRSSMB},
		{Name: "latency p99", Limit: 20, Unit: " ms"},
		{Name: "CPU with crash protection against without, backlog", Limit: 1.03},
		{Name: "CPU with crash protection against without, steady load", Limit: 1.03},
		{Name: "latency p99 with crash protection against without", Limit: 1.25},
		{Name: "slowest start after kill -9, small transactions, 100,000 records of tail", Limit: 2, Unit: " s"},
		{Name: "duplicates after kill -9", Limit: 0},
	}
	if r.Latency != nil {
		floors[3].Value = &r.Latency.P99
	}
	if c := r.Crash; c != nil {
		slowest, duplicates := c.slowest()
		for i, v := range []*float64{median(c.Backlog.CPURatio), median(c.Steady.CPURatio), median(c.Steady.P99Ratio), &slowest, &duplicates} {
			floors[4+i].Value = v
		}
	}
	return floors
}
