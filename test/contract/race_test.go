//go:build race

package contract

// raceDetector says that the tests were built with it; what they build then is, too.
const raceDetector = true
