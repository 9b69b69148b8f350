package sink

import "time"

// pace is the least time between the beginnings of two requests to a broker,
// unless there is enough for a large one. A broker that answers faster would get
// requests with a record or two in each; these take the processors from whoever
// makes the next records, which makes the requests smaller still. A record that
// comes after a pause goes at once.
const pace = time.Millisecond

// rest is how long the next request with healthy lanes should wait; enough is how
// many bytes are worth one at any time.
func (b *broker) rest(now time.Time, enough int) time.Duration {
	left := pace - now.Sub(b.started)
	if left <= 0 {
		return 0
	}
	for _, l := range b.healthy {
		if enough -= l.queue.bytes; enough <= 0 {
			return 0
		}
	}
	return min(left, pace) // the clock may have been set back
}
