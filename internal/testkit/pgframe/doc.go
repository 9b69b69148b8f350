// Package pgframe cuts the bytes of a PostgreSQL connection into messages, for
// proxies that read along. It knows the frames alone, neither TLS nor what is in
// a message, but for the one parameter that makes a session one of replication.
package pgframe
