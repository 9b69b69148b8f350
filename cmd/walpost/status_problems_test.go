package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/walpost/walpost/slot"
)

// TestStatusProblemsAgree: what the instance says and what PostgreSQL says do not
// contradict each other, and nothing is said twice.
func TestStatusProblemsAgree(t *testing.T) {
	t.Parallel()
	gone := &slot.Error{Kind: slot.ErrPublication, Text: `publication "p" does not exist`, Way: "make it"}
	reason, detail, other := "publication", gone.Text, "the broker is away"
	holding := func(detail string) *liveStatus {
		return &liveStatus{State: "holding", Reason: &reason, Detail: &detail}
	}
	for name, c := range map[string]struct {
		live  *liveStatus
		err   error
		count int
		start bool // the hint is to start an instance
	}{
		"no instance":              {nil, nil, 1, true},
		"an instance, same words":  {holding(detail), gone, 2, false},
		"an instance, other words": {holding(other), gone, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &statusView{info: &slot.Info{Name: "s", Exists: true}, publicationErr: c.err, live: c.live}
			got := s.problems()
			start := false
			for _, p := range got {
				var hinted interface{ Hint() string }
				start = start || errors.As(p, &hinted) && strings.HasPrefix(hinted.Hint(), "start ")
			}
			if len(got) != c.count || start != c.start {
				t.Errorf("%d problems, start %t; want %d, %t:\n%v", len(got), start, c.count, c.start, got)
			}
		})
	}
}
