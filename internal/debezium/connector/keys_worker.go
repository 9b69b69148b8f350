package connector

import "strings"

// decisive are the keys of a worker that reach the connector.
var decisive = []string{
	"bootstrap.servers", "key.converter", "value.converter", "header.converter", "config.providers", "topic.creation.enable",
	"key.converter.schemas.enable", "value.converter.schemas.enable", "header.converter.schemas.enable",
	"producer.bootstrap.servers", "producer.security.protocol", "producer.sasl.mechanism", "producer.sasl.jaas.config",
}

// decideWorker decides about a key of the worker's file.
func (r *reading) decideWorker(s *setting) verdict {
	if s.overridden != "" {
		return ignored("set again by " + s.overridden + ", which counts")
	}
	if v, ok := r.verdicts[s]; ok {
		return v
	}
	if kind, ok := strings.CutSuffix(s.key, ".converter"); ok && (kind == "key" || kind == "value" || kind == "header") {
		return ignored("the connector has its own")
	}
	if isConverterOption(s.key) {
		return ignored("the connector has its own converter")
	}
	if key, ok := strings.CutPrefix(s.key, producerWorker); ok {
		return r.decideWorkerProducer(s, key)
	}
	if s.unresolved != nil && s.key == "bootstrap.servers" {
		return noted("its value is read when walpost runs", s.unresolved.Error())
	}
	switch s.key {
	case "bootstrap.servers":
		if r.producer("bootstrap.servers") != nil {
			return ignored("the producer has its own")
		}
		return decideBrokers(r, s)
	case "config.providers":
		return same("references are resolved by them")
	case "topic.creation.enable":
		if r.creationOff() != "" {
			return same("topics are not created")
		}
		return moot("topics are created where topic.creation.* asks for it")
	case "exactly.once.source.support":
		if strings.EqualFold(strings.TrimSpace(s.value), "enabled") {
			return differs(Ignored, "events are not written in Kafka transactions; walpost removes the duplicates of a crash in its own way",
				"Kafka Connect writes events and offsets in one transaction", "let consumers drop a repeat by the header id")
		}
		return moot("events are not written in Kafka transactions")
	}
	if strings.HasPrefix(s.key, "config.providers.") {
		if strings.HasSuffix(s.key, ".class") {
			return same("references are resolved by it")
		}
		return ignored("walpost reads what the references name")
	}
	if !workerOnly(s.key) {
		if near, ok := r.closest(s.key, decisive); ok {
			s.secret = s.secret || isSecretName(near)
			return refused("walpost does not know this key, and it looks like one that decides about records", "did you mean "+quoted(near)+"?")
		}
	}
	return ignored("it is for the worker itself, and does not reach the connector")
}

func (r *reading) decideWorkerProducer(s *setting, key string) verdict {
	if r.connector.byKey[producerOverride+key] != nil {
		return ignored("the connector has its own")
	}
	rule := findRule(producerRules(false), key)
	if rule == nil {
		var names []string
		for _, rule := range producerRules(false) {
			names = append(names, rule.key)
		}
		way := "remove it if it is not a setting of Kafka's producer"
		if near, ok := r.closest(key, names); ok {
			s.secret = s.secret || isSecretName(near)
			way = "did you mean " + quoted(producerWorker+near) + "?"
		}
		return refused("walpost does not know this setting of the producer", way)
	}
	if s.unresolved != nil {
		return noted("its value is read when walpost runs", s.unresolved.Error())
	}
	return rule.decide(r, s)
}

func isConverterOption(key string) bool {
	for _, kind := range []string{"key", "value", "header"} {
		if strings.HasPrefix(key, kind+".converter.") {
			return true
		}
	}
	return false
}

// workerOnly knows the keys of Kafka Connect's worker that have to do with
// itself.
func workerOnly(key string) bool {
	for _, prefix := range []string{
		"offset.", "config.storage.", "status.storage.", "rest.", "listeners", "admin.", "consumer.", "internal.", "plugin.",
		"group.", "metrics.", "metric.", "task.", "worker.", "heartbeat.interval.ms", "session.timeout.ms", "rebalance.", "scheduled.rebalance.",
		"connect.protocol", "connector.client.config.override.policy", "access.control.", "response.http.", "topic.tracking.",
		"inter.worker.", "distributed.", "client.", "connections.", "request.timeout.ms", "retry.backoff.", "reconnect.backoff.",
		"send.buffer.bytes", "receive.buffer.bytes", "metadata.", "socket.", "ssl.", "sasl.", "security.", "auto.include.jmx.reporter",
		"confluent.", "errors.", "header.converter.plugin.version", "key.converter.plugin.version", "value.converter.plugin.version",
		"exactly.once.", "enable.", "discover", "poll.interval.ms",
	} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}
