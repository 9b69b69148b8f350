package relay

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/walpost/walpost/slot"
)

// status is what the goroutines tell about themselves. Snapshot derives the
// rest.
type status struct {
	mu      sync.Mutex
	started time.Time
	state   State // as set; Snapshot refines "connected" states
	since   time.Time
	reason  string
	err     error
	known   slot.History // of the last session
	initial bool         // rows are published that come before the stream

	poison    *Poison
	poisonErr error
	poisoned  atomic.Bool // poison is set; read on the hot path

	lastHeard time.Time // local clock: last keepalive or Begin
	zeroAt    time.Time // local clock: nothing was unpublished
	newest    time.Time // commit time of the newest published event
	lastAck   time.Time

	skew    [2]time.Duration // server minus local: maximum of this and the last period
	skewSet [2]bool
	skewAt  time.Time

	ignored map[string]uint64

	rated [2]sample // of the published count, up to a minute apart
}

type sample struct {
	at    time.Time
	count uint64
}

// skewPeriod is half the window over which the clock offset is a maximum: the
// sample that travelled fastest is the truest.
const skewPeriod = 150 * time.Second

func (s *status) init(now time.Time) {
	s.started, s.since, s.state = now, now, Starting
	s.ignored = make(map[string]uint64)
}

func (s *status) set(now time.Time, state State, reason string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != state || s.reason != reason {
		s.since = now
	}
	s.state, s.reason, s.err = state, reason, err
}

func (s *status) is(state State) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == state
}

func (s *status) connected(now time.Time, h slot.History) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known, s.initial = h, false
	s.state, s.reason, s.err, s.since = CatchingUp, "", nil, now
}

// before says that the session is none yet: there is no stream to hear from.
func (s *status) before(now time.Time, h slot.History) {
	s.connected(now, h)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.initial = true
}

func (s *status) disconnected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastHeard = time.Time{}
}

func (s *status) history() slot.History {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// heard notes a message of the server with its clock.
func (s *status) heard(now, server time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastHeard = now
	if now.Sub(s.skewAt) > skewPeriod {
		s.skew[1], s.skewSet[1] = s.skew[0], s.skewSet[0]
		s.skewSet[0], s.skewAt = false, now
	}
	if d := server.Sub(now); !s.skewSet[0] || d > s.skew[0] {
		s.skew[0], s.skewSet[0] = d, true
	}
}

func (s *status) clockSkew() (time.Duration, bool) {
	switch {
	case s.skewSet[0] && s.skewSet[1]:
		return max(s.skew[0], s.skew[1]), true
	case s.skewSet[0]:
		return s.skew[0], true
	default:
		return s.skew[1], s.skewSet[1]
	}
}

// serverNow is the server's clock now.
func (s *status) serverNow(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	skew, _ := s.clockSkew()
	return now.Add(skew)
}

// caughtUp notes that nothing was unpublished at this instant.
func (s *status) caughtUp(now time.Time) {
	s.mu.Lock()
	s.zeroAt = now
	s.mu.Unlock()
}

func (s *status) acked(now, newest time.Time) {
	s.mu.Lock()
	s.lastAck = now
	if newest.After(s.newest) {
		s.newest = newest
	}
	s.mu.Unlock()
}

func (s *status) setPoison(p Poison, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.poisoned.Store(true)
	if old := s.poison; old != nil && old.CommitLSN == p.CommitLSN && old.Ordinal == p.Ordinal {
		p.Since = old.Since // it came again with a new session
	}
	s.poison, s.poisonErr = &p, err
}

func (s *status) clearPoison() {
	if !s.poisoned.Load() {
		return
	}
	s.mu.Lock()
	s.poison, s.poisonErr = nil, nil
	s.poisoned.Store(false)
	s.mu.Unlock()
}

func (s *status) ignore(reason string) { s.ignoreN(reason, 1) }

func (s *status) ignoreN(reason string, n int) {
	s.mu.Lock()
	s.ignored[reason] += uint64(n)
	s.mu.Unlock()
}

// rate is the number of events published per second over about the last minute.
// It samples whenever somebody looks.
func (s *status) rate(now time.Time, published uint64) float64 {
	if s.rated[1].at.IsZero() {
		s.rated[0] = sample{at: s.started}
		s.rated[1] = s.rated[0]
	}
	if now.Sub(s.rated[1].at) >= 30*time.Second {
		s.rated[0], s.rated[1] = s.rated[1], sample{now, published}
	}
	if d := now.Sub(s.rated[0].at).Seconds(); d > 0 {
		return float64(published-s.rated[0].count) / d
	}
	return 0
}
