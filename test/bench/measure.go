package main

import "time"

// The names of those that drain.
const (
	byReceiver = "pg_recvlogical"
	byReader   = "own reader" // in its place where there is none
	byDiscard  = "walpost, discarding"
	byKafka    = "walpost, Kafka"
	byDefault  = "Debezium, default"
	byTuned    = "Debezium, tuned"
)

// Drain is one drain of a backlog by one consumer. Numbers that were not
// measured are NaN.
type Drain struct {
	Phase    string
	Consumer string
	Round    int // drains of one round are compared with each other
	Rows     int

	Start, First, Last time.Time // of the process, of the first and last row

	CPU       float64 // seconds of the consumer, all in
	WalSender float64 // seconds of the walsender
	PeakRSS   float64 // bytes
	Mallocs   float64 // between first and last row
	Requests  float64 // produce requests
}

func (d *Drain) rate() float64       { return float64(d.Rows) / d.Last.Sub(d.First).Seconds() }
func (d *Drain) wholeRate() float64  { return float64(d.Rows) / d.Last.Sub(d.Start).Seconds() }
func (d *Drain) cpuMicros() float64  { return d.CPU * 1e6 / float64(d.Rows) }
func (d *Drain) sendMicros() float64 { return d.WalSender * 1e6 / float64(d.Rows) }
func (d *Drain) allocs() float64     { return d.Mallocs / float64(d.Rows) }
func (d *Drain) perRequest() float64 { return float64(d.Rows) / d.Requests }
func (d *Drain) rssMB() float64      { return d.PeakRSS / 1e6 }
func (d *Drain) firstMillis() float64 {
	return float64(d.First.Sub(d.Start)) / float64(time.Millisecond)
}

// baseline reports whether others are compared with this one.
func (d *Drain) baseline() bool { return d.Consumer == byReceiver || d.Consumer == byReader }

// Row is what all rounds of one consumer in one phase amount to.
type Row struct {
	Phase     string `json:"phase"`
	Consumer  string `json:"consumer"`
	Rows      int    `json:"rows"`
	Runs      int    `json:"runs"`
	Rate      *Stat  `json:"rows_per_s"`       // from the first row to the last
	WholeRate *Stat  `json:"rows_per_s_whole"` // from the start of the process
	// Ratio is that of the whole rates. From the first record in Kafka to the
	// last would flatter: by then the relay holds as many rows as its memory
	// takes, which have left the walsender before the clock starts.
	Ratio       *Stat `json:"ratio_to_walsender_limit"`
	CPUMicros   *Stat `json:"cpu_us_per_event"`
	SendMicros  *Stat `json:"walsender_us_per_row"`
	PeakRSSMB   *Stat `json:"peak_rss_mb"`
	Allocs      *Stat `json:"allocs_per_event"`
	PerRequest  *Stat `json:"records_per_request"`
	FirstMillis *Stat `json:"first_event_ms"`
}

// summarize makes a row of each phase and consumer, in order of appearance.
func summarize(drains []Drain) []Row {
	type key struct{ phase, consumer string }
	type heat struct {
		phase string
		round int
	}
	var order []key
	byKey := make(map[key][]*Drain)
	limits := make(map[heat]float64)
	for i := range drains {
		d := &drains[i]
		k := key{d.Phase, d.Consumer}
		if byKey[k] == nil {
			order = append(order, k)
		}
		byKey[k] = append(byKey[k], d)
		if d.baseline() {
			limits[heat{d.Phase, d.Round}] = d.wholeRate()
		}
	}
	var rows []Row
	for _, k := range order {
		group := byKey[k]
		each := func(f func(*Drain) float64) *Stat {
			values := make([]float64, len(group))
			for i, d := range group {
				values[i] = f(d)
			}
			return stat(values)
		}
		rows = append(rows, Row{
			Phase: k.phase, Consumer: k.consumer, Rows: group[0].Rows, Runs: len(group),
			Rate: each((*Drain).rate), WholeRate: each((*Drain).wholeRate),
			Ratio: each(func(d *Drain) float64 {
				limit, ok := limits[heat{d.Phase, d.Round}]
				if !ok {
					return nan()
				}
				return d.wholeRate() / limit
			}),
			CPUMicros: each((*Drain).cpuMicros), SendMicros: each((*Drain).sendMicros),
			PeakRSSMB: each((*Drain).rssMB), Allocs: each((*Drain).allocs), PerRequest: each((*Drain).perRequest),
			FirstMillis: each((*Drain).firstMillis),
		})
	}
	return rows
}
