package connector

import (
	"strconv"

	"github.com/walpost/walpost/internal/debezium/javaregex"
)

func quoted(s string) string { return strconv.Quote(s) }

// badPattern refuses a regular expression or a replacement.
func badPattern(err error) verdict {
	return refused("walpost cannot use it: "+err.Error(), hintOf(err))
}

func decideTopicRegex(r *reading, s *setting) verdict {
	if _, err := javaregex.Compile(s.value); err != nil {
		return badPattern(err)
	}
	r.spec.Router.TopicRegex = s.value
	return same("matched against the whole of the routing column")
}

func decideReplacement(r *reading, s *setting) verdict {
	r.spec.Router.TopicReplace = s.value
	re, err := javaregex.Compile(r.routerRegex())
	if err != nil {
		return same("the topic") // said at the regular expression
	}
	if _, err := re.Replacement(s.value); err != nil {
		return refused("Debezium starts, and fails at every row: "+err.Error(), hintOf(err))
	}
	return same("the topic")
}

// routerRegex is route.topic.regex as it is written, with its default.
func (r *reading) routerRegex() string {
	if s := r.connector.byKey[r.aliasPrefix()+"route.topic.regex"]; s != nil {
		return s.value
	}
	return routedRegex
}
