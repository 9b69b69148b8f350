package connector

import (
	"strconv"
	"strings"
)

// serverRules are those of Debezium Server.
func serverRules() []rule {
	return []rule{
		{key: "debezium.sink.type", show: true, decide: func(_ *reading, s *setting) verdict {
			switch strings.TrimSpace(s.value) {
			case "kafka":
				return same("Kafka, by the rules of Debezium Server: no partition, no timestamp, headers as debezium.format.header says")
			case "":
				return refused("not set, so that Debezium Server does not start", "add debezium.sink.type=kafka")
			default:
				return refused("walpost writes to Kafka alone", "go on with Debezium Server for this sink")
			}
		}},
		{key: "debezium.sink.kafka.wait.message.delivery.timeout.ms", decide: ignore("walpost goes on until Kafka has acknowledged")},
		{key: "debezium.sink.kafka.*", decide: refuse("the Kafka sink has no such option", "options of the producer stand behind "+serverProducer)},
		{key: "debezium.sink.*", decide: ignore("it belongs to another sink")},
		{key: "debezium.termination.wait", decide: ignore("a stop waits for relay.drain_timeout")},
		{key: "debezium.api.*", decide: ignore("walpost takes no signals")},
		{key: "debezium.engine.*", decide: ignore("it is about Debezium's own engine")},
		{key: "quarkus.http.port", own: true, decide: func(r *reading, s *setting) verdict {
			n, way := parseInt(s, 0)
			if way != "" || n > 65535 {
				return ignored("walpost's probes listen on admin.listen")
			}
			r.over("admin.listen", ":"+strconv.Itoa(n), s)
			return noted("port of walpost's probes and metrics", "the paths are walpost's own")
		}},
		{key: "quarkus.log.level", own: true, decide: func(r *reading, s *setting) verdict {
			level, ok := map[string]string{
				"ALL": "debug", "TRACE": "debug", "FINEST": "debug", "FINER": "debug", "FINE": "debug", "DEBUG": "debug", "CONFIG": "info",
				"INFO": "info", "WARN": "warn", "WARNING": "warn", "ERROR": "error", "SEVERE": "error", "FATAL": "error", "OFF": "error",
			}[strings.ToUpper(strings.TrimSpace(s.value))]
			if !ok {
				return ignored("walpost does not know this level")
			}
			r.over("log.level", level, s)
			return same("least level that is logged")
		}},
		{key: "quarkus.log.console.json", own: true, decide: decideLogJSON},
		{key: "quarkus.log.console.json.enabled", own: true, decide: decideLogJSON},
		{key: "quarkus.*", decide: ignore("it is about the runtime of Debezium Server")},
		{key: "%*", decide: func(_ *reading, s *setting) verdict {
			profile, _, _ := strings.Cut(s.key[1:], ".")
			if profile == "prod" {
				return refused("the profile prod is the one in force, and walpost does not read profiles", "write the key without %prod.")
			}
			return ignored("the profile " + profile + " is not in force in production")
		}},
	}
}

func decideLogJSON(r *reading, s *setting) verdict {
	v, way := parseBool(s)
	if way != "" {
		return ignored("walpost chooses the form of its log by itself")
	}
	form := "console"
	if v {
		form = "json"
	}
	r.over("log.format", form, s)
	return same("form of the log")
}
