package connector

import (
	"strings"
	"time"
)

const schemaNaming = "io.debezium.schema.SchemaTopicNamingStrategy"

// topicNameRules are about the topics beside those of the router.
func topicNameRules() []rule {
	return []rule{
		{key: "heartbeat.interval.ms", def: "0", decide: decideHeartbeat},
		{key: "heartbeat.action.query", decide: text("runs with every heartbeat, in the outbox's database", func(r *reading, v string) { r.spec.HeartbeatQuery = v })},
		{key: "topic.heartbeat.prefix", decide: text("the heartbeat topic's name begins with it", func(*reading, string) {})},
		{key: "topic.heartbeat.name", decide: func(r *reading, s *setting) verdict {
			if strings.TrimSpace(s.value) != "" && !r.version.atLeast(3, 6) {
				return refused("Debezium "+r.version.String()+" does not know it and would ignore it", "remove it, or set debezium.version to 3.6")
			}
			return same("the heartbeat topic")
		}},
		{key: "topic.delimiter", decide: text("stands between the parts of the heartbeat topic's name", func(*reading, string) {})},
		{key: "topic.cache.size", decide: ignore("names of topics need no cache")},
		{key: "topic.transaction", decide: ignore("there are no records of transactions")},
		{key: "topic.naming.strategy", decide: refuseUnless([]string{"", schemaNaming, "io.debezium.schema.DefaultTopicNamingStrategy"},
			"it names a Java class", "remove it; the router names the topics of events")},
		{key: "topic.naming.strategy.class", decide: refuse("it names a Java class", "remove it")},
		{key: "transaction.metadata.factory", decide: ignore("there are no records of transactions")},
		{key: "provide.transaction.metadata", decide: refuseUnless([]string{"false"},
			"it makes records of every transaction in a topic of their own, and walpost does not", "remove it, if nobody reads <topic.prefix>.transaction")},
		{key: "message.prefix.include.list", decide: refuseUnless([]string{""}, "walpost does not choose among logical messages",
			"remove it: every message goes to <topic.prefix>.message")},
		{key: "message.prefix.exclude.list", decide: func(_ *reading, s *setting) verdict {
			switch strings.TrimSpace(s.value) {
			case "":
				return moot("nothing to exclude")
			case ".*":
				return same("logical messages are not published")
			default:
				return refused("walpost does not choose among logical messages", "remove it, or write .* to publish none")
			}
		}},
		{key: "extended.headers.enabled", def: "true", decide: decideExtendedHeaders},
	}
}

func decideHeartbeat(r *reading, s *setting) verdict {
	v := millis("a record on the heartbeat topic, at this interval", func(r *reading, v time.Duration) { r.spec.HeartbeatInterval = v })(r, s)
	if v.severity == SeverityRefused {
		return v
	}
	if r.spec.HeartbeatInterval == 0 {
		return same("no heartbeats; walpost confirms an idle slot without them")
	}
	for _, c := range []ConverterSpec{r.spec.Key, r.spec.Value} {
		if takesBytesOnly(c) {
			return refused("a heartbeat is a struct, and "+short(c.Class)+" takes bytes only, so that Debezium's task fails",
				"turn heartbeats off, which walpost does not need; or use BinaryDataConverter with delegate.converter.type")
		}
	}
	if isString(r.spec.Key) || isString(r.spec.Value) {
		return noted(v.does+"; StringConverter writes it as Struct{…}, as with Debezium", "")
	}
	return v
}

func decideExtendedHeaders(r *reading, s *setting) verdict {
	on, way := parseBool(s)
	if way != "" {
		return malformed(s, way)
	}
	n := r.version.contextHeaders()
	switch {
	case r.opt.NoContextHeaders:
		r.spec.Router.ContextHeaders = 0
		if n == 0 || !on {
			return same("no context headers")
		}
		return differs(Honoured, "no context headers, as debezium.context_headers says", "Debezium "+r.version.String()+" adds them", "")
	case n == 0:
		r.spec.Router.ContextHeaders = 0
		if s.set {
			return ignored("Debezium " + r.version.String() + " has no context headers")
		}
		return same("no context headers")
	case !on:
		r.spec.Router.ContextHeaders = 0
		return same("no context headers")
	default:
		r.spec.Router.ContextHeaders = n
		return same("the __debezium.context.* headers of Debezium " + r.version.String())
	}
}

// idleHeartbeat is the interval that lsn.flush.mode=connector_and_driver brings.
const idleHeartbeat = 10 * time.Minute

// heartbeatTopic is where heartbeats go.
func (r *reading) heartbeatTopic() string {
	if name := r.value("topic.heartbeat.name", ""); name != "" {
		return name
	}
	return r.value("topic.heartbeat.prefix", "__debezium-heartbeat") + r.value("topic.delimiter", ".") + r.spec.Router.TopicPrefix
}
