package connector

import (
	"cmp"
	"slices"
)

// Decision about a key.
type Decision string

// The decisions.
const (
	Honoured Decision = "honoured" // walpost does what Debezium does
	Ignored  Decision = "ignored"  // it does not matter, or walpost has its own way
	Refused  Decision = "refused"  // walpost does not run with it
)

// Severity orders a report.
type Severity string

// The severities, the worst first.
const (
	SeverityRefused Severity = "refused" // it does not run
	SeverityDiffers Severity = "differs" // somebody can notice a difference
	SeverityNote    Severity = "note"    // worth reading once
	SeveritySame    Severity = "same"
)

func (s Severity) rank() int {
	return slices.Index([]Severity{SeverityRefused, SeverityDiffers, SeverityNote, SeveritySame}, s)
}

// Entry is what the report says about one key.
type Entry struct {
	Key        string   `json:"key"`
	Value      string   `json:"value"` // masked if it is a secret
	Origin     string   `json:"origin"`
	Set        bool     `json:"set"` // false: Debezium's default
	Decision   Decision `json:"decision"`
	Severity   Severity `json:"severity"`
	Does       string   `json:"does"`                 // what walpost does with it, or why it refuses
	Difference string   `json:"difference,omitempty"` // from Debezium
	Way        string   `json:"hint,omitempty"`       // what to do about it
}

// Report says for every key of the files, and for the defaults that matter,
// what walpost does with it.
type Report struct {
	Entries []Entry

	file string
}

// Sorted gives the entries, the worst first, else in the order of the files.
func (r *Report) Sorted() []Entry {
	list := slices.Clone(r.Entries)
	slices.SortStableFunc(list, func(a, b Entry) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
	return list
}

// Worst is the severity of the worst entry.
func (r *Report) Worst() Severity {
	worst := SeveritySame
	for i := range r.Entries {
		if s := r.Entries[i].Severity; s.rank() < worst.rank() {
			worst = s
		}
	}
	return worst
}

// Count gives the number of entries of a severity.
func (r *Report) Count(s Severity) int {
	n := 0
	for i := range r.Entries {
		if r.Entries[i].Severity == s {
			n++
		}
	}
	return n
}

// refusals are the entries that walpost does not run with, as errors.
func (r *Report) refusals() Errors {
	var errs Errors
	for i := range r.Entries {
		e := &r.Entries[i]
		if e.Severity != SeverityRefused {
			continue
		}
		place := e.Origin + ": "
		if !e.Set {
			place = r.file + ": "
		}
		errs = append(errs, &Error{Text: place + e.Key + ": " + e.Does, Way: e.Way})
	}
	return errs
}
