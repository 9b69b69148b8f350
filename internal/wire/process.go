package wire

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// CollectEarly sets the garbage collector up for a relay. Almost all its memory
// is blocks and buffers that are reused, so there is little to collect; but by
// default the heap may grow to twice what is in use before anybody looks. A
// quarter on top is enough. GOGC has the last word.
//
// There is no memory limit beside it (GOMEMLIMIT sets one): what is in use depends
// on the number of partitions too, and a collector above its limit does nothing
// else any more.
func CollectEarly() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(25)
	}
}

// Processors keeps the process on one processor as long as that is not busy, and
// returns when ctx ends. An event is handed from goroutine to goroutine several
// times; on several processors each time wakes a thread that was asleep, which
// costs more than the work. It begins with all of them: a backlog is likely at the
// start, and on one processor every answer of Kafka that the first record needs
// would wait until the reader of the backlog is interrupted. GOMAXPROCS has the
// last word.
func Processors(ctx context.Context) {
	most := runtime.GOMAXPROCS(0) // the container's limit, if it has one
	if os.Getenv("GOMAXPROCS") != "" || most == 1 {
		return
	}
	defer runtime.GOMAXPROCS(most)
	g := newGovernor(most)
	tick := time.NewTicker(governorInterval)
	defer tick.Stop()
	for last, used := time.Now(), cpuTime(); ; {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			u := cpuTime()
			if n, changed := g.next(float64(u-used) / float64(now.Sub(last))); changed {
				runtime.GOMAXPROCS(n)
			}
			last, used = now, u
		}
	}
}

const (
	governorInterval = time.Second
	busyLoad         = 0.7 // of a processor; from here on all are used
	calmLoad         = 0.4
	calmIntervals    = 10 // in a row, until one is enough again
)

// governor decides how many processors to use.
type governor struct {
	most int
	all  bool
	calm int
}

// newGovernor begins with all processors, of which one calm interval leaves one.
func newGovernor(most int) *governor {
	return &governor{most: most, all: true, calm: calmIntervals - 1}
}

// next takes the load of the last interval, in processors.
func (g *governor) next(load float64) (processors int, changed bool) {
	if load > calmLoad {
		g.calm = 0
	} else {
		g.calm++
	}
	switch {
	case !g.all && load > busyLoad:
		g.all = true
		return g.most, true
	case g.all && g.calm >= calmIntervals:
		g.all = false
		return 1, true
	}
	return 0, false
}
