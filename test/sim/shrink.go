package sim

import "slices"

// shrink drops steps and transactions as long as the same rule is still broken.
// What the relay draws for itself is not the plan's, so a candidate gets a few
// tries.
func shrink(p *plan, rule string, breaks func(*plan) []failure, tries int) *plan {
	same := func(q *plan) bool {
		for range tries {
			if slices.ContainsFunc(breaks(q), func(f failure) bool { return f.rule == rule }) {
				return true
			}
		}
		return false
	}
	best := *p
	best.Steps = reduce(best.Steps, func(list []step) bool {
		q := best
		q.Steps = list
		return same(&q)
	})
	best.Transactions = reduce(best.Transactions, func(list []transaction) bool {
		q := best
		q.Transactions = list
		return same(&q)
	})
	best.Steps = reduce(best.Steps, func(list []step) bool {
		q := best
		q.Steps = list
		return same(&q)
	})
	return &best
}

// reduce removes ever smaller runs of list while what is left is still good
// enough.
func reduce[T any](list []T, enough func([]T) bool) []T {
	for size := (len(list) + 1) / 2; size > 0; size /= 2 {
		for from := 0; from < len(list); {
			rest := append(slices.Clone(list[:from]), list[min(from+size, len(list)):]...)
			if enough(rest) {
				list = rest
			} else {
				from += size
			}
		}
	}
	return list
}
