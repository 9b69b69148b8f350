package sink

import (
	"testing"
	"time"
)

func TestRest(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	for name, tt := range map[string]struct {
		ago    time.Duration
		queued []int
		want   time.Duration
	}{
		"after a pause":  {10 * pace, []int{100}, 0},
		"just in time":   {pace, []int{100}, 0},
		"at once":        {0, []int{100}, pace},
		"too early":      {pace / 4, []int{100, 200}, pace * 3 / 4},
		"enough in one":  {0, []int{1000}, 0},
		"enough in all":  {0, []int{400, 600}, 0},
		"clock set back": {-time.Hour, []int{100}, pace},
	} {
		b := &broker{started: now.Add(-tt.ago)}
		for _, n := range tt.queued {
			b.healthy = append(b.healthy, &lane{queue: queue{bytes: n}})
		}
		if got := b.rest(now, 1000); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
