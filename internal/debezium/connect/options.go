package connect

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DefaultJavaVersion is the Java of Debezium's own container images.
const DefaultJavaVersion = 21

// Role is the place in a record whose bytes a converter makes.
type Role uint8

// The places in a record.
const (
	RoleKey Role = iota + 1
	RoleValue
	RoleHeader
)

// String names the role as Connect's configuration does.
func (r Role) String() string {
	switch r {
	case RoleKey:
		return "key.converter"
	case RoleValue:
		return "value.converter"
	case RoleHeader:
		return "header.converter"
	}
	return "converter"
}

// Options of a converter that its configuration does not say.
type Options struct {
	// JavaVersion is the major version of the Java whose number text is printed;
	// 0 is DefaultJavaVersion.
	JavaVersion int
}

// The classes that New knows.
const (
	ClassString             = "org.apache.kafka.connect.storage.StringConverter"
	ClassJSON               = "org.apache.kafka.connect.json.JsonConverter"
	ClassByteArray          = "org.apache.kafka.connect.converters.ByteArrayConverter"
	ClassSimpleHeader       = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
	ClassDebeziumByteArray  = "io.debezium.converters.ByteArrayConverter"
	ClassDebeziumBinaryData = "io.debezium.converters.BinaryDataConverter"
)

const (
	delegateType   = "delegate.converter.type"
	encodingOption = "converter.encoding"
)

// options that each class reads.
var known = map[string][]string{
	ClassString:             {encodingOption},
	ClassJSON:               {"schemas.enable", "schemas.cache.size", "decimal.format", "replace.null.with.default"},
	ClassByteArray:          {},
	ClassSimpleHeader:       {},
	ClassDebeziumByteArray:  {delegateType},
	ClassDebeziumBinaryData: {delegateType},
}

// Classes lists the Java classes that New knows.
func Classes() []string { return slices.Sorted(maps.Keys(known)) }

// UnusedOptions lists those of a converter's options which its class does not
// read, sorted. Connect ignores them silently, and so does New; whoever reads a
// configuration has to tell the user.
func UnusedOptions(class string, options map[string]string) []string {
	var unused []string
	names := known[class]
	for name := range options {
		switch {
		case name == "converter.type" || slices.Contains(names, name):
		case strings.HasPrefix(name, delegateType+".") && slices.Contains(names, delegateType):
		default:
			unused = append(unused, name)
		}
	}
	slices.Sort(unused)
	return unused
}

// OptionError is a converter's configuration that cannot be honoured.
type OptionError struct {
	Role  Role
	Name  string // of the option; empty when it is the class
	Value string
	Err   error
	hint  string
}

// Error names the option, its value and what is wrong with it.
func (e *OptionError) Error() string {
	name := e.Role.String()
	if e.Name != "" {
		name += "." + e.Name
	}
	return fmt.Sprintf("%s=%s: %v", name, e.Value, e.Err)
}

// Unwrap returns what is wrong.
func (e *OptionError) Unwrap() error { return e.Err }

// Hint says in one line what to do.
func (e *OptionError) Hint() string { return e.hint }

// ErrUnknownClass is in the error of New for a class it does not know.
var ErrUnknownClass = errors.New("converter is not supported")

// New builds the converter of a Java class; options are those of the class, with
// the converter's prefix removed.
func New(class string, role Role, options map[string]string, o Options) (Converter, error) {
	w := writer{java: o.JavaVersion}
	if w.java == 0 {
		w.java = DefaultJavaVersion
	}
	if w.java < 8 {
		return nil, &OptionError{
			Role: role, Value: class, Err: fmt.Errorf("java version %d does not exist", o.JavaVersion),
			hint: "give the major version of the Java that runs Debezium, such as 17 or 21",
		}
	}
	switch class {
	case ClassString:
		return newString(role, options, w)
	case ClassJSON:
		return newJSON(role, options, w)
	case ClassByteArray:
		return byteArray{}, nil
	case ClassSimpleHeader:
		if role != RoleHeader {
			return nil, &OptionError{
				Role: role, Value: class, Err: errors.New("this class converts headers only; Connect refuses it here"),
				hint: "use " + ClassString + " or " + ClassJSON + " for keys and values",
			}
		}
		return simpleHeader{w}, nil
	case ClassDebeziumByteArray, ClassDebeziumBinaryData:
		return newBinary(class, role, options, o)
	}
	return nil, &OptionError{Role: role, Value: class, Err: ErrUnknownClass, hint: unknownHint(class)}
}

func unknownHint(class string) string {
	switch {
	case class == "":
		return "set it to the class in the connector's or the worker's configuration; converters have no default"
	case strings.Contains(class, "Avro"), strings.Contains(class, "Protobuf"), strings.Contains(class, "JsonSchema"),
		strings.Contains(class, "CloudEvents"), strings.Contains(class, "apicurio"):
		return "formats of a schema registry are not implemented; keep this connector in Debezium, or write the serialized bytes into a bytea payload and use " + ClassDebeziumBinaryData
	}
	for _, c := range Classes() {
		if strings.EqualFold(c, class) || simpleName(c) == simpleName(class) {
			return "did you mean " + c + "?"
		}
	}
	return "supported are " + strings.Join(Classes(), ", ")
}

func simpleName(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

// boolean reads an option as Kafka's configuration does.
func boolean(role Role, options map[string]string, name string, standard bool) (bool, error) {
	text, ok := options[name]
	if !ok {
		return standard, nil
	}
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, &OptionError{
		Role: role, Name: name, Value: text, Err: errors.New("neither true nor false; Connect does not start with it"),
		hint: "write true or false",
	}
}
