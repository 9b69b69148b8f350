package relay

import (
	"fmt"
	"sync"
	"time"
)

// stalled is how long a loop may not turn before the process is not live. It is
// above what any of them waits for: the longest are a look at a server behind a
// connection timeout of a minute, and the back-off after a refused password.
const stalled = 3 * time.Minute

// pulse remembers when the pump was last seen to move.
type pulse struct {
	mu    sync.Mutex
	turns uint64
	at    time.Time
}

// Live is nil as long as the loops turn. It depends on neither PostgreSQL nor
// Kafka: a restart would not mend those. The pump may wait, for the server or
// for room in the sink, as long as it likes; it must not hang in between.
func (r *Relay) Live() error {
	now := r.now()
	turns := r.pump.turns.Load()
	waiting := r.pump.idling.Load() || r.pump.blocked.Load()
	r.pulse.mu.Lock()
	if turns != r.pulse.turns || waiting || r.pulse.at.IsZero() {
		r.pulse.turns, r.pulse.at = turns, now
	}
	moved := r.pulse.at
	r.pulse.mu.Unlock()

	r.status.mu.Lock()
	started := r.status.started
	r.status.mu.Unlock()
	for _, loop := range []struct {
		name string
		at   time.Time
	}{
		{"pump", moved},
		{"sink", later(r.sink.Status().Beat, started)},
		{"monitor", later(r.monitor.Latest().At, started)},
	} {
		if d := now.Sub(loop.at); d > stalled {
			return fmt.Errorf("the %s loop has not turned for %s", loop.name, d.Round(time.Second))
		}
	}
	return nil
}
