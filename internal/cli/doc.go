// Package cli is what the commands have in common: exit codes, the two lines
// of an error, tables and JSON.
//
// Results go to stdout, everything else to stderr. JSON is a contract: names
// in snake_case, times in RFC 3339 UTC, LSNs as text, fields are added and
// never renamed. Tables are for people and may change.
//
// The package knows nothing of walpost's own types: an error tells its exit
// code and its hint through the methods ExitCode and Hint.
package cli
