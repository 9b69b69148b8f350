//go:build race

package testkit

// Race says that the tests were built with the race detector.
const Race = true
