package metrics

import (
	"maps"
	"sync"
	"sync/atomic"
)

// other is the label of everything beyond the bound.
const other = "other"

// bounded makes one value per label, for at most limit labels and "other". A
// look-up takes no lock: the map is replaced when a label is new, which happens
// limit times in the life of the process.
type bounded[T any] struct {
	limit int
	make  func(label string) T

	known atomic.Pointer[map[string]T]
	rest  func() T

	mu sync.Mutex // of replacing the map
}

func newBounded[T any](limit int, make func(label string) T) *bounded[T] {
	b := &bounded[T]{
		limit: limit, make: make,
		// Made when it is first needed: a series that nothing belongs to misleads.
		rest: sync.OnceValue(func() T { return make(other) }),
	}
	b.known.Store(&map[string]T{})
	return b
}

func (b *bounded[T]) get(label string) T {
	if v, ok := (*b.known.Load())[label]; ok {
		return v
	}
	return b.add(label)
}

func (b *bounded[T]) add(label string) T {
	if len(*b.known.Load()) >= b.limit {
		return b.rest()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old := *b.known.Load()
	if v, ok := old[label]; ok {
		return v
	}
	if len(old) >= b.limit {
		return b.rest()
	}
	v := b.make(utf8Text(label))
	known := maps.Clone(old)
	known[label] = v
	b.known.Store(&known)
	return v
}
