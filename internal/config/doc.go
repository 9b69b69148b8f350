// Package config knows every option of walpost: its name, its flag, its
// environment variable, its default, its help and where its value ends up.
//
// One table (Options) says all of it. The flags of the commands, the
// environment, the strict YAML file, `walpost config print` and the reference
// text come from that table, so they cannot drift apart.
//
// A value comes from the first of these that has one:
//
//	flag > environment > file > default
//
// The environment variable of --some-flag is WALPOST_SOME_FLAG. A secret can
// come from a file in each of the layers (--dsn-file, WALPOST_DSN_FILE,
// postgres.dsn_file): the file's content, without one trailing newline. An
// environment variable that is set to nothing counts as not set. Nothing is
// expanded in values.
//
// What is guaranteed: a Config that Load returned has no contradiction in it,
// every value knows its origin, all faults are found in one go, and neither an
// error nor a printed value holds a secret.
//
// The package opens no connection and reads no global state apart from what
// the PostgreSQL driver does to check a connection string (PG* variables and
// the service file). Whether the servers agree with the values is not its
// business.
package config
