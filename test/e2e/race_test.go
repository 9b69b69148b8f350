//go:build race

package e2e

// raceDetector says that the tests were built with it; the binary then is, too.
const raceDetector = true
