package connect

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		class   string
		role    Role
		options map[string]string
		java    int
		want    string
		hint    string
	}{
		{"no class", "", RoleKey, nil, 0, "key.converter=: converter is not supported", "no default"},
		{"registry", "io.confluent.connect.avro.AvroConverter", RoleValue, nil, 0, "value.converter=io.confluent.connect.avro.AvroConverter: converter is not supported", "schema registry"},
		{"numbers", "org.apache.kafka.connect.converters.LongConverter", RoleKey, nil, 0, "key.converter=org.apache.kafka.connect.converters.LongConverter: converter is not supported", "supported are"},
		{"wrong package", "org.apache.kafka.connect.storage.JsonConverter", RoleKey, nil, 0, "key.converter=org.apache.kafka.connect.storage.JsonConverter: converter is not supported", "did you mean " + ClassJSON},
		{"wrong case", strings.ToLower(ClassString), RoleHeader, nil, 0, "header.converter=" + strings.ToLower(ClassString) + ": converter is not supported", "did you mean " + ClassString},
		{"header converter for a value", ClassSimpleHeader, RoleValue, nil, 0, "value.converter=" + ClassSimpleHeader + ": this class converts headers only; Connect refuses it here", "for keys and values"},
		{"boolean", ClassJSON, RoleValue, map[string]string{"schemas.enable": "yes"}, 0, "value.converter.schemas.enable=yes: neither true nor false; Connect does not start with it", "true or false"},
		{"null default", ClassJSON, RoleValue, map[string]string{"replace.null.with.default": ""}, 0, "value.converter.replace.null.with.default=: neither true nor false; Connect does not start with it", "true or false"},
		{"decimal", ClassJSON, RoleKey, map[string]string{"decimal.format": "PLAIN"}, 0, "key.converter.decimal.format=PLAIN: neither BASE64 nor NUMERIC", "BASE64 or NUMERIC"},
		{"cache", ClassJSON, RoleKey, map[string]string{"schemas.cache.size": "many"}, 0, "key.converter.schemas.cache.size=many: not a whole number", "remove it"},
		{"encoding", ClassString, RoleKey, map[string]string{"converter.encoding": "ISO-8859-1"}, 0, "key.converter.converter.encoding=ISO-8859-1: only UTF-8 is supported", "UTF-8"},
		{"delegate", ClassDebeziumBinaryData, RoleValue, map[string]string{"delegate.converter.type": "x.Y"}, 0, "value.converter.delegate.converter.type=x.Y: converter is not supported", "supported are"},
		{"delegate's option", ClassDebeziumByteArray, RoleValue, map[string]string{"delegate.converter.type": ClassJSON, "delegate.converter.type.schemas.enable": "1"}, 0, "value.converter.delegate.converter.type.schemas.enable=1: neither true nor false; Connect does not start with it", "true or false"},
		{"delegate for headers only", ClassDebeziumByteArray, RoleValue, map[string]string{"delegate.converter.type": ClassSimpleHeader}, 0, "value.converter.delegate.converter.type=" + ClassSimpleHeader + ": not a converter of keys and values", "use "},
		{"java", ClassString, RoleKey, nil, 7, "key.converter=" + ClassString + ": java version 7 does not exist", "such as 17 or 21"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := New(test.class, test.role, test.options, Options{JavaVersion: test.java})
			if err == nil || err.Error() != test.want {
				t.Fatalf("got %v, want %s", err, test.want)
			}
			var option *OptionError
			if !errors.As(err, &option) || !strings.Contains(option.Hint(), test.hint) {
				t.Errorf("hint %q has no %q", option.Hint(), test.hint)
			}
		})
	}
}

func TestUnusedOptions(t *testing.T) {
	t.Parallel()
	options := map[string]string{
		"schemas.enable": "false", "converter.type": "key", "delegate.converter.type": ClassJSON,
		"delegate.converter.type.schemas.enable": "false", "schema.registry.url": "x",
	}
	for class, want := range map[string][]string{
		ClassString:             {"delegate.converter.type", "delegate.converter.type.schemas.enable", "schema.registry.url", "schemas.enable"},
		ClassJSON:               {"delegate.converter.type", "delegate.converter.type.schemas.enable", "schema.registry.url"},
		ClassDebeziumBinaryData: {"schema.registry.url", "schemas.enable"},
	} {
		if got := UnusedOptions(class, options); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", class, got, want)
		}
	}
}

func TestDelegateIsNotReadForHeaders(t *testing.T) {
	t.Parallel()
	c, err := New(ClassDebeziumBinaryData, RoleHeader, map[string]string{"delegate.converter.type": "x.Y"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Convert(nil, &Schema{Type: String}, Value{Valid: true}); err == nil {
		t.Error("converted a string without a delegate")
	}
}
