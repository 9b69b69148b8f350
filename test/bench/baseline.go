package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// comparison is one value beside that of an earlier report. Seconds are not
// compared: the machine may be another, or busy.
type comparison struct {
	name     string
	was, is  *float64
	allowed  float64 // the worst that passes
	moreGood bool
}

func (c *comparison) worse() bool {
	if c.was == nil || c.is == nil {
		return false
	}
	if c.moreGood {
		return !(*c.is >= c.allowed) // NaN is worse
	}
	return !(*c.is <= c.allowed)
}

// compare sets a report against an earlier one. How much each value may be worse
// is what it was seen to vary between runs on a machine with other work to do.
func compare(was, is *Report) []comparison {
	var list []comparison
	more := func(name string, was, is *float64, share float64) {
		c := comparison{name: name, was: was, is: is, moreGood: true}
		if was != nil {
			c.allowed = *was * share
		}
		list = append(list, c)
	}
	less := func(name string, was, is *float64, share, slack float64) {
		c := comparison{name: name, was: was, is: is}
		if was != nil {
			c.allowed = *was*share + slack
		}
		list = append(list, c)
	}
	more("discarding sink / pg_recvlogical", was.Ratios.Discard, is.Ratios.Discard, 0.7)
	more("Kafka / pg_recvlogical", was.Ratios.Kafka, is.Ratios.Kafka, 0.6)
	more("single-row transactions, discarding sink / pg_recvlogical", was.Ratios.SingleDiscard, is.Ratios.SingleDiscard, 0.7)
	more("single-row transactions, Kafka / pg_recvlogical", was.Ratios.SingleKafka, is.Ratios.SingleKafka, 0.6)
	less("allocations per event", was.Walpost.Allocs, is.Walpost.Allocs, 1.25, 0.15)
	less("CPU µs per event", was.Walpost.CPUMicros, is.Walpost.CPUMicros, 1.5, 0.5)
	less("peak RSS MB", was.Walpost.PeakRSSMB, is.Walpost.PeakRSSMB, 1.1, 1)
	less("peak RSS MB, one large transaction", was.Walpost.BigRSSMB, is.Walpost.BigRSSMB, 1.1, 1)
	return list
}

func printComparison(w io.Writer, list []comparison) error {
	if _, err := fmt.Fprintln(w, "\nagainst the baseline"); err != nil {
		return err
	}
	t := table{}
	t.add("", "was", "is", "may be", "")
	for i := range list {
		c := &list[i]
		sign, result := "≤", "ok"
		if c.moreGood {
			sign = "≥"
		}
		switch {
		case c.was == nil || c.is == nil:
			result = "not compared"
		case c.worse():
			result = "WORSE"
		}
		t.add(c.name, optional(c.was, 2), optional(c.is, 2), sign+" "+number(c.allowed, 2), result)
	}
	return t.print(w)
}

func readReport(path string) (*Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(Report)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}
