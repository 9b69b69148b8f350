package column

import (
	"slices"
	"unicode/utf8"
)

// entry is a key of a Java HashMap with its place in the order of its iteration.
type entry struct {
	key, value []byte
	null       bool
	hash       uint32
}

// stringHash is Java's String.hashCode, over UTF-16.
func stringHash(text []byte) uint32 {
	var h uint32
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		if r >= 0x10000 {
			r -= 0x10000
			h = h*31 + 0xd800 + uint32(r>>10)
			r = 0xdc00 + r&0x3ff
		}
		h = h*31 + uint32(r)
	}
	return h
}

// spread is how HashMap mixes a hash before it takes its low bits.
func spread(h uint32) uint32 { return h ^ h>>16 }

// capacity is the number of buckets after n insertions into a map that began with
// initial ones: it doubles as soon as more than three quarters are taken.
func capacity(initial, n int) uint32 {
	c := initial
	for 4*n > 3*c {
		c *= 2
	}
	return uint32(c)
}

// javaOrder sorts entries as a HashMap that they were put into would iterate:
// bucket by bucket, in one bucket by insertion. Only keys that collide by the
// dozen, which HashMap keeps in trees, would come in another order.
func javaOrder(entries []entry, initial int) {
	mask := capacity(initial, len(entries)) - 1
	slices.SortStableFunc(entries, func(a, b entry) int { return int(a.hash&mask) - int(b.hash&mask) })
}
