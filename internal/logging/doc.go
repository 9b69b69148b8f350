// Package logging builds the logger of the commands and names the fields that
// log lines have.
//
// Lines go to one writer, stderr in practice, as JSON with fixed keys (ts,
// level, msg, …) or in columns for a terminal. Every line passes Scrub, because
// servers and drivers put connection strings and credentials into the texts of
// their errors; that does not excuse anybody who logs a secret on purpose.
//
// Payloads are never logged, and keys only at debug: that is up to the callers.
package logging
