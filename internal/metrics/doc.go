// Package metrics is the only place that names a metric. One table of
// definitions (definitions.go) says name, type, labels and help; it drives the
// registration, the reference page and the test that fixes the names.
//
// Counters and histograms are written as things happen. Every gauge is computed
// at scrape time from one Values, which its Source takes from the relay's
// snapshot, so that /metrics, /readyz and "walpost status" cannot disagree, and
// no scrape waits for PostgreSQL. What is not known has no series: neither 0 nor
// -1 stands for it.
//
// No label ever carries an event id, an aggregate id, a key or an error text;
// topic is a label of counters only. Labels are bounded, topics by
// Options.MaxTopics and reasons by a constant; what comes later is "other".
package metrics
