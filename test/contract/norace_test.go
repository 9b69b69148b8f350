//go:build !race

package contract

// raceDetector says that the tests were built with it; they were not.
const raceDetector = false
