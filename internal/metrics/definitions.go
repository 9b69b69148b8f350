package metrics

import (
	"fmt"
	"strings"
)

type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

type definition struct {
	name    string
	kind    kind
	labels  []string
	help    string
	buckets []float64
}

// unit is the one that the name ends with, as all names with a unit do.
func (d *definition) unit() string {
	name := strings.TrimSuffix(d.name, "_total")
	for _, u := range []struct{ suffix, unit string }{
		{"_timestamp_seconds", "Unix time"}, {"_seconds", "seconds"}, {"_bytes", "bytes"},
	} {
		if strings.HasSuffix(name, u.suffix) {
			return u.unit
		}
	}
	return "–"
}

const prefix = "walpost_"

// latencyBuckets reach from a good local commit-to-ack time to half an hour of
// outage.
func latencyBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
}

// definitions is the table. Renaming a row breaks dashboards.
func definitions() []definition {
	return []definition{
		{name: "events_received_total", kind: counter, help: "Outbox rows decoded from committed transactions."},
		{name: "events_published_total", kind: counter, labels: []string{"topic"}, help: "Events acknowledged by all in-sync replicas."},
		{name: "events_ignored_total", kind: counter, labels: []string{"reason"}, help: "Changes decoded and deliberately not published."},
		{name: "published_bytes_total", kind: counter, labels: []string{"topic"}, help: "Keys, values and headers of acknowledged events."},
		{name: "publish_errors_total", kind: counter, labels: []string{"class", "reason"}, help: "Failed attempts to produce a batch."},
		{name: "publish_retries_total", kind: counter, labels: []string{"reason"}, help: "Attempts of a batch after the first."},
		{name: "broker_duplicates_total", kind: counter, help: "Batches that the broker recognised as already stored."},
		{name: "sequence_errors_total", kind: counter, help: "Unexplained sequence errors; each starts a new producer epoch of a partition."},
		{name: "decode_errors_total", kind: counter, labels: []string{"reason"}, help: "Messages of the stream that could not be decoded."},
		{name: "stream_connects_total", kind: counter, labels: []string{"result"}, help: "Attempts to start a replication session."},
		{name: "stream_disconnects_total", kind: counter, labels: []string{"reason"}, help: "Replication sessions that ended."},
		{name: "commit_to_ack_seconds", kind: histogram, buckets: latencyBuckets(), help: "Time from an event's commit to its acknowledgement by Kafka."},
		{name: "produce_seconds", kind: histogram, buckets: latencyBuckets(), help: "Time from a produce request to its answer."},
		{name: "batch_records", kind: histogram, buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}, help: "Records of an acknowledged batch."},
		{name: "transaction_events", kind: histogram, buckets: []float64{1, 2, 5, 10, 100, 1000, 10_000, 100_000, 1_000_000}, help: "Outbox events of a transaction."},

		{name: "state", kind: gauge, labels: []string{"state"}, help: "What the relay does; exactly one state is 1."},
		{name: "ready", kind: gauge, help: "1 when /readyz answers 200."},
		{name: "slot_streaming", kind: gauge, help: "1 when this instance holds the slot's stream."},
		{name: "oldest_unpublished_age_seconds", kind: gauge, help: "Age of the oldest committed event that is not published, by PostgreSQL's clock; an upper bound while cut off."},
		{name: "published_through_timestamp_seconds", kind: gauge, help: "All events committed before this time are published."},
		{name: "last_event_timestamp_seconds", kind: gauge, help: "Commit time of the newest published event."},
		{name: "last_server_message_timestamp_seconds", kind: gauge, help: "When PostgreSQL last said anything on the stream."},
		{name: "clock_skew_seconds", kind: gauge, help: "PostgreSQL's clock minus this machine's."},
		{name: "in_flight_events", kind: gauge, help: "Events submitted to Kafka and not acknowledged."},
		{name: "in_flight_bytes", kind: gauge, help: "Memory of the events in flight."},
		{name: "in_flight_limit_bytes", kind: gauge, help: "Limit of in_flight_bytes; at the limit PostgreSQL is not read. Events above 1 MiB have as much again to themselves."},
		{name: "held_partitions", kind: gauge, help: "Partitions and topics that do not move."},
		{name: "poison", kind: gauge, help: "1 while an event that cannot be published stops progress."},
		{name: "received_position_bytes", kind: gauge, help: "Newest WAL position seen on the stream."},
		{name: "low_water_position_bytes", kind: gauge, help: "WAL position below which everything is published."},
		{name: "confirmed_position_bytes", kind: gauge, help: "The slot's confirmed_flush_lsn, as PostgreSQL shows it."},
		{name: "postgres_wal_position_bytes", kind: gauge, help: "Current WAL position of the server; its rate is the WAL rate."},
		{name: "slot_lag_bytes", kind: gauge, help: "WAL between the server's position and the confirmed one."},
		{name: "slot_retained_wal_bytes", kind: gauge, help: "WAL that the slot holds back; absent when the slot is lost."},
		{name: "slot_safe_wal_bytes", kind: gauge, help: "WAL that can be written before the slot is in danger; absent when unlimited or lost."},
		{name: "slot_wal_limit_bytes", kind: gauge, help: "max_slot_wal_keep_size; absent when unlimited."},
		{name: "slot_wal_status", kind: gauge, labels: []string{"status"}, help: "The slot's wal_status; exactly one is 1."},
		{name: "slot_present", kind: gauge, help: "1 when the slot exists."},
		{name: "slot_info", kind: gauge, labels: []string{"database", "plugin", "failover", "synced", "two_phase", "invalidation_reason"}, help: "Always 1; an empty label is one that this server version does not know."},
		{name: "slot_holder_age_seconds", kind: gauge, help: "Age of the oldest transaction that keeps restart_lsn back."},
		{name: "other_slots_retained_wal_bytes", kind: gauge, help: "WAL held back by the largest of the other slots."},
		{name: "archiver_failing", kind: gauge, help: "1 when WAL archiving fails, which keeps WAL too."},
		{name: "publication_ok", kind: gauge, help: "1 when publication and outbox tables are what they were at the start."},
		{name: "postgres_poll_success", kind: gauge, help: "1 when the last look at PostgreSQL succeeded."},
		{name: "postgres_poll_seconds", kind: gauge, help: "How long the last look at PostgreSQL took."},
		{name: "postgres_poll_timestamp_seconds", kind: gauge, help: "When PostgreSQL was last looked at."},
		{name: "build_info", kind: gauge, labels: []string{"version", "revision", "goversion"}, help: "Always 1."},
	}
}

// Reference is the table as a Markdown page.
func Reference() string {
	var b strings.Builder
	b.WriteString("# Metrics\n\nEvery series carries the label `slot`. What is not known has no series. Beside these there are the usual `go_…` and `process_…`. A label with very many values keeps the first ones; the rest is `other`.\n\n")
	b.WriteString("| name | type | unit | labels | meaning |\n|---|---|---|---|---|\n")
	for _, d := range definitions() {
		labels := "–"
		if len(d.labels) > 0 {
			labels = "`" + strings.Join(d.labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s%s` | %s | %s | %s | %s |\n", prefix, d.name, d.kind, d.unit(), labels, d.help)
	}
	return b.String()
}
