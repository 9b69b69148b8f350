package relay

import (
	"errors"

	"github.com/walpost/walpost/sink"
)

// SucceededError is what Run returns when it finds that another relay of the
// same slot has claimed the checkpoint.
type SucceededError struct{ Err error }

func (e *SucceededError) Error() string { return "another relay took over: " + e.Err.Error() }

// Hint says what to do.
func (e *SucceededError) Hint() string {
	return "the other instance relays now; if it should not, stop it and start this one again"
}

// Unwrap gives the cause.
func (e *SucceededError) Unwrap() error { return e.Err }

// IsFenced says that Run ended because another relay of the same slot has taken
// over while this one was cut off.
func IsFenced(err error) bool {
	_, succeeded := errors.AsType[*SucceededError](err)
	return succeeded || sink.IsFenced(err)
}
