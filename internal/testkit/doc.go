// Package testkit gives tests real servers: a PostgreSQL for each major version
// and a Kafka, shared by the tests of a package, and private ones for tests that
// stop, kill or freeze them.
//
// A package that uses it calls Main from its TestMain. Main closes the shared
// servers, says which ones were used, and fails the run if a goroutine is left.
//
// Where a server comes from, in this order, and said in the output:
//
//   - the environment: WALPOST_TEST_DSN (a superuser's), WALPOST_TEST_BROKERS
//     (host:port, separated by commas); shared servers only
//   - the machine: installed PostgreSQL binaries of the wanted major version
//   - Maven artifacts: PostgreSQL 14 to 18, Kafka
//   - containers, where a Docker engine answers; shared servers only
//
// A server that cannot be had fails the test and says what to do. With -short
// such tests are skipped, and say so.
//
// Other variables: WALPOST_TEST_PG chooses the major versions that Majors
// returns ("14,16" or "all"); WALPOST_TEST_CACHE is the folder of unpacked
// binaries; WALPOST_TEST_LOG is a file to which the servers that were used are
// appended, because go test shows no output of packages that pass.
//
// The parts below can be used without a *testing.T: pgserver, kafkaserver, topic
// and proxy. Nothing here may be imported by the product.
package testkit
