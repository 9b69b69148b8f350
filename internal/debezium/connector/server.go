package connector

import (
	"regexp"
	"strings"
)

// The prefixes of Debezium Server.
const (
	serverPrefix   = "debezium."
	serverSource   = "debezium.source."
	serverProducer = "debezium.sink.kafka.producer."
	serverFormat   = "debezium.format."
)

// isServerKey says that a key is written as Debezium Server's file has it.
func isServerKey(key string) bool {
	return strings.HasPrefix(key, serverPrefix) || strings.HasPrefix(key, "quarkus.") || strings.HasPrefix(key, "%")
}

// canonical is the key as a connector has it. What Debezium Server has for
// itself keeps its name.
func canonical(written string) string {
	for _, prefix := range []string{"debezium.transforms", "debezium.predicates"} {
		if strings.HasPrefix(written, prefix) {
			return strings.TrimPrefix(written, serverPrefix)
		}
	}
	if key, ok := strings.CutPrefix(written, serverProducer); ok {
		return producerOverride + key
	}
	return strings.TrimPrefix(written, serverSource)
}

// serverName is how Debezium Server's file has a connector's key; the reverse of
// canonical.
func serverName(key string) string {
	switch {
	case isServerKey(key), strings.HasPrefix(key, topicCreation):
		return key
	case strings.HasPrefix(key, "transforms"), strings.HasPrefix(key, "predicates"):
		return serverPrefix + key
	}
	if rest, ok := strings.CutPrefix(key, producerOverride); ok {
		return serverProducer + rest
	}
	return serverSource + key
}

// serverVariable is a variable's name that Debezium Server takes for one of its
// keys: it lowers the name and makes dots of its underscores.
var serverVariable = regexp.MustCompile(`^DEBEZIUM_(SOURCE|SINK|FORMAT|TRANSFORMS|PREDICATES)(_[A-Za-z0-9_]+)?$`)

// serverEnvironment gives the keys that the environment sets or replaces, in
// the order of the list.
func serverEnvironment(environ []string) []pair {
	var pairs []pair
	for _, item := range environ {
		name, value, _ := strings.Cut(item, "=")
		if serverVariable.MatchString(name) {
			pairs = append(pairs, pair{key: strings.ReplaceAll(strings.ToLower(name), "_", "."), value: value})
		}
	}
	return pairs
}
