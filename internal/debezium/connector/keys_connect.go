package connector

import "strings"

// connectRules are those of Kafka Connect itself. Transforms and converters are
// decided about beforehand.
func connectRules() []rule {
	const offsets = "the position is kept in the slot, not in Kafka Connect"
	const restart = "walpost goes on trying after passing failures, until it is stopped"
	return []rule{
		{key: "tasks.max", decide: ignore("this connector has one task, whatever it says")},
		{key: "tasks.max.enforce", decide: ignore("this connector has one task")},
		{key: "transforms", show: true, decide: decideNoTransforms},
		{key: "predicates", decide: ignore("no transform uses a predicate")},
		{key: "initial_state", decide: ignore("it is for the REST interface")},
		{key: "key.converter", show: true, decide: missingConverter("key")},
		{key: "value.converter", show: true, decide: missingConverter("value")},
		{key: "header.converter", show: true, decide: missingConverter("header")},
		{key: "connector.plugin.version", decide: ignore("no plugin is loaded")},
		{key: "key.converter.plugin.version", decide: ignore("no plugin is loaded")},
		{key: "value.converter.plugin.version", decide: ignore("no plugin is loaded")},
		{key: "header.converter.plugin.version", decide: ignore("no plugin is loaded")},
		{key: "config.action.reload", decide: ignore("walpost reads its configuration when it starts")},
		{key: "config.providers", decide: ignore("Kafka Connect reads it from the worker's file alone")},
		{key: "config.providers.*", decide: ignore("Kafka Connect reads it from the worker's file alone")},
		{key: "errors.tolerance", decide: refuseUnless([]string{"none"},
			"all drops events that cannot be converted without a trace; walpost never drops one",
			"set errors.tolerance=none: a row that cannot be published is held and named")},
		{key: "errors.max.retries", decide: decideMaxRetries},
		{key: "errors.retry.timeout", decide: ignore(restart)},
		{key: "errors.retry.delay.max.ms", decide: ignore(restart)},
		{key: "errors.retry.delay.initial.ms", decide: ignore(restart)},
		{key: "errors.log.*", decide: ignore("walpost logs what it cannot publish, without its content")},
		{key: "errors.deadletterqueue.*", decide: ignore("Kafka Connect has no dead letter queue for sources")},
		{key: "retriable.restart.connector.wait.ms", decide: ignore(restart)},
		{key: "custom.retriable.exception", decide: ignore(restart)},
		{key: "offset.flush.*", decide: ignore(offsets)},
		{key: "offset.storage", decide: ignore(offsets)},
		{key: "offset.storage.*", decide: ignore(offsets)},
		{key: "offset.commit.policy", decide: ignore(offsets)},
		{key: "offsets.storage.topic", decide: ignore(offsets)},
		{key: "exactly.once.support", decide: func(_ *reading, s *setting) verdict {
			switch strings.ToLower(strings.TrimSpace(s.value)) {
			case "requested":
				return ignored("it holds where the worker can; walpost removes the duplicates of a crash in its own way")
			case "required":
				return refused("walpost does not write events and position in one Kafka transaction",
					"set exactly.once.support=requested, if consumers can take a rare repeat with the same id")
			default:
				return malformed(s, "write requested or required")
			}
		}},
		{key: "transaction.boundary", decide: refuseUnless([]string{"poll"}, "walpost does not write events in Kafka transactions", "remove it")},
		{key: "transaction.boundary.interval.ms", decide: ignore("walpost does not write events in Kafka transactions")},
		{key: "topic.creation.groups", decide: refuseUnless([]string{"", "default"},
			"walpost creates all topics in one way", "create the topics of the groups by hand, and remove it")},
		{key: "topic.creation.*", decide: ignore("it belongs to topic.creation.groups")},
	}
}

func decideMaxRetries(_ *reading, s *setting) verdict {
	n, way := parseInt(s, -1)
	switch {
	case way != "":
		return malformed(s, way)
	case n == -1:
		return moot("walpost goes on trying after passing failures, until it is stopped")
	default:
		return differs(Ignored, "walpost goes on trying after passing failures, until it is stopped",
			"Debezium stops after so many", "watch readiness and the age of the oldest event instead")
	}
}

// otherRules are about the connector's inside: threads, queues and metrics.
func otherRules() []rule {
	const inside = "it bounds Debezium's own queue; walpost is bounded by relay.in_flight_bytes"
	const metrics = "walpost has metrics of its own"
	return []rule{
		{key: "poll.interval.ms", decide: ignore("walpost passes events on at once")},
		{key: "max.queue.size", decide: ignore(inside)},
		{key: "max.queue.size.in.bytes", decide: ignore(inside)},
		{key: "max.batch.size", decide: ignore(inside)},
		{key: "query.fetch.size", decide: ignore(inside)},
		{key: "schema.refresh.mode", decide: ignore("walpost reads the catalog when a table changes")},
		{key: "schema.history.*", decide: ignore("the PostgreSQL connector has no schema history")},
		{key: "database.history.*", decide: ignore("the PostgreSQL connector has no schema history")},
		{key: "custom.metric.tags", decide: ignore(metrics)},
		{key: "advanced.metrics.enable", decide: ignore(metrics)},
		{key: "statistics.metrics.enabled", decide: ignore(metrics)},
		{key: "executor.shutdown.timeout.ms", decide: ignore("a stop waits for relay.drain_timeout")},
		{key: "openlineage.*", decide: ignore("lineage is not reported, and no record shows it")},
		{key: "guardrail.*", decide: ignore("walpost starts only on tables that are outboxes")},
		{key: "internal.*", decide: ignore("it is for Debezium's own tests")},
		{key: "notification.enabled.channels", decide: func(_ *reading, s *setting) verdict {
			for _, channel := range splitList(strings.ToLower(s.value)) {
				if channel == "sink" {
					return refused("sink publishes notifications in a topic of their own, and walpost does not", "remove sink from the list")
				}
			}
			return ignored("walpost says what it does in its log and metrics")
		}},
		{key: "notification.sink.topic.name", decide: ignore("it belongs to the channel sink")},
		{key: "driver.*", decide: ignore("it is for the Java driver")},
	}
}
