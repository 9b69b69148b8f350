package admin

import (
	"context"
	"sync"
	"time"
)

// look asks for something that is there at once, and stops waiting when it is
// not: a deadlock must show in the answer, not hang it. At most one call is
// under way however often somebody looks; those who look meanwhile share its
// result.
type look[T any] struct {
	ask      func() T
	patience time.Duration

	mu      sync.Mutex
	running *call[T]
}

type call[T any] struct {
	done  chan struct{} // closed by the call, when value is there
	value T
}

// get is false when there was no answer in time.
func (l *look[T]) get(ctx context.Context) (T, bool) {
	c := l.join()
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	select {
	case <-c.done:
		return c.value, true
	case <-ctx.Done():
		var none T
		return none, false
	}
}

func (l *look[T]) join() *call[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		c := &call[T]{done: make(chan struct{})}
		l.running = c
		go func() {
			c.value = l.ask()
			l.mu.Lock()
			l.running = nil
			l.mu.Unlock()
			close(c.done)
		}()
	}
	return l.running
}
