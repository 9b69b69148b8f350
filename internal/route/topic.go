package route

import (
	"fmt"
	"strings"
)

// MaxTopic is Kafka's limit for a topic's name
// (org.apache.kafka.common.internals.Topic).
const MaxTopic = 249

// TopicByte says whether Kafka allows the byte in a topic's name.
func TopicByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}

// TopicFault says what is wrong with a topic's name; nothing when Kafka takes it
// and reserved, which says why it may not be used all the same, is empty.
func TopicFault(name, reserved string) string {
	switch {
	case name == "":
		return "the topic's name is empty"
	case len(name) > MaxTopic:
		return fmt.Sprintf("topic name %q… is longer than %d characters", name[:40], MaxTopic)
	case name == "." || name == "..":
		return fmt.Sprintf("topic name %q is not allowed", name)
	case reserved != "":
		return reserved
	}
	for i := range len(name) {
		if !TopicByte(name[i]) {
			return fmt.Sprintf("topic name %q has a character that is not allowed at position %d", name, i+1)
		}
	}
	return ""
}

// TopicForm is what a topic's name may look like, for a hint.
const TopicForm = "a topic's name has 1 to 249 of the characters a-z A-Z 0-9 . _ -"

// checkTopic says what is wrong with a topic's name and what to do about it;
// nothing when it may be used. Names that begin with two underscores belong to
// Kafka (__consumer_offsets, __transaction_state): who may write an outbox row
// must not be able to write there.
func checkTopic(name string) (text, way string) {
	reserved := ""
	if strings.HasPrefix(name, "__") {
		reserved = fmt.Sprintf("topic name %q is reserved for Kafka itself", name)
	}
	switch text = TopicFault(name, reserved); text {
	case "":
		return "", ""
	case reserved:
		return text, "names that begin with __ are refused; correct what the application writes, or give the topic template a prefix"
	default:
		return text, TopicForm + "; correct what the application writes, or the topic template"
	}
}
