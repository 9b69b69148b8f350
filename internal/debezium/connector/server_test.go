package connector

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/walpost/walpost/internal/config"
)

// serverBase is a file of Debezium Server that runs as it is.
var serverBase = map[string]string{
	"debezium.sink.type":                              "kafka",
	"debezium.sink.kafka.producer.bootstrap.servers":  "kafka:9092",
	"debezium.sink.kafka.producer.key.serializer":     serializerString,
	"debezium.sink.kafka.producer.value.serializer":   serializerString,
	"debezium.source.connector.class":                 "io.debezium.connector.postgresql.PostgresConnector",
	"debezium.source.topic.prefix":                    "app",
	"debezium.source.database.hostname":               "db",
	"debezium.source.database.user":                   "debezium",
	"debezium.source.database.dbname":                 "shop",
	"debezium.source.plugin.name":                     "pgoutput",
	"debezium.source.publication.autocreate.mode":     "disabled",
	"debezium.source.table.include.list":              "public.outbox",
	"debezium.source.snapshot.mode":                   "no_data",
	"debezium.transforms":                             "outbox",
	"debezium.transforms.outbox.type":                 routerClass,
	"debezium.transforms.outbox.route.topic.regex":    "(?<routedByValue>.*)",
	"debezium.transforms.outbox.route.by.field":       "${ROUTE_BY:aggregatetype}",
	"debezium.transforms.outbox.table.field.event.id": "id",
}

func readServer(keys map[string]string, environ ...string) (*Spec, *Report, error) {
	m := maps.Clone(serverBase)
	for key, value := range keys {
		if value == absent {
			delete(m, key)
			continue
		}
		m[key] = value
	}
	return Read(Options{Config: "application.properties", ConfigData: properties(m), Environ: environ})
}

func TestServer(t *testing.T) {
	t.Parallel()
	spec, _, err := readServer(map[string]string{
		"debezium.transforms.outbox.route.topic.replacement": "$${routedByValue}.events",
		"debezium.format.key":                                "simplestring",
		"debezium.format.schemas.enable":                     "false",
		"debezium.format.header.schemas.enable":              "true",
	}, "ROUTE_BY=region", "DEBEZIUM_SOURCE_DATABASE_HOSTNAME=other", "DEBEZIUM_SOURCE_DATABASE_PASSWORD=hunter2")
	if err != nil {
		t.Fatal(texts(err))
	}
	if !spec.Server || !spec.Router.Server || spec.Router.TopicReplace != "${routedByValue}.events" || spec.Router.RouteByField != "region" {
		t.Errorf("got %+v", spec.Router)
	}
	if d := spec.Database; d.Hostname != "other" || d.Password != "hunter2" {
		t.Errorf("the environment does not replace: got %+v", d)
	}
	want := []ConverterSpec{
		{classString, map[string]string{}}, {classJSON, map[string]string{"schemas.enable": "false"}}, {classJSON, map[string]string{"schemas.enable": "true"}},
	}
	if diff := cmp.Diff(want, []ConverterSpec{spec.Key, spec.Value, spec.Header}); diff != "" {
		t.Errorf("converters differ (-want +got):\n%s", diff)
	}
}

func TestServerKeys(t *testing.T) {
	t.Parallel()
	const producer = "debezium.sink.kafka.producer."
	for _, test := range []struct {
		key, value string
		severity   Severity
		text       string
		also       map[string]string
	}{
		{"debezium.sink.type", "pulsar", SeverityRefused, "Kafka alone", nil},
		{"debezium.source.plugin.name", absent, SeverityRefused, "decoderbufs", nil},
		{"debezium.transforms", absent, SeverityRefused, "outbox router", nil},
		{"debezium.source.topic.creation.default.replication.factor", "3", SeverityNote, "does not create", nil},
		{"debezium.sink.type", absent, SeverityRefused, "debezium.sink.type=kafka", nil},
		{"debezium.sink.kafka.colour", "x", SeverityRefused, "no such option", nil},
		{"debezium.sink.redis.address", "x", SeverityNote, "another sink", nil},
		{"debezium.sink.kafka.wait.message.delivery.timeout.ms", "1", SeverityNote, "", nil},
		{producer + "bootstrap.servers", absent, SeverityRefused, "not set", nil},
		{producer + "key.serializer", absent, SeverityRefused, "StringSerializer", nil},
		{producer + "value.serializer", serializerBytes, SeverityRefused, "does not fit", nil},
		{producer + "value.serializer", serializerBytes, SeveritySame, "", map[string]string{"debezium.format.value": "jsonbytearray"}},
		{producer + "acks", "1", SeverityNote, "", nil},
		{"debezium.format.value", "avro", SeverityRefused, "format", nil},
		{"debezium.format.value", "binary", SeveritySame, "Binary", map[string]string{producer + "value.serializer": serializerBytes}},
		{"debezium.format.header", "simplestring", SeverityRefused, "clientprovided", nil},
		{"debezium.format.header", "clientprovided", SeveritySame, "Simple", map[string]string{"debezium.format.header.class": classSimple}},
		{"debezium.format.header.class", classSimple, SeverityNote, "clientprovided", nil},
		{"debezium.format.colour", "x", SeverityRefused, "JsonConverter", nil},
		{"debezium.source.key.converter", classString, SeverityRefused, "debezium.format", nil},
		{"debezium.source.colour", "x", SeverityRefused, "does not know", nil},
		{"debezium.source.database.hostnam", "x", SeverityRefused, `"debezium.source.database.hostname"`, nil},
		{"debezium.transforms.outbox.route.topic.replacment", "x", SeverityRefused, `"debezium.transforms.outbox.route.topic.replacement"`, nil},
		{"debezium.transforms.outbox.table.fields.additional.placement", "p:partition", SeverityNote, "no effect", nil},
		{"debezium.transforms.outbox.table.field.event.timestamp", "at", SeverityNote, "producer's", nil},
		{"debezium.source.offset.storage.file.filename", "x", SeverityNote, "slot", nil},
		{"%dev.debezium.source.topic.prefix", "x", SeverityNote, "dev", nil},
		{"%prod.debezium.source.topic.prefix", "x", SeverityRefused, "without %prod.", nil},
		{"quarkus.log.level", "TRACE", SeveritySame, "", nil},
		{"quarkus.http.port", "8081", SeverityNote, "", nil},
		{"quarkus.log.category.x.level", "DEBUG", SeverityNote, "", nil},
	} {
		keys := map[string]string{test.key: test.value}
		for key, value := range test.also {
			keys[key] = value
		}
		_, report, err := readServer(keys)
		if report == nil {
			t.Fatal(err)
		}
		e := entry(t, report, test.key)
		if all := e.Does + "; " + e.Way; e.Severity != test.severity || !strings.Contains(all, test.text) {
			t.Errorf("%s=%s: got %+v, want %s, %q", test.key, test.value, e, test.severity, test.text)
		}
	}
}

func TestServerOverlay(t *testing.T) {
	t.Parallel()
	spec, _, err := readServer(map[string]string{
		"quarkus.log.level": "FINE", "quarkus.http.port": "8081", "quarkus.log.console.json": "false",
	})
	if err != nil {
		t.Fatal(texts(err))
	}
	for name, want := range map[string]string{
		"log.level": "debug", "admin.listen": ":8081", "log.format": "console", "kafka.brokers": "kafka:9092", "postgres.tables": "public.outbox",
	} {
		if got := overlayOf(spec, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestServerMasksDefaults(t *testing.T) {
	t.Parallel()
	_, report, err := readServer(map[string]string{"debezium.source.database.password": "${DB_PASSWORD:hunter2}"})
	if err != nil {
		t.Fatal(texts(err))
	}
	if e := entry(t, report, "debezium.source.database.password"); e.Value != config.Masked {
		t.Errorf("got %+v", e)
	}
}
