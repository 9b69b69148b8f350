package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for _, tt := range []struct {
		values  []float64
		p, want float64
	}{
		{[]float64{7}, 50, 7},
		{[]float64{7}, 99, 7},
		{[]float64{1, 2}, 50, 1},
		{[]float64{1, 2}, 51, 2},
		{hundred, 0, 1},
		{hundred, 50, 50},
		{hundred, 95, 95},
		{hundred, 99, 99},
		{hundred, 99.5, 100},
		{hundred, 100, 100},
	} {
		if got := percentile(tt.values, tt.p); got != tt.want {
			t.Errorf("percentile %v of %d values: got %v, want %v", tt.p, len(tt.values), got, tt.want)
		}
	}
	if got := percentile(nil, 50); !math.IsNaN(got) {
		t.Errorf("percentile of nothing: got %v, want NaN", got)
	}
}

func TestStat(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		values []float64
		want   *Stat
	}{
		{nil, nil},
		{[]float64{nan()}, nil},
		{[]float64{3}, &Stat{3, 3, 3}},
		{[]float64{3, 1}, &Stat{1, 2, 3}},
		{[]float64{9, 1, 2}, &Stat{1, 2, 9}},
		{[]float64{9, nan(), 2}, &Stat{2, 5.5, 9}},
	} {
		if diff := cmp.Diff(tt.want, stat(tt.values)); diff != "" {
			t.Errorf("stat of %v:\n%s", tt.values, diff)
		}
	}
}

// drainOf is a drain of 1,000 rows that took a second from first to last.
func drainOf(phase, consumer string, round int, seconds float64) Drain {
	start := time.Unix(1_700_000_000, 0)
	first := start.Add(100 * time.Millisecond)
	return Drain{
		Phase: phase, Consumer: consumer, Round: round, Rows: 1000,
		Start: start, First: first, Last: first.Add(time.Duration(seconds * float64(time.Second))),
		CPU: 0.005, WalSender: 0.008, PeakRSS: 40e6, Mallocs: 500, Requests: 10,
	}
}

func TestSummarizeComparesWithinARound(t *testing.T) {
	t.Parallel()
	rows := summarize([]Drain{
		drainOf(phaseBacklog, byReceiver, 0, 1), drainOf(phaseBacklog, byDiscard, 0, 2), // 1.1 s against 2.1
		drainOf(phaseBacklog, byDiscard, 1, 5), drainOf(phaseBacklog, byReceiver, 1, 4), // 4.1 against 5.1
		drainOf(phaseBig, byKafka, 0, 1), // nobody to compare with
	})
	if len(rows) != 3 {
		t.Fatalf("got %d rows, want 3", len(rows))
	}
	got := rows[1]
	want := Row{
		Phase: phaseBacklog, Consumer: byDiscard, Rows: 1000, Runs: 2,
		Rate: &Stat{200, 350, 500}, Ratio: &Stat{1.1 / 2.1, (1.1/2.1 + 4.1/5.1) / 2, 4.1 / 5.1},
		CPUMicros: &Stat{5, 5, 5}, SendMicros: &Stat{8, 8, 8}, PeakRSSMB: &Stat{40, 40, 40},
		Allocs: &Stat{0.5, 0.5, 0.5}, PerRequest: &Stat{100, 100, 100}, FirstMillis: &Stat{100, 100, 100},
	}
	if math.Round(got.WholeRate.Max) != 476 { // 1,000 in 2.1 s
		t.Errorf("whole rate: got %v", got.WholeRate)
	}
	got.WholeRate = nil
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-6 })); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	if rows[2].Ratio != nil {
		t.Errorf("ratio without a limit: got %v, want none", rows[2].Ratio)
	}
}

func TestFloors(t *testing.T) {
	t.Parallel()
	good := func() []Drain {
		return []Drain{
			drainOf(phaseBacklog, byReceiver, 0, 1), drainOf(phaseBacklog, byDiscard, 0, 1),
			drainOf(phaseBacklog, byKafka, 0, 1), drainOf(phaseBig, byKafka, 0, 1),
		}
	}
	for _, tt := range []struct {
		name   string
		spoil  func([]Drain, *Latency, *Crash)
		missed string
	}{
		{"all hold", func([]Drain, *Latency, *Crash) {}, ""},
		{"discarding sink slow", func(d []Drain, _ *Latency, _ *Crash) { d[1] = drainOf(phaseBacklog, byDiscard, 0, 1.5) }, "discarding sink against pg_recvlogical, backlog"},
		{"CPU", func(d []Drain, _ *Latency, _ *Crash) { d[2].CPU = 0.0121 }, "CPU per event into Kafka, backlog"},
		{"memory", func(d []Drain, _ *Latency, _ *Crash) { d[3].PeakRSS = 80.1e6 }, "peak RSS, one large transaction"},
		{"latency", func(_ []Drain, l *Latency, _ *Crash) { l.P99 = 20.1 }, "latency p99"},
		{"latency unknown", func(_ []Drain, l *Latency, _ *Crash) { l.P99 = nan() }, "latency p99"},
		{"protection costs", func(_ []Drain, _ *Latency, c *Crash) { c.Steady.CPURatio.Median = 1.04 }, "CPU with crash protection against without, steady load"},
		{"protection costs at full speed", func(_ []Drain, _ *Latency, c *Crash) { c.Backlog.CPURatio.Median = 1.04 }, "CPU with crash protection against without, backlog"},
		{"protection delays", func(_ []Drain, _ *Latency, c *Crash) { c.Steady.P99Ratio.Median = 1.26 }, "latency p99 with crash protection against without"},
		{"start slow", func(_ []Drain, _ *Latency, c *Crash) { c.Starts[1].Seconds = 2.1 }, "slowest start after kill -9, small transactions, 100,000 records of tail"},
		{"a duplicate", func(_ []Drain, _ *Latency, c *Crash) { c.Starts[0].Duplicates = 1 }, "duplicates after kill -9"},
		{"at the bounds", func(d []Drain, l *Latency, _ *Crash) { d[2].CPU, d[3].PeakRSS, l.P99 = 0.012, 80e6, 20 }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			drains, latency := good(), &Latency{P99: 5}
			crash := &Crash{
				Steady:  newCost(10, measured{"on": {102}, "off": {100}}, measured{"on": {5}, "off": {5}}),
				Backlog: newCost(10, measured{"on": {11, 10, 20}, "off": {10, 10, 20}}, nil),
				Starts:  []Restart{{Kind: behindCheckpoint, Seconds: 1}, {Kind: behindCheckpoint, Seconds: 1.5}, {Kind: inTransaction, Seconds: 9}},
			}
			tt.spoil(drains, latency, crash)
			var missed []string
			for _, f := range newReport(Machine{}, drains, latency, crash).Floors {
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
	for _, f := range newReport(Machine{}, nil, nil, nil).Floors {
		if f.Value != nil || f.missed() {
			t.Errorf("floor %q without measurements: value %v, missed %v", f.Name, f.Value, f.missed())
		}
	}
}

func TestReportOfOneRun(t *testing.T) {
	t.Parallel()
	m := Machine{CPUs: 2, Model: "CPU", Kernel: "6.1", Go: "go1", Postgres: "PostgreSQL 15", Kafka: "Kafka 4", Receiver: byReceiver, LoadAvg: "0.1"}
	report := newReport(m, []Drain{drainOf(phaseBacklog, byReceiver, 0, 1), drainOf(phaseBacklog, byKafka, 0, 2)}, nil, nil)
	var out bytes.Buffer
	if err := report.print(&out); err != nil {
		t.Fatal(err)
	}
	const want = `
PostgreSQL 15, Kafka 4; limit measured with pg_recvlogical
2 × CPU, Linux 6.1, go1, load 0.1

                                     rows/s  rows/s   whole of  CPU µs/  walsender  peak RSS  allocs/  records/  start to first
backlog        drained by        first–last   whole  the limit    event     µs/row        MB    event   request        event ms
backlog 1,000  pg_recvlogical         1,000     909       1.00     5.00       8.00      40.0     0.50       100             100
backlog 1,000  walpost, Kafka           500     476       0.52     5.00       8.00      40.0     0.50       100             100

floor                                                                     value  must be
discarding sink against pg_recvlogical, backlog                               –    ≥ 0.7  not measured
CPU per event into Kafka, backlog                                          5.00  ≤ 12 µs            ok
peak RSS, one large transaction                                               –  ≤ 80 MB  not measured
latency p99                                                                   –  ≤ 20 ms  not measured
CPU with crash protection against without, backlog                            –   ≤ 1.03  not measured
CPU with crash protection against without, steady load                        –   ≤ 1.03  not measured
latency p99 with crash protection against without                             –   ≤ 1.25  not measured
slowest start after kill -9, small transactions, 100,000 records of tail      –    ≤ 2 s  not measured
duplicates after kill -9                                                      –      ≤ 0  not measured
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestReportOfSeveralRunsShowsTheSpread(t *testing.T) {
	t.Parallel()
	rows := summarize([]Drain{
		drainOf(phaseSingle, byKafka, 0, 1), drainOf(phaseSingle, byKafka, 1, 2), drainOf(phaseSingle, byKafka, 2, 4),
	})
	var found []string
	for _, row := range drainTable(rows).rows[2:] {
		found = append(found, row[2]+" "+row[3])
	}
	want := []string{"min 250", "median 500", "max 1,000"}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestCompareLooksAtRatiosAndCounts(t *testing.T) {
	t.Parallel()
	of := func(change func([]Drain)) *Report {
		drains := []Drain{
			drainOf(phaseBacklog, byReceiver, 0, 1), drainOf(phaseBacklog, byDiscard, 0, 1), drainOf(phaseBacklog, byKafka, 0, 1),
			drainOf(phaseSingle, byReceiver, 0, 1), drainOf(phaseSingle, byDiscard, 0, 1), drainOf(phaseSingle, byKafka, 0, 1),
			drainOf(phaseBig, byKafka, 0, 1),
		}
		change(drains)
		return newReport(Machine{}, drains, nil, nil)
	}
	baseline := of(func([]Drain) {})
	for name, tt := range map[string]struct {
		change func([]Drain)
		worse  string
	}{
		"the same": {func([]Drain) {}, ""},
		"all three times slower, as on a slower machine": {func(d []Drain) {
			for i := range d {
				d[i].First, d[i].Last = d[i].Start.Add(300*time.Millisecond), d[i].Start.Add(3300*time.Millisecond)
			}
		}, ""},
		"the discarding sink fell behind":   {func(d []Drain) { d[1] = drainOf(phaseBacklog, byDiscard, 0, 2) }, "discarding sink / pg_recvlogical"},
		"Kafka fell behind":                 {func(d []Drain) { d[2] = drainOf(phaseBacklog, byKafka, 0, 2) }, "Kafka / pg_recvlogical"},
		"an allocation more for each event": {func(d []Drain) { d[2].Mallocs += 1000 }, "allocations per event"},
		"twice the CPU":                     {func(d []Drain) { d[2].CPU *= 2 }, "CPU µs per event"},
		"10 MB more":                        {func(d []Drain) { d[6].PeakRSS += 10e6 }, "peak RSS MB; peak RSS MB, one large transaction"},
		"unknown CPU":                       {func(d []Drain) { d[2].CPU = nan() }, ""},
	} {
		var worse []string
		for _, c := range compare(baseline, of(tt.change)) {
			if c.worse() {
				worse = append(worse, c.name)
			}
		}
		if got := strings.Join(worse, "; "); got != tt.worse {
			t.Errorf("%s: worse is %q, want %q", name, got, tt.worse)
		}
	}
}

func TestRatiosToDebezium(t *testing.T) {
	t.Parallel()
	r := newReport(Machine{}, []Drain{
		drainOf(phaseBacklog, byKafka, 0, 0.9), // 1 s with its start
		drainOf(phaseBacklog, byTuned, 0, 4), drainOf(phaseBacklog, byDefault, 0, 5),
	}, nil, nil)
	if r.Ratios.Debezium == nil || math.Abs(*r.Ratios.Debezium-4) > 1e-9 || math.Abs(*r.Ratios.DebeziumDefault-5) > 1e-9 {
		t.Errorf("ratios %v and %v, want 4 and 5", r.Ratios.Debezium, r.Ratios.DebeziumDefault)
	}
	if r.Ratios.SingleDebezium != nil {
		t.Errorf("a ratio of what was not measured: %v", *r.Ratios.SingleDebezium)
	}
}

func TestChartIsWellFormed(t *testing.T) {
	t.Parallel()
	picture := chart(newReport(Machine{CPUs: 2, Model: "A & B <C>"}, []Drain{
		drainOf(phaseBacklog, byReceiver, 0, 1), drainOf(phaseBacklog, byKafka, 0, 2), drainOf(phaseSingle, byKafka, 0, 2),
	}, nil, nil))
	d := xml.NewDecoder(strings.NewReader(picture))
	bars := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, picture)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			bars++
		}
	}
	if want := 6; bars != want { // two consumers, three panels
		t.Errorf("%d bars, want %d", bars, want)
	}
	if !strings.Contains(picture, "walpost, Kafka") || !strings.Contains(picture, ">476<") { // 1,000 in 2.1 s
		t.Errorf("the relay's bar is missing in\n%s", picture)
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		value  float64
		digits int
		want   string
	}{
		{0, 0, "0"}, {999, 0, "999"}, {1000, 0, "1,000"}, {1234567.891, 2, "1,234,567.89"},
		{-1234, 0, "-1,234"}, {999.6, 0, "1,000"}, {math.NaN(), 1, "–"}, {math.Inf(1), 1, "–"},
	} {
		if got := number(tt.value, tt.digits); got != tt.want {
			t.Errorf("number(%v, %d): got %q, want %q", tt.value, tt.digits, got, tt.want)
		}
	}
}

func TestProcFiles(t *testing.T) {
	t.Parallel()
	const stat = "123 (pg) recv) log) S 1 123 123 0 -1 4194560 1 0 0 0 150 50 7 8 20 0 1 0 99 1 1"
	if got, err := parseCPU(stat); err != nil || got != 2 {
		t.Errorf("CPU: got %v, %v, want 2 s", got, err)
	}
	for _, broken := range []string{"", "1 (x) S 1", "1 (x) S 1 1 1 1 1 1 1 1 1 1 a b"} {
		if _, err := parseCPU(broken); err == nil {
			t.Errorf("CPU of %q: no error", broken)
		}
	}
	const status = "Name:\twalpost\nVmHWM:\t   40960 kB\nwchar: 77\n"
	if got, err := parseField(status, "VmHWM"); err != nil || got != 40960 {
		t.Errorf("VmHWM: got %v, %v", got, err)
	}
	if got, err := parseField(status, "wchar"); err != nil || got != 77 {
		t.Errorf("wchar: got %v, %v", got, err)
	}
	if _, err := parseField(status, "VmPeak"); err == nil {
		t.Error("a field that is not there: no error")
	}
}

func TestParseMetric(t *testing.T) {
	t.Parallel()
	const text = "# TYPE a_total counter\na_total_other 1\na_total 2.5e+06\nb_count{slot=\"x y\"} 7\n"
	for name, want := range map[string]float64{"a_total": 2.5e6, "b_count": 7} {
		if got, err := parseMetric(text, name); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, want)
		}
	}
	if _, err := parseMetric(text, "b"); err == nil {
		t.Error("a prefix was taken for the name")
	}
}

func TestOrderRotates(t *testing.T) {
	t.Parallel()
	p := phase{consumers: []string{"a", "b", "c"}}
	var got []string
	for round := range 4 {
		got = append(got, strings.Join(p.order(round), ""))
	}
	if want := []string{"abc", "bca", "cab", "abc"}; !slices.Equal(got, want) {
		t.Errorf("orders: got %v, want %v", got, want)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	opt, err := parse([]string{"-only", "single,latency", "-latency", "5s", "-rate", "500,20000"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{phaseSingle, phaseLatency}; !slices.Equal(opt.only, want) || opt.latency != 5*time.Second || !slices.Equal(opt.rates, []int{500, 20000}) {
		t.Errorf("got %v", opt)
	}
	for _, wrong := range [][]string{{"-only", "all"}, {"-runs", "0"}, {"-events", "150"}, {"-latency", "-1s"}, {"-rate", "0"}, {"-rate", "1500"}, {"-rate", "10,10"}, {"-rate", ""}, {"more"}, {"-x"}, {"-against", "nobody"}, {"-from", "x"}} {
		if _, err := parse(wrong, io.Discard); err == nil {
			t.Errorf("%v: no error", wrong)
		}
	}
}
