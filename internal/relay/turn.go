package relay

import "context"

// turn is a mutex that may be held over a call to a server, so that waiting for
// it can be given up.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// Lock waits as long as it takes.
func (t turn) Lock() { t <- struct{}{} }

// Unlock lets the next one go.
func (t turn) Unlock() { <-t }

// wait is Lock, until ctx ends.
func (t turn) wait(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
