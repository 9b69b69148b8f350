package connector

import (
	"slices"
	"strings"
)

// The converters that walpost has, by the classes they stand for.
const (
	classString = "org.apache.kafka.connect.storage.StringConverter"
	classJSON   = "org.apache.kafka.connect.json.JsonConverter"
	classBytes  = "org.apache.kafka.connect.converters.ByteArrayConverter"
	classSimple = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
	classBinary = "io.debezium.converters.BinaryDataConverter"
)

const (
	delegateOption = "delegate.converter.type"
	converterWay   = "use StringConverter, JsonConverter, ByteArrayConverter or BinaryDataConverter, whose bytes consumers must then expect; else go on with Debezium"
)

// converterNames are the names that Connect takes for a class.
var converterNames = map[string]string{
	classString: classString, "StringConverter": classString, "String": classString,
	classJSON: classJSON, "JsonConverter": classJSON, "Json": classJSON,
	classBytes:  classBytes,
	classSimple: classSimple, "SimpleHeaderConverter": classSimple, "Simple": classSimple,
	classBinary: classBinary, "BinaryDataConverter": classBinary, "BinaryData": classBinary,
}

// short is a class without its package.
func short(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

// delegate is the converter that does the work: that of BinaryDataConverter, or
// itself.
func delegate(c ConverterSpec) string {
	if c.Class == classBinary && c.Options[delegateOption] != "" {
		return c.Options[delegateOption]
	}
	return c.Class
}

func isString(c ConverterSpec) bool { return delegate(c) == classString }

func takesBytesOnly(c ConverterSpec) bool {
	class := delegate(c)
	return class == classBytes || class == classBinary
}

// showsSchema says that schemas are part of what the converter writes.
func showsSchema(c ConverterSpec) bool {
	if delegate(c) != classJSON {
		return false
	}
	option := "schemas.enable"
	if c.Class == classBinary {
		option = delegateOption + "." + option
	}
	return !strings.EqualFold(strings.TrimSpace(c.Options[option]), "false")
}

func (r *reading) schemasVisible() bool {
	return showsSchema(r.spec.Key) || showsSchema(r.spec.Value) || showsSchema(r.spec.Header)
}

// converters finds out which converter of each kind is in force. Connect takes
// one with its options from the connector, or all of it from the worker.
func (r *reading) converters() {
	if r.server {
		r.formats()
		return
	}
	for _, c := range []struct {
		kind string
		spec *ConverterSpec
	}{{"key", &r.spec.Key}, {"value", &r.spec.Value}, {"header", &r.spec.Header}} {
		name := c.kind + ".converter"
		in, other := r.connector, (*settings)(nil)
		if in.byKey[name] == nil {
			in, other = r.worker, r.connector
		}
		if other != nil {
			r.idleOptions(other, name)
		}
		s := in.byKey[name]
		if s == nil {
			r.idleOptions(in, name)
			if c.kind == "header" {
				c.spec.Class, c.spec.Options = classSimple, map[string]string{}
			}
			continue
		}
		*c.spec = r.converter(in, s, name, c.kind == "header")
	}
}

// idleOptions decides about options of a converter that is not in this file.
func (r *reading) idleOptions(in *settings, name string) {
	for _, s := range in.order {
		if !strings.HasPrefix(s.key, name+".") || s.key == name+".plugin.version" {
			continue
		}
		why := name + " is not set beside it, so that Kafka Connect ignores it too"
		if in == r.connector && r.worker.byKey[name] != nil {
			why = name + " is the worker's, and Kafka Connect then takes its options from the worker alone"
		}
		r.verdicts[s] = ignored(why)
	}
}

// converter reads one, with its options, which get their verdicts.
func (r *reading) converter(in *settings, s *setting, name string, header bool) ConverterSpec {
	spec := ConverterSpec{Options: map[string]string{}}
	if s.unresolved != nil {
		r.verdicts[s] = noted("its value is read when walpost runs", s.unresolved.Error())
	} else {
		spec.Class, r.verdicts[s] = decideConverter(strings.TrimSpace(s.value), header)
	}
	for _, o := range in.order {
		option, ok := strings.CutPrefix(o.key, name+".")
		if !ok || o.overridden != "" || option == "plugin.version" {
			continue
		}
		if o.unresolved != nil {
			r.verdicts[o] = noted("its value is read when walpost runs", o.unresolved.Error())
			continue
		}
		v := r.decideConverterOption(spec.Class, option, o)
		if r.verdicts[o] = v; v.decision == Honoured {
			spec.Options[option] = strings.TrimSpace(o.value)
		}
	}
	if d := spec.Options[delegateOption]; d != "" {
		spec.Options[delegateOption] = converterNames[d]
	}
	if v := r.verdicts[s]; header && v.decision == Honoured && takesBytesOnly(spec) && r.contextHeaders() > 0 {
		r.verdicts[s] = refused("the context headers are text, and "+short(spec.Class)+" takes bytes only, so that Debezium's task fails",
			"set extended.headers.enabled=false, or use SimpleHeaderConverter")
	}
	return spec
}

// contextHeaders is how many there will be.
func (r *reading) contextHeaders() int {
	if r.opt.NoContextHeaders || r.is("extended.headers.enabled", "true", "false") {
		return 0
	}
	return r.version.contextHeaders()
}

func decideConverter(name string, header bool) (class string, v verdict) {
	class, ok := converterNames[name]
	switch {
	case ok && (class != classSimple || header):
		return class, same("the bytes are those of " + short(class))
	case ok:
		return "", refused("SimpleHeaderConverter converts headers alone", converterWay)
	case name == "ByteArrayConverter", name == "ByteArray":
		return "", refused("Kafka and Debezium each have a class of this name", "write "+classBytes)
	case name == "io.debezium.converters.ByteArrayConverter":
		return "", refused("it does not take the bytes of the PostgreSQL connector, so that Debezium's task fails",
			"use "+classBinary)
	case name == "":
		return "", refused("no class is named", converterWay)
	}
	lower := strings.ToLower(name)
	for _, format := range []string{"avro", "protobuf", "jsonschema", "cloudevents", "apicurio", "amazonaws"} {
		if strings.Contains(lower, format) {
			return "", refused("walpost does not write the formats of schema registries, nor CloudEvents", converterWay)
		}
	}
	return "", refused("walpost does not have this converter", converterWay)
}

// decideConverterOption knows the options by the converter's class.
func (r *reading) decideConverterOption(class, option string, s *setting) verdict {
	value := strings.ToLower(strings.TrimSpace(s.value))
	switch class {
	case classString:
		if option == "converter.encoding" {
			if slices.Contains([]string{"utf-8", "utf8"}, value) {
				return same("UTF-8")
			}
			return refused("walpost writes UTF-8", "remove it")
		}
		return ignored("StringConverter has no such option, and Kafka Connect ignores it")
	case classJSON:
		return decideJSONOption(option, s)
	case classBinary:
		return r.decideBinaryOption(option, s)
	case classBytes, classSimple:
		return ignored(short(class) + " has no options, and Kafka Connect ignores it")
	default:
		return ignored("it belongs to a converter that is refused")
	}
}

func decideJSONOption(option string, s *setting) verdict {
	value := strings.ToLower(strings.TrimSpace(s.value))
	switch option {
	case "schemas.enable", "replace.null.with.default":
		if _, way := parseBool(s); way != "" {
			return malformed(s, way)
		}
		return same("an option of JsonConverter")
	case "decimal.format":
		if value != "base64" && value != "numeric" {
			return malformed(s, "write BASE64 or NUMERIC")
		}
		return same("an option of JsonConverter")
	case "schemas.cache.size":
		return ignored("it bounds a cache")
	case "schema.content":
		if value == "" {
			return moot("the schema is the column's")
		}
		return refused("walpost writes the schema of the column", "remove it")
	}
	return refused("JsonConverter has no such option; Kafka Connect ignores it without a word",
		"its options are schemas.enable, decimal.format and replace.null.with.default")
}

func (r *reading) decideBinaryOption(option string, s *setting) verdict {
	if option == delegateOption {
		class, v := decideConverter(strings.TrimSpace(s.value), false)
		if class == classBytes || class == classBinary {
			return refused("a delegate is for what is not bytes", "use JsonConverter or StringConverter")
		}
		return v
	}
	rest, ok := strings.CutPrefix(option, delegateOption+".")
	if !ok {
		return ignored("BinaryDataConverter reads the options of its delegate behind " + delegateOption + ". alone")
	}
	prefix := strings.TrimSuffix(s.key, "."+rest)
	class := converterNames[r.anyValue(prefix)]
	if class == "" {
		return ignored("there is no " + delegateOption)
	}
	return r.decideConverterOption(class, rest, s)
}

// anyValue looks in both files.
func (r *reading) anyValue(key string) string {
	if v, ok := r.connector.get(key); ok {
		return v
	}
	v, _ := r.worker.get(key)
	return v
}

// missingConverter decides where a converter is in neither file.
func missingConverter(kind string) decide {
	return func(r *reading, s *setting) verdict {
		name := kind + ".converter"
		if r.server || r.worker.byKey[name] != nil {
			return verdict{} // said at debezium.format, or in the worker's file
		}
		if kind == "header" {
			s.value = classSimple
			return same("the bytes are those of SimpleHeaderConverter")
		}
		way := "name the worker's file, or add " + name + " as the worker has it"
		if r.worker.order != nil {
			way = "add " + name + " to one of the files"
		}
		return refused("in neither file, and it decides about bytes and partitions, so it is not guessed", way)
	}
}
