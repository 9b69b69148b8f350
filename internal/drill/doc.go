// Package drill injects faults into a walpost of its own and says what held.
//
// A drill makes everything it needs under one random name: a schema
// walpost_drill_<random>, a publication and a slot of that name, a topic
// walpost.drill.<random> and consumer groups of that name. It runs the relay and
// the service as child processes, which end with it, injects its fault, and
// compares table, topic and side effects. Then it removes all of it, also after
// a failure or a cancelled context. Names of anybody else are never touched, so
// a drill may run on a shared server.
//
// Broker faults are made by a proxy in this process that the relay child dials
// for every broker. It understands no Kafka: it only holds back what the brokers
// answer, and so works with TLS and SASL, too.
//
// It makes no shared tables: a relay whose database has no checkpoint tables may
// publish twice after a kill, which the table counts and the consumer mends.
// It does not stop or start any server.
package drill
