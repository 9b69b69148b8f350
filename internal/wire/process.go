package wire

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/walpost/walpost/internal/socket"
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

// Processors keeps the process on one processor, and its sockets read together, as
// long as it is not busy, and returns when ctx ends. An event is handed from
// goroutine to goroutine several times; on several processors each time wakes a
// thread that was asleep, which costs more than the work. It begins with all of
// them: a backlog is likely at the start, and on one processor every answer of
// Kafka that the first record needs would wait until the reader of the backlog is
// interrupted. GOMAXPROCS has the last word.
func Processors(ctx context.Context) {
	most := runtime.GOMAXPROCS(0) // the container's limit, if it has one
	limit := runtime.GOMAXPROCS
	if os.Getenv("GOMAXPROCS") != "" || most == 1 {
		limit = func(n int) int { return n }
	}
	defer limit(most)
	defer socket.ReadTogether(false)
	g := newGovernor()
	tick := time.NewTicker(governorInterval)
	defer tick.Stop()
	for last, used := time.Now(), cpuTime(); ; {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			u := cpuTime()
			if g.next(float64(u-used) / float64(now.Sub(last))) {
				if g.busy {
					limit(most)
				} else {
					limit(1)
				}
				socket.ReadTogether(!g.busy)
			}
			last, used = now, u
		}
	}
}

const (
	governorInterval = time.Second
	busyLoad         = 0.7 // of a processor, and above
	calmLoad         = 0.4
	calmIntervals    = 10 // in a row, until it is calm again
)

// governor decides whether the process is busy.
type governor struct {
	busy bool
	calm int // intervals in a row
}

// newGovernor begins as busy, which one calm interval ends.
func newGovernor() *governor {
	return &governor{busy: true, calm: calmIntervals - 1}
}

// next takes the load of the last interval, in processors, and reports whether
// busy changed.
func (g *governor) next(load float64) (changed bool) {
	if load > calmLoad {
		g.calm = 0
	} else {
		g.calm++
	}
	if !g.busy && load > busyLoad || g.busy && g.calm >= calmIntervals {
		g.busy = !g.busy
		return true
	}
	return false
}
