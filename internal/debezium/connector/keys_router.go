package connector

import "strings"

const routedRegex = "(?<routedByValue>.*)"

// formerKeys are those that Debezium 1.x had, with what became of them.
var formerKeys = map[string]string{
	"database.server.name":      "write topic.prefix",
	"database.whitelist":        "write database.dbname",
	"schema.whitelist":          "write schema.include.list",
	"schema.blacklist":          "write schema.exclude.list",
	"table.whitelist":           "write table.include.list",
	"table.blacklist":           "write table.exclude.list",
	"column.whitelist":          "remove it",
	"column.blacklist":          "remove it",
	"heartbeat.topics.prefix":   "write topic.heartbeat.prefix",
	"slot.drop_on_stop":         "write slot.drop.on.stop",
	"toasted.value.placeholder": "remove it",
	"sanitize.field.names":      "remove it",
	"truncate.handling.mode":    "write skipped.operations",
	"snapshot.custom.class":     "remove it",
	"topic.selection.strategy":  "remove it",
	"source.struct.version":     "remove it",
}

// formerRouterOptions are those that the router had in Debezium 1.x.
var formerRouterOptions = map[string]string{
	"debezium.op.invalid.behavior": "write table.op.invalid.behavior",
	"table.field.event.payload.id": "write table.field.event.key, which decides the record's key",
}

// routerRules are the router's options, behind transforms.<alias>.
func routerRules() []rule {
	column := func(option, def, does string, put func(r *reading, v string)) rule {
		return rule{key: option, def: def, decide: func(r *reading, s *setting) verdict {
			v := strings.TrimSpace(s.value)
			if v == "" {
				return malformed(s, "write a column's name, or remove the key")
			}
			put(r, v)
			return same(does)
		}}
	}
	return []rule{
		{key: "type", decide: text("the outbox router", func(*reading, string) {})},
		{key: "predicate", decide: decidePredicate},
		{key: "negate", decide: decideNegate},
		{key: "table.op.invalid.behavior", def: "warn", decide: oneOf([]string{"warn", "error", "fatal"},
			"what happens when a row is updated", func(r *reading, v string) { r.spec.Router.OpInvalid = v })},
		column("table.field.event.id", "id", "column of the header id", func(r *reading, v string) { r.spec.Router.FieldEventID = v }),
		column("table.field.event.key", "aggregateid", "column of the key", func(r *reading, v string) { r.spec.Router.FieldEventKey = v }),
		{key: "table.field.event.type", decide: ignore("the router never reads this column; place it with table.fields.additional.placement if it should be a header")},
		column("table.field.event.payload", "payload", "column of the value", func(r *reading, v string) { r.spec.Router.FieldEventPayload = v }),
		{key: "table.field.event.timestamp", decide: func(r *reading, s *setting) verdict {
			r.spec.Router.FieldEventTimestamp = strings.TrimSpace(s.value)
			if r.server {
				return noted("Debezium Server passes no timestamp on: the column is checked, and the time is the producer's", "")
			}
			return same("column of the timestamp")
		}},
		{key: "table.field.event.schema.version", decide: text("column of the envelope schema's version", func(r *reading, v string) { r.spec.Router.FieldEventSchemaVersion = v })},
		{key: "table.fields.additional.placement", decide: decidePlacement},
		{key: "table.field.additional.missing", decide: decideMissing},
		{key: "table.fields.additional.error.on.missing", decide: decideErrorOnMissing},
		{key: "table.expand.json.payload", def: "false", decide: decideExpand},
		{key: "table.json.payload.null.behavior", def: "ignore", decide: oneOf([]string{"ignore", "optional_bytes"},
			"members that are null, with table.expand.json.payload", func(r *reading, v string) { r.spec.Router.JSONNull = v })},
		{key: "table.json.payload.empty.array.behavior", def: "ignore", decide: decideEmptyArray},
		column("route.by.field", "aggregatetype", "column of the topic", func(r *reading, v string) { r.spec.Router.RouteByField = v }),
		{key: "route.topic.regex", def: routedRegex, decide: decideTopicRegex},
		{key: "route.topic.replacement", def: "outbox.event.${routedByValue}", decide: decideReplacement},
		{key: "route.tombstone.on.empty.payload", def: "false", decide: boolean("an empty payload becomes a tombstone", func(r *reading, v bool) { r.spec.Router.TombstoneEmpty = v })},
		{key: "tracing.*", decide: func(*reading, *setting) verdict {
			return verdict{
				decision: Ignored, severity: SeverityNote, does: "no tracing headers are added",
				difference: "Debezium adds traceparent and tracestate where OpenTelemetry is on its class path",
			}
		}},
		{key: "field.name.adjustment.mode", decide: func(r *reading, s *setting) verdict {
			if strings.EqualFold(strings.TrimSpace(s.value), "none") {
				return moot("the default: nothing is changed")
			}
			if !strings.EqualFold(r.routerValue("table.expand.json.payload", "false"), "true") {
				return ignored("it is used with table.expand.json.payload alone")
			}
			return refused("a member that it renames loses its value in Debezium", "remove it")
		}},
	}
}

func decideMissing(r *reading, s *setting) verdict {
	v := strings.ToLower(strings.TrimSpace(s.value))
	switch {
	case v != "error" && v != "ignore":
		return malformed(s, "write error or ignore")
	case r.version.atLeast(3, 6):
		r.spec.Router.MissingIgnored = v == "ignore"
		return same("what happens when a placed column is missing")
	case v == "error":
		return ignored("a missing column is an error by default; Debezium " + r.version.String() + " does not know the option")
	default:
		return refused("Debezium "+r.version.String()+" does not know it, and would fail on a missing column",
			"set debezium.version to 3.6, or write table.fields.additional.error.on.missing=false")
	}
}

func decideErrorOnMissing(r *reading, s *setting) verdict {
	v, way := parseBool(s)
	switch {
	case way != "":
		return malformed(s, way)
	case r.version.atLeast(2, 5) && !r.version.atLeast(3, 6):
		r.spec.Router.MissingIgnored = !v
		return same("what happens when a placed column is missing")
	case v:
		return ignored("a missing column is an error by default; Debezium " + r.version.String() + " does not know the option")
	default:
		return refused("Debezium "+r.version.String()+" does not know it, and fails on a missing column without a warning at start",
			"write table.field.additional.missing=ignore (3.6), or set debezium.version to 3.5")
	}
}

func decideExpand(r *reading, s *setting) verdict {
	v := boolean("JSON in the payload becomes structured", func(r *reading, v bool) { r.spec.Router.ExpandJSON = v })(r, s)
	if v.severity == SeverityRefused || !r.spec.Router.ExpandJSON {
		return v
	}
	if bad := r.debugText("expanded JSON"); bad != nil {
		return *bad
	}
	return noted(v.does, "where an array holds objects with unlike members, Java orders the members as its hash table has them, walpost as they first appear")
}

func decideEmptyArray(r *reading, s *setting) verdict {
	v := oneOf([]string{"ignore", "optional_string"}, "members that are [], with table.expand.json.payload",
		func(r *reading, v string) { r.spec.Router.JSONEmptyArray = v })(r, s)
	if v.severity == SeverityRefused || r.version.atLeast(3, 7) || !s.set {
		return v
	}
	if r.spec.Router.JSONEmptyArray == "ignore" {
		return ignored("such members are dropped by default; Debezium " + r.version.String() + " does not know the option")
	}
	r.spec.Router.JSONEmptyArray = "ignore"
	return refused("Debezium "+r.version.String()+" does not know it and drops such members", "remove it, or set debezium.version to 3.7")
}

// debugText refuses a struct as value where the converter would print it as
// Java's debug text.
func (r *reading) debugText(what string) *verdict {
	if !isString(r.spec.Value) || r.opt.ReproduceDebugText {
		return nil
	}
	v := refused("StringConverter writes "+what+" as Java's debug text, Struct{…}, which no consumer can read",
		"use JsonConverter for the value; or set debezium.reproduce_debug_text if consumers rely on it")
	return &v
}
