package main

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// application is one in which everything holds.
func application() *Application {
	one := func(v float64) *Stat { return &Stat{v, v, v} }
	a := &Application{
		Trips: []Trips{{tripsPlain, 3}, {tripsWrite, 4}, {tripsWriteMany, 4}, {tripsProcess, 3}},
		Copy:  &Stat{4, 5, 6},
		Durable: []Work{
			{What: workPlain, Micros: one(400)},
			{What: workBatch, Micros: one(600), Ratio: one(9), To: workPlainBatch},
			{What: workBatchAgain, Micros: one(30), Ratio: one(0.3), To: workBatch},
		},
		Async: []Work{{What: workPlain, Micros: one(100)}, {What: workID, Micros: one(900), Ratio: one(9), To: workPlain}},
	}
	for _, name := range []string{workID, workBoth, workVersion} {
		a.Durable = append(a.Durable, Work{What: name, Micros: one(600), Ratio: &Stat{1, 1.5, 2}, To: workPlain})
	}
	for _, name := range []string{workIDAgain, workBothAgain, workVersionAgain} {
		a.Durable = append(a.Durable, Work{What: name, Micros: one(180), Ratio: &Stat{0.1, 0.3, 0.5}, To: compared[name]})
	}
	return a
}

func TestApplicationFloors(t *testing.T) {
	t.Parallel()
	work := func(a *Application, what string) *Work {
		for i := range a.Durable {
			if a.Durable[i].What == what {
				return &a.Durable[i]
			}
		}
		return nil
	}
	for _, tt := range []struct {
		name   string
		spoil  func(*Application)
		missed string
	}{
		{"all hold at the bounds", func(*Application) {}, ""},
		{"a round trip more", func(a *Application) { a.Trips[1].N++ }, "round trips that an event adds to a transaction"},
		{"a round trip more for many", func(a *Application) { a.Trips[2].N++ }, "round trips that 100 events add to a transaction"},
		{"Copy slow", func(a *Application) { a.Copy.Median = 4.9 }, "Copy against single inserts, events per second"},
		{"consumer slow", func(a *Application) { work(a, workBoth).Ratio.Median = 1.51 }, workBoth + ", against the side effect alone"},
		{"consumer unknown", func(a *Application) { work(a, workID).Ratio.Median = nan() }, workID + ", against the side effect alone"},
		{"duplicates slow", func(a *Application) { work(a, workVersionAgain).Ratio.Median = 0.31 }, workVersionAgain + ", against an applied message"},
		{"batch slow", func(a *Application) { work(a, workBatch).Micros.Median = 601 }, workBatch + ", a message against the side effect alone"},
		{"duplicates in a batch slow", func(a *Application) { work(a, workBatchAgain).Ratio.Median = 0.31 }, workBatchAgain + ", against an applied message"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := application()
			tt.spoil(a)
			var missed []string
			for _, f := range applicationFloors(a) {
				if f.Value == nil {
					t.Errorf("floor %q has no value", f.Name)
				}
				if f.missed() {
					missed = append(missed, f.Name)
				}
			}
			if got := strings.Join(missed, "; "); got != tt.missed {
				t.Errorf("missed: got %q, want %q", got, tt.missed)
			}
		})
	}
	for _, f := range applicationFloors(&Application{}) {
		if f.Value != nil || f.missed() {
			t.Errorf("floor %q without measurements: value %v, missed %v", f.Name, f.Value, f.missed())
		}
	}
	if list := applicationFloors(nil); list != nil {
		t.Errorf("floors of nothing: %v", list)
	}
}

func TestReportOfTheApplication(t *testing.T) {
	t.Parallel()
	a := application()
	a.Durable = a.Durable[:3]
	m := Machine{CPUs: 2, Model: "CPU", Kernel: "6.1", Go: "go1", Postgres: "PostgreSQL 15", LoadAvg: "0.1"}
	report := &Report{Machine: m, Application: a, Floors: applicationFloors(a)[:3]}
	var out bytes.Buffer
	if err := report.print(&out); err != nil {
		t.Fatal(err)
	}
	const want = `
PostgreSQL 15
2 × CPU, Linux 6.1, go1, load 0.1

application: round trips
transaction of one statement       3
RunTx: the same with one event     4
RunTx: the same with 100 events    4
Process, handler of one statement  3

application: 5000 events in one transaction, Copy against single inserts: 5.0 times as fast (4.0 to 6.0)

application: durable commits           µs per message  min  max  ratio   min   max
side effect alone                                 400  400  400
ProcessBatch of 50, by id and version             600  600  600   9.00  9.00  9.00
duplicates, ProcessBatch of 50                     30   30   30   0.30  0.30  0.30

application: synchronous_commit = off  µs per message  min  max  ratio   min   max
side effect alone                                 100  100  100
Process, without version                          900  900  900   9.00  9.00  9.00

floor                                             value  must be
round trips that an event adds to a transaction    1.00      ≤ 1  ok
round trips that 100 events add to a transaction   1.00      ≤ 1  ok
Copy against single inserts, events per second     5.00      ≥ 5  ok
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	path := filepath.Join(t.TempDir(), "results.json")
	if err := report.writeTo(path); err != nil {
		t.Fatal(err)
	}
	read, err := readReport(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(report, read); diff != "" {
		t.Errorf("written and read (-want +got):\n%s", diff)
	}
}

// Results of before -application can be read as they are.
func TestReportWithoutTheApplication(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(newReport(Machine{}, nil, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("application")) {
		t.Errorf("what was not measured is written: %s", data)
	}
}

func TestApplicationFlag(t *testing.T) {
	t.Parallel()
	opt, err := parse([]string{"-application"}, io.Discard)
	if err != nil || !opt.application || len(opt.only) != 0 {
		t.Errorf("got %+v, %v", opt, err)
	}
	opt, err = parse([]string{"-application", "-only", "single"}, io.Discard)
	if err != nil || !opt.application || len(opt.only) != 1 {
		t.Errorf("with a phase: got %+v, %v", opt, err)
	}
}

func TestTripsAreCountedAcrossReads(t *testing.T) {
	t.Parallel()
	answer := []byte("C\x00\x00\x00\x0aBEGIN\x00Z\x00\x00\x00\x05TD\x00\x00\x00\x05ZZ\x00\x00\x00\x05T")
	for size := 1; size <= len(answer); size++ {
		c := &trips{}
		for rest := answer; len(rest) > 0; {
			n := min(size, len(rest))
			c.add(rest[:n])
			rest = rest[n:]
		}
		if got := c.take(); got != 2 {
			t.Errorf("in reads of %d bytes: got %d, want 2", size, got)
		}
		if got := c.take(); got != 0 {
			t.Errorf("taken twice: got %d", got)
		}
	}
}
