package main

import (
	"fmt"
	"os"
	"strings"
)

// bar is one line of a chart.
type bar struct {
	label string
	value float64
	own   bool
}

// panel is a group of bars on one scale.
type panel struct {
	title string
	bars  []bar
	form  string // of the values
}

// panels takes what the README shows out of a report: medians of the backlog.
func panels(r *Report) []panel {
	list := []panel{
		{title: "rows/s, from the start of the process to the last row", form: "%s"},
		{title: "CPU of the relay, µs per event", form: "%s"},
		{title: "peak resident memory, MB", form: "%s"},
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Phase != phaseBacklog {
			continue
		}
		for at, s := range []*Stat{row.WholeRate, row.CPUMicros, row.PeakRSSMB} {
			if s != nil {
				list[at].bars = append(list[at].bars, bar{row.Consumer, s.Median, strings.HasPrefix(row.Consumer, "walpost")})
			}
		}
	}
	return list
}

const (
	chartWidth, chartLabel, chartValue = 720, 190, 90
	lineHeight                         = 24
)

// chart draws a report as SVG. Colours hold on a light and on a dark page.
func chart(r *Report) string {
	var b strings.Builder
	y := 0
	for _, p := range panels(r) {
		if len(p.bars) == 0 {
			continue
		}
		y += lineHeight
		fmt.Fprintf(&b, `<text class="t" x="0" y="%d">%s</text>`+"\n", y, escape(p.title))
		var most float64
		for _, v := range p.bars {
			most = max(most, v.value)
		}
		for _, v := range p.bars {
			y += lineHeight
			width := v.value / most * (chartWidth - chartLabel - chartValue)
			class := "other"
			if v.own {
				class = "own"
			}
			digits := 0
			if v.value < 100 {
				digits = 1
			}
			fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, chartLabel-8, y, escape(v.label))
			fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="16" rx="2"/>`, class, chartLabel, y-13, max(width, 1))
			fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`+"\n", chartLabel+width+6, y, number(v.value, digits))
		}
		y += lineHeight / 2
	}
	y += lineHeight
	fmt.Fprintf(&b, `<text class="n" x="0" y="%d">%s</text>`+"\n", y,
		escape(fmt.Sprintf("%d × %s, shared by %s, %s and the relay; %s", r.Machine.CPUs, r.Machine.Model, r.Machine.Postgres, r.Machine.Kafka, r.At.Format("2006-01-02"))))
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="13">
<style>text{fill:#777}.t{font-weight:bold}.n{font-size:11px}.own{fill:#2f6fbb}.other{fill:#a9a9a9}</style>
%s</svg>
`, chartWidth, y+8, chartWidth, y+8, b.String())
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// drawChart turns a file of results into a picture.
func drawChart(results, picture string) error {
	r, err := readReport(results)
	if err != nil {
		return err
	}
	return os.WriteFile(picture, []byte(chart(r)), 0o644)
}
