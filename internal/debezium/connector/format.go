package connector

import "strings"

// Debezium Server names formats instead of converters.
var formatClasses = map[string]string{
	"json": classJSON, "jsonbytearray": classJSON, "simplestring": classString, "binary": classBinary,
}

// The serializers of Kafka's Java client.
const (
	serializerString = "org.apache.kafka.common.serialization.StringSerializer"
	serializerBytes  = "org.apache.kafka.common.serialization.ByteArraySerializer"
)

// formats finds the converters of Debezium Server. Options stand behind
// debezium.format. for all of them, and behind debezium.format.<kind>. for one.
func (r *reading) formats() {
	for _, c := range []struct {
		kind string
		spec *ConverterSpec
	}{{"key", &r.spec.Key}, {"value", &r.spec.Value}, {"header", &r.spec.Header}} {
		*c.spec = r.format(c.kind)
	}
	for _, s := range r.connector.order {
		option, ok := strings.CutPrefix(s.key, serverFormat)
		if _, done := r.verdicts[s]; !ok || done || s.overridden != "" {
			continue
		}
		r.verdicts[s] = r.commonOption(option, s)
	}
	for _, kind := range []string{"key.converter", "value.converter", "header.converter"} {
		for _, s := range r.connector.order {
			if s.key == kind || strings.HasPrefix(s.key, kind+".") {
				r.verdicts[s] = refused("Debezium Server names converters by debezium.format.*, and this has no effect", "remove it")
			}
		}
	}
}

func (r *reading) format(kind string) ConverterSpec {
	name := serverFormat + kind
	spec := ConverterSpec{Options: map[string]string{}}
	format := strings.ToLower(r.value(name, "json"))
	spec.Class = formatClasses[format]
	v := same("the bytes are those of " + short(spec.Class))
	switch {
	case format == "clientprovided":
		spec.Class, v = decideConverter(r.value(name+".class", ""), kind == "header")
		if s := r.connector.byKey[name+".class"]; s != nil {
			r.verdicts[s] = v
		}
	case spec.Class == "":
		v = refused("walpost does not write this format", "use json, jsonbytearray, simplestring or binary, whose bytes consumers must then expect")
	case kind == "header" && format != "json" && format != "jsonbytearray":
		v = refused("Debezium Server does not take this format for headers", "use json or clientprovided")
	}
	if s := r.connector.byKey[name]; s != nil {
		r.verdicts[s] = v
	}
	for _, s := range r.connector.order {
		option, own := strings.CutPrefix(s.key, name+".")
		if own && option == "class" && format != "clientprovided" {
			r.verdicts[s] = ignored("it belongs to the format clientprovided")
			continue
		}
		if !own || option == "class" || s.overridden != "" {
			continue
		}
		v := r.decideConverterOption(spec.Class, option, s)
		if r.verdicts[s] = v; v.decision == Honoured {
			spec.Options[option] = strings.TrimSpace(s.value)
		}
	}
	for _, s := range r.connector.order {
		option, ok := strings.CutPrefix(s.key, serverFormat)
		if !ok || s.overridden != "" || isKind(option) {
			continue
		}
		if _, own := spec.Options[option]; !own && r.decideConverterOption(spec.Class, option, s).decision == Honoured {
			spec.Options[option] = strings.TrimSpace(s.value)
		}
	}
	return spec
}

// isKind says that an option is for one of the three converters.
func isKind(option string) bool {
	kind, _, _ := strings.Cut(option, ".")
	return kind == "key" || kind == "value" || kind == "header"
}

// commonOption decides about an option for all three converters: the best of
// what each of them says.
func (r *reading) commonOption(option string, s *setting) verdict {
	var best verdict
	for i, c := range []ConverterSpec{r.spec.Key, r.spec.Value, r.spec.Header} {
		v := r.decideConverterOption(c.Class, option, s)
		if i == 0 || v.severity == SeverityRefused || best.severity != SeverityRefused && v.decision == Honoured {
			best = v
		}
	}
	return best
}

// decideSerializer: Debezium Server needs both, and they must fit the formats.
func decideSerializer(kind string) decide {
	return func(r *reading, s *setting) verdict {
		class := strings.TrimSpace(s.value)
		if !r.server {
			if class == serializerBytes {
				return moot("records are bytes already")
			}
			return refused("Kafka Connect hands over bytes, so that the producer fails with another serializer", "remove it")
		}
		want := serializerString
		format := strings.ToLower(r.value(serverFormat+kind, "json"))
		if format == "jsonbytearray" || format == "binary" {
			want = serializerBytes
		}
		switch {
		case class == want, format == "clientprovided":
			return same("the bytes are those of the format")
		case class == "":
			return refused("not set, and Debezium Server's producer has no default", "write "+want)
		default:
			return refused("it does not fit debezium.format."+kind+", so that the producer fails", "write "+want)
		}
	}
}
