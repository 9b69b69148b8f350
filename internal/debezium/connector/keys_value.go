package connector

import (
	"strings"
)

// valueRules decide what a column's value looks like.
func valueRules() []rule {
	return []rule{
		{key: "binary.handling.mode", def: "bytes", decide: oneOf([]string{"bytes", "base64", "base64-url-safe", "hex"},
			"what bytea looks like", func(r *reading, v string) { r.spec.Modes.Binary = v })},
		{key: "decimal.handling.mode", def: "precise", decide: oneOf([]string{"precise", "double", "string"},
			"what numeric looks like", func(r *reading, v string) { r.spec.Modes.Decimal = v })},
		{key: "time.precision.mode", def: "adaptive", decide: decideTimeMode},
		{key: "hstore.handling.mode", def: "json", decide: oneOf([]string{"json", "map"},
			"what hstore looks like", func(r *reading, v string) { r.spec.Modes.HStore = v })},
		{key: "interval.handling.mode", def: "numeric", decide: oneOf([]string{"numeric", "string"},
			"what interval looks like", func(r *reading, v string) { r.spec.Modes.Interval = v })},
		{key: "money.fraction.digits", def: "2", decide: number(0, "digits of money", func(r *reading, v int) { r.spec.Modes.MoneyDigits = v })},
		{key: "include.unknown.datatypes", def: "false", decide: boolean("columns of types that Debezium does not know", func(r *reading, v bool) { r.spec.Modes.IncludeUnknown = v })},
		{key: "event.converting.failure.handling.mode", def: "warn", decide: oneOf([]string{"warn", "fail", "skip"},
			"a value that cannot be converted", func(r *reading, v string) { r.spec.Modes.Failure = v })},
		{key: "event.processing.failure.handling.mode", decide: func(_ *reading, s *setting) verdict {
			switch strings.ToLower(strings.TrimSpace(s.value)) {
			case "fail":
				return moot("an event that cannot be read holds the relay")
			case "warn", "skip", "ignore":
				return differs(Ignored, "an event that cannot be read holds the relay", "Debezium drops it", "set it to fail to say so")
			default:
				return malformed(s, "write one of fail, warn, skip")
			}
		}},
		{key: "unavailable.value.placeholder", decide: ignore("it stands for unchanged values of an update, which never reach a routed record")},
		{key: "schema.name.adjustment.mode", decide: visibleSchemas("none", "it renames schemas")},
		{key: "field.name.adjustment.mode", decide: refuseUnless([]string{"none"}, "it renames the columns before the router sees them", "remove it")},
		{key: "column.propagate.source.type", decide: visibleSchemas("", "it adds parameters to schemas")},
		{key: "datatype.propagate.source.type", decide: visibleSchemas("", "it adds parameters to schemas")},
		{key: "include.schema.comments", decide: visibleSchemas("false", "it adds the columns' comments to schemas")},
		{key: "include.schema.changes", decide: ignore("this connector makes no records of schema changes")},
		{key: "converters", decide: refuseUnless([]string{""}, "it names Java classes that alter values", "remove it")},
		{key: "post.processors", decide: refuseUnless([]string{""}, "it names Java classes that alter rows", "remove it")},
		{key: "sourceinfo.struct.maker", decide: refuseUnless([]string{"", "io.debezium.connector.postgresql.PostgresSourceInfoStructMaker"},
			"it names a Java class", "remove it")},
		{key: "tombstones.on.delete", decide: ignore("the router drops deletes and their tombstones")},
	}
}

func decideTimeMode(r *reading, s *setting) verdict {
	modes := []string{"adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"}
	v := oneOf(modes, "what dates and times look like", func(r *reading, v string) { r.spec.Modes.Time = v })(r, s)
	if r.spec.Modes.Time == "connect" && (isString(r.spec.Key) || isString(r.spec.Value)) {
		v.severity = SeverityNote
		v.difference = "StringConverter prints Java's dates in the zone of the JVM, which walpost takes to be UTC"
	}
	return v
}

// visibleSchemas refuses what changes schemas, where they can be seen.
func visibleSchemas(harmless, what string) decide {
	return func(r *reading, s *setting) verdict {
		if strings.EqualFold(strings.TrimSpace(s.value), harmless) {
			return moot("the default: nothing is changed")
		}
		if r.schemasVisible() {
			return refused(what+", and they are part of the records", "remove it, or set schemas.enable=false")
		}
		return ignored(what + ", and no record shows them")
	}
}
