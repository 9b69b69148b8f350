package router

import (
	"fmt"

	"github.com/walpost/walpost/internal/debezium/javaregex"
)

const (
	// maxTopic is Kafka's limit for a topic's name
	// (org.apache.kafka.common.internals.Topic).
	maxTopic = 249
	// maxTopics bounds the values whose topic is kept. Beyond it all are forgotten.
	maxTopics = 1 << 14
)

// topics is Connect's RegexRouter.
type topics struct {
	regex       *javaregex.Regexp
	replacement *javaregex.Replacement
	known       map[string]string
}

func newTopics(o *Options) (topics, error) {
	t := topics{known: make(map[string]string)}
	var err error
	if t.regex, err = javaregex.Compile(o.TopicRegex); err != nil {
		return t, &OptionError{Name: "route.topic.regex", Text: err.Error(), way: hint(err, "correct it")}
	}
	if t.replacement, err = t.regex.Replacement(o.TopicReplace); err != nil {
		return t, &OptionError{Name: "route.topic.replacement", Text: err.Error(), way: hint(err, "correct it")}
	}
	return t, nil
}

// of gives the topic for a value of the routing column: when all of it matches,
// the first match in it is replaced.
func (t *topics) of(value []byte) (topic, fault, way string) {
	if topic, ok := t.known[string(value)]; ok {
		return topic, "", ""
	}
	topic = string(value)
	if t.regex.MatchWhole(topic) {
		var err error
		if topic, err = t.replacement.First(topic); err != nil {
			return "", err.Error(), hint(err, "correct what the application writes")
		}
	}
	if fault, way = topicFault(topic); fault != "" {
		return "", fault, way
	}
	if len(t.known) >= maxTopics {
		clear(t.known)
	}
	t.known[string(value)] = topic
	return topic, "", ""
}

// topicFault says why the broker would refuse a topic's name.
func topicFault(name string) (text, way string) {
	const rule = "a topic's name has 1 to 249 of the characters a-z A-Z 0-9 . _ -; correct what the application writes, or route.topic.regex and route.topic.replacement"
	switch {
	case name == "":
		return "the topic's name is empty", rule
	case len(name) > maxTopic:
		return fmt.Sprintf("topic name %q… is longer than %d characters", name[:40], maxTopic), rule
	case name == "." || name == "..":
		return fmt.Sprintf("topic name %q is not allowed", name), rule
	case name == "__consumer_offsets" || name == "__transaction_state" || name == "__share_group_state":
		return fmt.Sprintf("topic %q belongs to Kafka itself", name), rule
	}
	for i := range len(name) {
		if !legal(name[i]) {
			return fmt.Sprintf("topic name %q has a character that is not allowed at position %d", name, i+1), rule
		}
	}
	return "", ""
}

func legal(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}
