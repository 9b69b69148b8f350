// Package pgserver starts real PostgreSQL servers for tests, for the demo and
// for benchmarks.
//
// Binaries come from the machine (pg_config, the usual folders, PATH) when their
// major version fits, else from Maven artifacts, and which of the two is said
// through Options.Log. Each server has its own data directory, copied from a
// template that initdb made once, its own port on 127.0.0.1 and its own unix
// socket. It is set up for logical replication. As root it runs as the user
// postgres or nobody, which PostgreSQL insists on.
//
// A server can be stopped in each way that PostgreSQL knows, killed together
// with all its children, frozen, and started again on the same data and port.
// It ends with its owner, also when that is killed.
//
// Servers of one version share a system identifier, because they are copies of
// one template; Options.FreshIdentity makes a server with one of its own.
package pgserver
