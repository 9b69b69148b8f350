package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/walpost/walpost/internal/testkit/topic"
)

// point is one place on one axis along which cost may grow; everything that it
// does not name is as in the backlog.
type point struct {
	axis       string
	rows       int
	perTx      int
	aggregates int
	payload    int // bytes of the payload's note
	types      int // aggregate types, each of which has its topic
	partitions int // of each topic
}

// Growth is what an event costs at a point.
type Growth struct {
	Axis      string  `json:"axis"`
	Rows      int     `json:"rows"`
	CPUMicros float64 `json:"cpu_us_per_event"`
	Allocs    float64 `json:"allocs_per_event"`
	PeakRSSMB float64 `json:"peak_rss_mb"`
	Rate      float64 `json:"rows_per_s_whole"`
}

// points of -growth. The rows are so many that the start does not count.
func points() []point {
	base := point{rows: 100_000, perTx: 100, aggregates: 10_000, payload: 40, types: 1, partitions: partitions}
	var list []point
	add := func(axis string, change func(*point, int), values ...int) {
		for _, v := range values {
			p := base
			change(&p, v)
			p.axis = fmt.Sprintf("%s %s", number(float64(v), 0), axis)
			list = append(list, p)
		}
	}
	add("rows", func(p *point, v int) { p.rows = v }, 50_000, 200_000, 800_000)
	add("rows per transaction", func(p *point, v int) { p.perTx = v; p.rows = max(p.rows, v) }, 1, 10, 1000, 100_000, 1_000_000)
	add("aggregates", func(p *point, v int) { p.aggregates = v; p.rows = max(p.rows, v) }, 1, 1000, 1_000_000)
	add("bytes of payload", func(p *point, v int) { p.payload = v; p.rows = min(p.rows, 400_000_000/v) }, 100, 1000, 10_000, 100_000)
	add("partitions", func(p *point, v int) { p.partitions = v }, 1, 48, 192)
	add("topics", func(p *point, v int) { p.types = v }, 10, 100, 1000)
	return list
}

// growth drains a backlog at each point, the product alone.
func (r *rig) growth(ctx context.Context) ([]Growth, error) {
	var list []Growth
	for i, p := range points() {
		g, err := r.grow(ctx, fmt.Sprintf("bench_growth_%d", i), p)
		if err != nil {
			return nil, fmt.Errorf("growth, %s: %w", p.axis, err)
		}
		r.say("%s: CPU %.2f µs per event, %.1f MB", p.axis, g.CPUMicros, g.PeakRSSMB)
		list = append(list, g)
	}
	return list, nil
}

func (r *rig) grow(ctx context.Context, name string, p point) (g Growth, err error) {
	if err := r.createSlot(ctx, name); err != nil {
		return g, err
	}
	if _, err := r.fillWith(ctx, p); err != nil {
		return g, err
	}
	// Topics by the aggregate type, so that one relay has all of them.
	for i := range p.types {
		if err := topic.Create(ctx, r.cluster.Addr(), topic.Spec{Name: fmt.Sprintf("%s.Bench%d", name, i), Partitions: p.partitions}); err != nil {
			return g, err
		}
	}
	w, err := r.startWalpost(ctx, name, name+".<aggregate_type>")
	if err != nil {
		return g, err
	}
	defer w.close()
	// The relay's own count: asking the broker for a thousand topics would take
	// longer than the drain.
	err = poll(ctx, 20*time.Millisecond, patience, "the end of the backlog", func() (bool, error) {
		status, err := w.status(ctx)
		if err != nil {
			return false, w.ended() // not listening yet
		}
		return status.Published.Events >= uint64(p.rows), w.ended()
	})
	if err != nil {
		return g, err
	}
	d := Drain{Rows: p.rows, Start: w.start, Last: time.Now()}
	if err := w.usage(&d); err != nil {
		return g, err
	}
	if err := w.count(ctx, &d); err != nil {
		return g, err
	}
	if err := w.stop(ctx); err != nil {
		return g, err
	}
	// Many topics go with the broker: to delete a thousand takes it minutes.
	if p.types <= 1 {
		if err := topic.Delete(ctx, r.cluster.Addr(), name+".Bench0"); err != nil {
			return g, err
		}
	}
	return Growth{
		Axis: p.axis, Rows: p.rows, CPUMicros: d.cpuMicros(), Allocs: d.allocs(), PeakRSSMB: d.rssMB(), Rate: d.wholeRate(),
	}, r.dropSlots(ctx, name)
}

func printGrowth(w io.Writer, list []Growth) error {
	if _, err := fmt.Fprintln(w, "\ngrowth: walpost into Kafka; otherwise 100,000 rows, 100 per transaction, 10,000 aggregates, about 300 bytes, one topic of 12 partitions"); err != nil {
		return err
	}
	t := table{}
	t.add("", "rows drained", "CPU µs/event", "allocs/event", "peak RSS MB", "rows/s")
	for _, g := range list {
		t.add(g.Axis, number(float64(g.Rows), 0), number(g.CPUMicros, 2), number(g.Allocs, 2), number(g.PeakRSSMB, 1), number(g.Rate, 0))
	}
	return t.print(w)
}
