package main

import (
	"runtime/metrics"
	"time"
)

// Result is what a run has to say.
type Result struct {
	Events      uint64 `json:"events"`
	FirstMicros int64  `json:"first_micros"` // Unix time of the first event
	LastMicros  int64  `json:"last_micros"`  // and of the last one
	Mallocs     uint64 `json:"mallocs"`      // between the two
}

// counter counts events and reports once, when enough have come. It belongs to
// one goroutine, until the run is over.
type counter struct {
	want   uint64
	done   func(Result) error
	n      uint64
	first  time.Time
	before uint64
	failed error
}

func (c *counter) event() {
	if c.n++; c.n == 1 {
		c.before, c.first = mallocs(), time.Now()
	}
	if c.n == c.want {
		last := time.Now()
		c.failed = c.done(Result{
			Events: c.n, FirstMicros: c.first.UnixMicro(), LastMicros: last.UnixMicro(), Mallocs: mallocs() - c.before,
		})
	}
}

func (c *counter) err() error { return c.failed }

// mallocs is go_memstats_mallocs_total by a way that does not stop the world.
func mallocs() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/tiny/allocs:objects"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() + samples[1].Value.Uint64()
}
