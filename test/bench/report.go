package main

import (
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"time"
)

// Report is everything that a run found out; -json writes it.
type Report struct {
	At      time.Time `json:"at"`
	Machine Machine   `json:"machine"`
	Rows    []Row     `json:"rows"`
	Latency *Latency  `json:"latency,omitempty"`
	// Latencies are at other rates than the usual one.
	Latencies []*Latency `json:"latencies,omitempty"`
	Crash     *Crash     `json:"crash,omitempty"`
	Growth    []Growth   `json:"growth,omitempty"`
	// Away is there when Kafka was stopped for a while.
	Away *Away `json:"kafka_away,omitempty"`
	// Application is there when package outbox was measured.
	Application *Application `json:"application,omitempty"`
	Ratios      Ratios       `json:"ratios"`
	Walpost     Walpost      `json:"walpost"`
	Floors      []Floor      `json:"floors"`
}

// Machine says where.
type Machine struct {
	CPUs     int    `json:"cpus"`
	Model    string `json:"model"`
	Kernel   string `json:"kernel"`
	Go       string `json:"go"`
	Postgres string `json:"postgres"`
	Kafka    string `json:"kafka"`
	Receiver string `json:"receiver"` // which program stands for the walsender's limit
	LoadAvg  string `json:"load_average_at_start"`
}

// Ratios are medians of the backlog, null if not measured.
type Ratios struct {
	Discard       *float64 `json:"discard_vs_pg_recvlogical"`
	Kafka         *float64 `json:"kafka_vs_pg_recvlogical"`
	SingleDiscard *float64 `json:"single_discard_vs_pg_recvlogical"`
	SingleKafka   *float64 `json:"single_kafka_vs_pg_recvlogical"`

	// The whole of walpost's run, with its start, against Debezium from its first
	// record to its last.
	Debezium              *float64 `json:"kafka_vs_debezium"` // tuned
	DebeziumDefault       *float64 `json:"kafka_vs_debezium_default"`
	SingleDebezium        *float64 `json:"single_kafka_vs_debezium"`
	SingleDebeziumDefault *float64 `json:"single_kafka_vs_debezium_default"`
}

// Walpost has the numbers of "walpost run" into Kafka: of the backlog, but for
// the memory of the one large transaction.
type Walpost struct {
	CPUMicros *float64 `json:"cpu_us_per_event"`
	Allocs    *float64 `json:"allocs_per_event"`
	PeakRSSMB *float64 `json:"peak_rss_mb"` // the largest of all phases
	BigRSSMB  *float64 `json:"peak_rss_mb_big"`
	FirstMS   *float64 `json:"first_event_ms"`
}

func newReport(m Machine, drains []Drain, latency *Latency, crash *Crash) *Report {
	r := &Report{At: time.Now().UTC(), Machine: m, Rows: summarize(drains), Latency: latency, Crash: crash}
	r.Ratios = Ratios{
		Discard:       median(r.row(phaseBacklog, byDiscard).Ratio),
		Kafka:         median(r.row(phaseBacklog, byKafka).Ratio),
		SingleDiscard: median(r.row(phaseSingle, byDiscard).Ratio),
		SingleKafka:   median(r.row(phaseSingle, byKafka).Ratio),

		Debezium:              r.against(phaseBacklog, byTuned),
		DebeziumDefault:       r.against(phaseBacklog, byDefault),
		SingleDebezium:        r.against(phaseSingle, byTuned),
		SingleDebeziumDefault: r.against(phaseSingle, byDefault),
	}
	backlog := r.row(phaseBacklog, byKafka)
	r.Walpost = Walpost{
		CPUMicros: median(backlog.CPUMicros), Allocs: median(backlog.Allocs), FirstMS: median(backlog.FirstMillis),
		BigRSSMB: highest(r.row(phaseBig, byKafka).PeakRSSMB),
	}
	for _, row := range r.Rows {
		if peak := highest(row.PeakRSSMB); row.Consumer == byKafka && peak != nil {
			if r.Walpost.PeakRSSMB == nil || *peak > *r.Walpost.PeakRSSMB {
				r.Walpost.PeakRSSMB = peak
			}
		}
	}
	r.Floors = checkFloors(r)
	return r
}

// row finds a row; one that was not measured is empty.
func (r *Report) row(phase, consumer string) Row {
	for _, row := range r.Rows {
		if row.Phase == phase && row.Consumer == consumer {
			return row
		}
	}
	return Row{}
}

// against compares medians of walpost with those of a Debezium.
func (r *Report) against(phase, consumer string) *float64 {
	own, other := median(r.row(phase, byKafka).WholeRate), median(r.row(phase, consumer).Rate)
	if own == nil || other == nil {
		return nil
	}
	ratio := *own / *other
	return &ratio
}

func median(s *Stat) *float64 {
	if s == nil {
		return nil
	}
	return &s.Median
}

func highest(s *Stat) *float64 {
	if s == nil {
		return nil
	}
	return &s.Max
}

// writeTo writes a file, if one is wanted.
func (r *Report) writeTo(path string) error {
	if path == "" {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// describeMachine reads what Linux tells; what is not there stays empty.
func describeMachine() Machine {
	m := Machine{CPUs: runtime.NumCPU(), Go: runtime.Version()}
	read := func(path string) string {
		data, _ := os.ReadFile(path)
		return strings.TrimSpace(string(data))
	}
	for line := range strings.Lines(read("/proc/cpuinfo")) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.Model = strings.TrimSpace(value)
			break
		}
	}
	m.Kernel = read("/proc/sys/kernel/osrelease")
	m.LoadAvg = read("/proc/loadavg")
	return m
}
