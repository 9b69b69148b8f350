package route

import "fmt"

// maxTopic is Kafka's limit for a topic's name
// (org.apache.kafka.common.internals.Topic).
const maxTopic = 249

// legal says whether Kafka allows the byte in a topic's name.
func legal(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}

// checkTopic says what is wrong with a topic's name and what to do about it;
// nothing when it may be used. Names that begin with two underscores belong to
// Kafka (__consumer_offsets, __transaction_state): who may write an outbox row
// must not be able to write there.
func checkTopic(name []byte) (text, way string) {
	const rule = "a topic's name has 1 to 249 of the characters a-z A-Z 0-9 . _ -; correct what the application writes, or the topic template"
	switch {
	case len(name) == 0:
		return "the topic's name is empty", rule
	case len(name) > maxTopic:
		return fmt.Sprintf("topic name %q… is longer than %d characters", name[:40], maxTopic), rule
	case string(name) == "." || string(name) == "..":
		return fmt.Sprintf("topic name %q is not allowed", name), rule
	case len(name) >= 2 && name[0] == '_' && name[1] == '_':
		return fmt.Sprintf("topic name %q is reserved for Kafka itself", name),
			"names that begin with __ are refused; correct what the application writes, or give the topic template a prefix"
	}
	for i, c := range name {
		if !legal(c) {
			return fmt.Sprintf("topic name %q has a character that is not allowed at position %d", name, i+1), rule
		}
	}
	return "", ""
}
