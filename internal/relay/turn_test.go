package relay

import (
	"context"
	"errors"
	"testing"
)

func TestTurnCanBeGivenUp(t *testing.T) {
	t.Parallel()
	turn := newTurn()
	turn.Lock()
	ctx, cancel := context.WithCancelCause(t.Context())
	late := errors.New("too late")
	cancel(late)
	if err := turn.wait(ctx); !errors.Is(err, late) {
		t.Errorf("waiting for a turn that is taken: %v, want %v", err, late)
	}
	turn.Unlock()
	if err := turn.wait(t.Context()); err != nil {
		t.Errorf("a free turn: %v", err)
	}
}
