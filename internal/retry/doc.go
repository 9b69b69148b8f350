// Package retry says how long to wait before the next attempt.
//
// A Backoff grows from Min to Max and adds jitter, so that instances which
// failed together do not come back together. Nothing here gives up: walpost
// retries passing faults for ever, and what ends a wait is its context.
//
// The package decides nothing about errors: whether a fault is worth another
// attempt is the caller's knowledge.
package retry
