// Package kafkaserver starts real Kafka brokers (KRaft) for tests, for the demo
// and for benchmarks.
//
// The jars come from Maven by the pom of this package. Each broker is a JVM of
// its own, combined with a controller, on free ports of 127.0.0.1, its data in a
// temporary folder. What is slow about starting is done once and kept in the
// cache: formatting the storage (the format tool's result is copied, with node
// and directory id replaced) and loading classes (a class data archive).
//
// Brokers can be killed, terminated, frozen and started again on the same data
// and ports, and each may be put behind a proxy whose address it advertises.
// They end with their owner, also when that is killed.
//
// Besides the plain listener there is a second plain one, for replication and
// for DirectAddr, that no proxy is in front of; with Options, also SASL and TLS
// listeners.
package kafkaserver
