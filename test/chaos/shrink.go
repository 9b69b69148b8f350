package main

import (
	"errors"
	"fmt"
)

// finding is an error that says something of the relay: it, and not the bench,
// did what it must not. Only this is worth another run.
type finding struct{ error }

func (f finding) Unwrap() error { return f.error }

func isFinding(err error) bool {
	_, ok := errors.AsType[finding](err)
	return ok
}

// failure is a schedule that ended in a finding.
type failure struct {
	schedule schedule     // as far as it went
	suspects map[int]bool // numbers of the rounds that the finding points at
	err      error
}

// shrinker looks for a shorter schedule that fails too. What a seed fixes is the
// schedule and not the moment, so a schedule that does not fail proves nothing:
// it is only left alone.
type shrinker struct {
	tries int
	again func(schedule) *failure // nil: it did not fail
	say   func(format string, args ...any)
}

// shrink returns the shortest failure that it found, which may be the given one.
func (s *shrinker) shrink(shortest *failure) *failure {
	tried := map[string]bool{shortest.schedule.String(): true}
	for try := 1; try <= s.tries; try++ {
		next := untried(shortest, tried)
		if next == nil {
			s.say("there is nothing left to leave out")
			break
		}
		tried[next.String()] = true
		s.say("shrinking, run %d of at most %d: %s", try, s.tries, next)
		f := s.again(next)
		if f == nil {
			s.say("that does not fail")
			continue
		}
		s.say("that fails too")
		shortest = f
		tried[f.schedule.String()] = true
	}
	return shortest
}

func untried(f *failure, tried map[string]bool) schedule {
	for _, c := range candidates(f) {
		if !tried[c.String()] {
			return c
		}
	}
	return nil
}

// candidates are shorter schedules, the most promising first.
func candidates(f *failure) []schedule {
	var list []schedule
	s := f.schedule
	var suspects schedule
	for _, step := range s {
		if f.suspects[step.number] {
			suspects = append(suspects, step)
		}
	}
	if len(suspects) > 0 && len(suspects) < len(s) {
		list = append(list, suspects)
	}
	if half := len(s) / 2; half > 0 {
		list = append(list, s[half:], s[:half])
	}
	if len(s) > 2 {
		for i := range s {
			list = append(list, append(append(schedule{}, s[:i]...), s[i+1:]...))
		}
	}
	for i, one := range s {
		for leave := range one.faults {
			if len(one.faults) == 1 && len(s) > 1 {
				continue // that is to leave the round out
			}
			fewer := append(schedule{}, s...)
			fewer[i] = step{number: one.number}
			for k, f := range one.faults {
				if k != leave {
					fewer[i].faults = append(fewer[i].faults, f)
				}
			}
			list = append(list, fewer)
		}
	}
	return list
}

// passes is how often a shrunk schedule is run in one try: a short one has fewer
// moments in which it can hit.
func (s schedule) passes() int {
	const rounds = 8
	return max(1, (rounds+len(s)-1)/max(len(s), 1))
}

// command is how to run a schedule again.
func (o options) command(s schedule) string {
	text := fmt.Sprintf("go run ./test/chaos -seed %d -brokers %d -schedule %s -repeat %d -judge-every %d", o.seed, o.brokers, s, s.passes(), max(len(s), 1))
	if o.pg != 0 {
		text += fmt.Sprintf(" -pg %d", o.pg)
	}
	if o.freeze != 0 {
		text += fmt.Sprintf(" -freeze %s", o.freeze)
	}
	if o.walpost != "" {
		text += " -walpost " + o.walpost
	}
	return text
}
