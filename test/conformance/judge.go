package main

import (
	"fmt"
	"strings"
)

// record is what the judge needs of a Kafka record. Records of a partition come
// in order of offsets.
type record struct {
	id        string
	kind      string // from the topic
	partition int
}

// finding is what came of a scenario.
type finding struct {
	server          string
	events, records int

	lost       int
	lostFrom   int // the first one, counted from 1 in commit order
	lostTo     int // the last one
	phantom    int
	disordered int
	duplicated int
	early      []string // confirmed too early, each with its story
	stuck      []string
	holds      bool     // what is missing is held on purpose
	notes      []string // worth knowing, no failure
}

// judge adds what it finds when it compares what was committed with what Kafka
// has. An event that is missing is lost if one that was committed later came;
// else the relay is stuck, unless it holds.
func (f *finding) judge(events []event, records []record) {
	f.events, f.records = len(events), len(records)
	byID := make(map[string]int, len(events))
	for i, e := range events {
		byID[e.id] = i
	}
	type lane struct {
		kind, key string
		partition int
	}
	newest := map[lane]int{}
	copies := make([]int, len(events))
	last := -1
	for _, r := range records {
		i, ok := byID[r.id]
		if !ok || events[i].kind != r.kind {
			f.phantom++
			continue
		}
		copies[i]++
		if copies[i] > 1 {
			f.duplicated++
			continue
		}
		last = max(last, i)
		at := lane{r.kind, events[i].key, r.partition}
		if before, ok := newest[at]; ok && before > i {
			f.disordered++
			continue
		}
		newest[at] = i
	}
	missing := 0
	for i, n := range copies {
		switch {
		case n > 0:
		case i < last:
			if f.lost == 0 {
				f.lostFrom = i + 1
			}
			f.lost++
			f.lostTo = i + 1
		default:
			missing++
		}
	}
	if missing > 0 && !f.holds {
		f.stuck = append(f.stuck, fmt.Sprintf("the last %d events did not come", missing))
	}
}

// failed says whether the scenario failed.
func (f *finding) failed(atLeastOnce bool) bool {
	return f.lost+f.phantom+f.disordered+len(f.early)+len(f.stuck) > 0 || f.duplicated > 0 && !atLeastOnce
}

// verdict is the worst of it first, "pass" if there is nothing.
func (f *finding) verdict() string {
	var parts []string
	for _, kind := range []struct {
		name string
		n    int
	}{{"lost", f.lost}, {"phantom", f.phantom}} {
		if kind.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", kind.name, kind.n))
		}
	}
	if len(f.early) > 0 {
		parts = append(parts, "confirmed-too-early")
	}
	if f.disordered > 0 {
		parts = append(parts, fmt.Sprintf("disordered %d", f.disordered))
	}
	if len(f.stuck) > 0 {
		parts = append(parts, "stuck")
	}
	if f.duplicated > 0 {
		parts = append(parts, fmt.Sprintf("duplicated %d", f.duplicated))
	}
	if len(parts) == 0 {
		return "pass"
	}
	return strings.Join(parts, ", ")
}

// explain is one line.
func (f *finding) explain() string {
	parts := []string{fmt.Sprintf("%d events, %d records", f.events, f.records)}
	if f.lost > 0 {
		parts = append(parts, fmt.Sprintf("lost between no. %d and no. %d in commit order", f.lostFrom, f.lostTo))
	}
	parts = append(parts, f.early...)
	parts = append(parts, f.stuck...)
	parts = append(parts, f.notes...)
	return strings.Join(parts, "; ")
}
