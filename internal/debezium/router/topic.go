package router

import (
	"fmt"

	"github.com/walpost/walpost/internal/debezium/javaregex"
	"github.com/walpost/walpost/internal/route"
)

// maxTopics bounds the values whose topic is kept. Beyond it all are forgotten.
const maxTopics = 1 << 14

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
	reserved := ""
	switch name {
	case "__consumer_offsets", "__transaction_state", "__share_group_state":
		reserved = fmt.Sprintf("topic %q belongs to Kafka itself", name)
	}
	if text = route.TopicFault(name, reserved); text == "" {
		return "", ""
	}
	return text, route.TopicForm + "; correct what the application writes, or route.topic.regex and route.topic.replacement"
}
