package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// table prints columns, the leading ones aligned to the left and the rest to the
// right.
type table struct {
	left int
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(w io.Writer) error {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if i < t.left {
				line.WriteString(cell + pad)
			} else {
				line.WriteString(pad + cell)
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// number prints with separated thousands; "–" for what was not measured.
func number(v float64, digits int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	whole, fraction, _ := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction
}

func optional(v *float64, digits int) string {
	if v == nil {
		return "–"
	}
	return number(*v, digits)
}

// print writes the report for people.
func (r *Report) print(w io.Writer) error {
	m := r.Machine
	servers := m.Postgres
	if m.Kafka != "" {
		servers += ", " + m.Kafka + "; limit measured with " + m.Receiver
	}
	if _, err := fmt.Fprintf(w, "\n%s\n%d × %s, Linux %s, %s, load %s\n\n",
		servers, m.CPUs, m.Model, m.Kernel, m.Go, m.LoadAvg); err != nil {
		return err
	}
	if len(r.Rows) > 0 {
		if err := drainTable(r.Rows).print(w); err != nil {
			return err
		}
	}
	if r.Latency != nil {
		if err := r.Latency.print(w); err != nil {
			return err
		}
	}
	for _, l := range r.Latencies {
		if err := l.print(w); err != nil {
			return err
		}
	}
	if r.Away != nil {
		if err := r.Away.print(w); err != nil {
			return err
		}
	}
	if r.Crash != nil {
		if err := r.Crash.print(w); err != nil {
			return err
		}
	}
	if len(r.Growth) > 0 {
		if err := printGrowth(w, r.Growth); err != nil {
			return err
		}
	}
	if r.Application != nil {
		if err := r.Application.print(w); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	t := table{left: 1}
	t.add("floor", "value", "must be", "")
	for _, f := range r.Floors {
		verdict := "ok"
		switch {
		case f.Value == nil:
			verdict = "not measured"
		case f.missed():
			verdict = "MISSED"
		}
		t.add(f.Name, optional(f.Value, 2), f.bound(), verdict)
	}
	return t.print(w)
}

// view is a way to look at a Stat.
type view struct {
	name string
	of   func(*Stat) float64
}

// drainTable has a line of each row or, after several runs, three.
func drainTable(rows []Row) *table {
	t := &table{left: 3}
	t.add("", "", "", "rows/s", "rows/s", "whole of", "CPU µs/", "walsender", "peak RSS", "allocs/", "records/", "start to first")
	t.add("backlog", "drained by", "", "first–last", "whole", "the limit", "event", "µs/row", "MB", "event", "request", "event ms")
	for _, row := range rows {
		views := []view{{"", func(s *Stat) float64 { return s.Median }}}
		if row.Runs > 1 {
			views = []view{
				{"min", func(s *Stat) float64 { return s.Min }},
				{"median", func(s *Stat) float64 { return s.Median }},
				{"max", func(s *Stat) float64 { return s.Max }},
			}
		}
		for i, v := range views {
			cell := func(s *Stat, digits int) string {
				if s == nil {
					return "–"
				}
				return number(v.of(s), digits)
			}
			phase, consumer := row.Phase+" "+number(float64(row.Rows), 0), row.Consumer
			if i > 0 {
				phase, consumer = "", ""
			}
			t.add(phase, consumer, v.name, cell(row.Rate, 0), cell(row.WholeRate, 0), cell(row.Ratio, 2),
				cell(row.CPUMicros, 2), cell(row.SendMicros, 2), cell(row.PeakRSSMB, 1), cell(row.Allocs, 2), cell(row.PerRequest, 0), cell(row.FirstMillis, 0))
		}
	}
	return t
}
