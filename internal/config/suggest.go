package config

import "strings"

// Closest gives the candidate with the fewest edits to s, if few enough that
// it is likely to be what was meant.
func Closest(s string, candidates []string) (string, bool) {
	best, found := max(len(s)/3, 1)+1, ""
	for _, c := range candidates {
		if d := distance(strings.ToLower(s), strings.ToLower(c)); d < best {
			best, found = d, c
		}
	}
	return found, found != ""
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	before := make([]int, len(b)+1) // the row before the last one
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
