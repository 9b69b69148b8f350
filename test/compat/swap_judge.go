package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// swapResult is what came of a swap.
type swapResult struct {
	rows, records int64
	lost          []int64
	foreign       int      // records of no row
	disorder      []string // of a key
	repeats       map[string]int
	published     map[string]int // by whom, the first time
}

func (r *swapResult) ok() bool { return len(r.lost) == 0 && len(r.disorder) == 0 && r.foreign == 0 }

func (r *swapResult) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rows, %d records; lost %d, keys out of order %d, records of no row %d\n", r.rows, r.records, len(r.lost), len(r.disorder), r.foreign)
	for _, who := range sortedKeys(r.published) {
		fmt.Fprintf(&b, "  %6d rows published first by %s\n", r.published[who], who)
	}
	duplicates := 0
	for _, how := range sortedKeys(r.repeats) {
		fmt.Fprintf(&b, "  %6d duplicates: %s\n", r.repeats[how], how)
		duplicates += r.repeats[how]
	}
	fmt.Fprintf(&b, "  %6d duplicates in all\n", duplicates)
	for _, list := range [][]int64{r.lost} {
		if len(list) > 0 {
			fmt.Fprintf(&b, "  lost: %v\n", list[:min(len(list), 20)])
		}
	}
	for i := range min(len(r.disorder), 5) {
		fmt.Fprintf(&b, "  %s\n", r.disorder[i])
	}
	return b.String()
}

// judgeSwap counts what is lost, repeated and out of order. Who published a record
// is told by the id of its run; records are in the order of each partition.
func judgeSwap(records []record, rows int64) *swapResult {
	r := &swapResult{rows: rows, records: int64(len(records)), repeats: map[string]int{}, published: map[string]int{}}
	names := runs(records)
	by := map[int64]string{}     // who published a row first
	newest := map[string]int64{} // of a key
	for i := range records {
		rec := &records[i]
		n, err := strconv.ParseInt(rec.id(), 10, 64)
		var payload struct{ N int64 }
		if err != nil || n < 1 || n > rows || json.Unmarshal(rec.Value, &payload) != nil || payload.N != n {
			r.foreign++
			continue
		}
		run, _ := rec.header(runID)
		who := names[string(run)]
		if before, again := by[n]; again {
			how := "published by " + before + ", and again by " + who
			if before == who {
				how = "published twice by " + who
			}
			r.repeats[how]++
			continue
		}
		by[n] = who
		r.published[who]++
		key := string(rec.Key)
		if n < newest[key] {
			r.disorder = append(r.disorder, fmt.Sprintf("%s: row %d comes first after row %d (partition %d, offset %d, by %s)",
				key, n, newest[key], rec.Partition, rec.Offset, who))
		}
		newest[key] = max(newest[key], n)
	}
	for n := int64(1); n <= rows; n++ {
		if _, ok := by[n]; !ok {
			r.lost = append(r.lost, n)
		}
	}
	return r
}

// runs names the runs by the time of their ids.
func runs(records []record) map[string]string {
	began := map[string]int64{}
	for i := range records {
		if at, ok := runTime(&records[i]); ok {
			id, _ := records[i].header(runID)
			began[string(id)] = at
		}
	}
	names := map[string]string{}
	inOrder := []string{"Debezium before", "walpost", "Debezium after"}
	for id, at := range began {
		earlier := 0
		for _, other := range began {
			if other < at {
				earlier++
			}
		}
		names[id] = fmt.Sprintf("run %d", earlier+1)
		if len(began) == len(inOrder) {
			names[id] = inOrder[earlier]
		}
	}
	return names
}
