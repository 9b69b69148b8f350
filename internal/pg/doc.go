// Package pg opens connections to PostgreSQL and says what went wrong with
// them: DSNs, session settings, quoting, SQLSTATE questions.
//
// It guarantees that no error and no text it makes holds a DSN or a password,
// and that the text form of values on its sessions does not depend on settings
// of roles, databases or the server.
//
// It knows nothing of slots, publications or tables, keeps no pool and never
// retries: whoever holds a connection decides when the next attempt is made.
package pg
