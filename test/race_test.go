//go:build race

package test

// raceFlag hands the race detector on.
var raceFlag = []string{"-race"}
