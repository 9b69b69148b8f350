package connector

import (
	"slices"
	"strings"

	"github.com/walpost/walpost/internal/debezium/javaregex"
)

const (
	routerClass    = "io.debezium.transforms.outbox.EventRouter"
	predicateClass = "org.apache.kafka.connect.transforms.predicates.TopicNameMatches"
)

// aliasPrefix begins the keys of the router.
func (r *reading) aliasPrefix() string { return "transforms." + r.alias + "." }

// routerValue gives an option of the router.
func (r *reading) routerValue(option, otherwise string) string {
	return r.value(r.aliasPrefix()+option, otherwise)
}

// router finds the outbox router, and decides about the other transforms.
func (r *reading) router() {
	aliases := splitList(r.value("transforms", ""))
	routers := 0
	for _, alias := range aliases {
		class, ok := r.connector.get("transforms." + alias + ".type")
		switch {
		case class == routerClass, class == "EventRouter":
			routers++
			r.alias = alias
		case ok:
			r.verdicts[r.connector.byKey["transforms."+alias+".type"]] = refused(
				"walpost does not have this transform, which may change records", transformWay(class))
		}
	}
	s := r.connector.byKey["transforms"]
	switch {
	case s == nil:
	case routers == 0:
		r.verdicts[s] = noRouter()
	case routers > 1:
		r.verdicts[s] = refused("there are two outbox routers", "keep one of them")
	case slices.ContainsFunc(aliases, func(a string) bool { return !r.set("transforms." + a + ".type") }):
		r.verdicts[s] = refused("a transform in the list has no type, which Kafka Connect does not take", "remove it from the list")
	default:
		r.verdicts[s] = same("the outbox router")
	}
	for _, s := range r.connector.order {
		r.transformKey(s, aliases)
	}
}

func noRouter() verdict {
	return refused("there is no outbox router among the transforms: the records would be change events",
		"name a connector with a transform of type "+routerClass)
}

func decideNoTransforms(*reading, *setting) verdict { return noRouter() }

// transformWay says what to do about a transform.
func transformWay(class string) string {
	switch class[strings.LastIndexByte(class, '.')+1:] {
	case "RegexRouter", "ByLogicalTableRouter", "TopicNameMatches", "TimestampRouter":
		return "remove it, and name the topics with the router's route.topic.regex and route.topic.replacement"
	case "HeaderFrom$Value", "HeaderFrom$Key", "HeaderFrom", "InsertHeader", "InsertField$Value", "InsertField$Key":
		return "remove it, and place columns with the router's table.fields.additional.placement"
	case "ExpandJSON$Value":
		return "remove it, and use the router's table.expand.json.payload"
	default:
		return "remove it, if consumers can do without; else go on with Debezium"
	}
}

// transformKey decides about the options of transforms that are not the router.
func (r *reading) transformKey(s *setting, aliases []string) {
	rest, ok := strings.CutPrefix(s.key, "transforms.")
	if _, done := r.verdicts[s]; !ok || done {
		return
	}
	alias, _, _ := strings.Cut(rest, ".")
	switch {
	case r.alias != "" && strings.HasPrefix(s.key, r.aliasPrefix()):
	case slices.Contains(aliases, alias):
		r.verdicts[s] = ignored("it belongs to transform " + alias)
	default:
		r.verdicts[s] = ignored("no transform in transforms is called " + alias + ", so that Kafka Connect ignores it too")
	}
}

// predicateSet says that the router has a predicate.
func (r *reading) predicateSet() bool { return r.alias != "" && r.routerValue("predicate", "") != "" }

// predicates decides about them: the router may have one that looks at the
// topic's name.
func (r *reading) predicates() {
	used := ""
	if r.alias != "" {
		used = r.routerValue("predicate", "")
	}
	if s := r.connector.byKey["predicates"]; s != nil && used != "" {
		r.verdicts[s] = same("the router's predicate")
	}
	for _, s := range r.connector.order {
		rest, ok := strings.CutPrefix(s.key, "predicates.")
		if !ok || s.overridden != "" {
			continue
		}
		option, ours := strings.CutPrefix(rest, used+".")
		if used == "" || !ours {
			r.verdicts[s] = ignored("the router does not use this predicate")
			continue
		}
		switch option {
		case "type":
			r.verdicts[s] = decidePredicateType(s)
		case "pattern":
			r.verdicts[s] = r.decidePredicatePattern(s)
		default:
			r.verdicts[s] = refused("TopicNameMatches has no such option; Kafka Connect ignores it without a word", "remove it")
		}
	}
}

func decidePredicateType(s *setting) verdict {
	switch strings.TrimSpace(s.value) {
	case predicateClass, "TopicNameMatches":
		return same("the router sees what the pattern matches")
	}
	return refused("walpost knows the predicate TopicNameMatches alone", "use "+predicateClass)
}

func (r *reading) decidePredicatePattern(s *setting) verdict {
	if _, err := javaregex.Compile(s.value); err != nil {
		return badPattern(err)
	}
	r.spec.PredicateTopic = s.value
	return same("matched against <topic.prefix>.<schema>.<table>")
}

// decidePredicate checks the router's option.
func decidePredicate(r *reading, s *setting) verdict {
	alias := strings.TrimSpace(s.value)
	if !slices.Contains(splitList(r.value("predicates", "")), alias) || !r.set("predicates."+alias+".type") {
		return refused("predicates does not name it, which Kafka Connect does not take", "add it to predicates, with predicates."+alias+".type and .pattern")
	}
	if !r.set("predicates." + alias + ".pattern") {
		return refused("the predicate has no pattern", "add predicates."+alias+".pattern")
	}
	return same("the router sees the tables that the predicate chooses")
}

func decideNegate(r *reading, s *setting) verdict {
	v, way := parseBool(s)
	if way != "" {
		return malformed(s, way)
	}
	if !r.predicateSet() {
		return refused("set without a predicate, which Kafka Connect does not take", "remove it, or name the predicate")
	}
	r.spec.PredicateNegate = v
	return same("whether the predicate is turned round")
}
