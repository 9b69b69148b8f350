package connector

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/walpost/walpost/internal/debezium/column"
	"github.com/walpost/walpost/internal/debezium/router"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	spec, _, err := readMap(t, map[string]string{"publication.autocreate.mode": absent, "snapshot.mode": absent})
	if err != nil {
		t.Fatal(err)
	}
	modes := column.Modes{Binary: "bytes", Decimal: "precise", Time: "adaptive", HStore: "json", Interval: "numeric", MoneyDigits: 2, Failure: "warn"}
	want := &Spec{
		Database:              Database{Hostname: "db", User: "debezium", Password: "hunter2", Name: "shop", Port: 5432, SSLMode: "prefer", KeepAlive: true},
		SlotName:              "debezium",
		SlotRetries:           6,
		SlotRetryDelay:        defaultRetryDelay,
		StatusInterval:        defaultRetryDelay,
		PublicationName:       "dbz_publication",
		PublicationAutocreate: "all_tables",
		SkippedOperations:     "t",
		TableInclude:          []string{"public.outbox"},
		SnapshotMode:          "initial",
		Key:                   ConverterSpec{classString, map[string]string{}},
		Value:                 ConverterSpec{classString, map[string]string{}},
		Header:                ConverterSpec{classSimple, map[string]string{}},
		Modes:                 modes,
		Version:               "3.6",
		Router: router.Options{
			FieldEventID: "id", FieldEventKey: "aggregateid", FieldEventPayload: "payload", OpInvalid: "warn",
			JSONNull: "ignore", JSONEmptyArray: "ignore", RouteByField: "aggregatetype",
			TopicRegex: routedRegex, TopicReplace: "outbox.event.${routedByValue}",
			TopicPrefix: "app", ContextHeaders: 4, TaskID: "0", ConnectorName: "postgresql", MessageTopics: true, Modes: modes,
		},
	}
	if diff := cmp.Diff(want, spec, cmpopts.IgnoreUnexported(Spec{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("spec differs (-want +got):\n%s", diff)
	}
}

func TestEverythingSet(t *testing.T) {
	t.Parallel()
	const p = "transforms.outbox."
	spec, _, err := readMap(t, map[string]string{
		"name": "orders", "database.port": "5433", "database.sslmode": "verify-full", "database.sslrootcert": "/ca.pem",
		"slot.name": "s", "slot.drop.on.stop": "true", "slot.failover": "true", "publication.name": "p", "publication.autocreate.mode": "filtered",
		"publish.via.partition.root": "true", "skipped.operations": "u,d,t", "snapshot.mode": "never", "lsn.flush.mode": "manual",
		"heartbeat.interval.ms": "1000", "heartbeat.action.query": "select 1", "topic.heartbeat.prefix": "hb", "topic.delimiter": "-",
		"message.prefix.exclude.list": ".*", "status.update.interval.ms": "5000",
		"binary.handling.mode": "hex", "decimal.handling.mode": "string", "time.precision.mode": "connect", "hstore.handling.mode": "map",
		"interval.handling.mode": "string", "money.fraction.digits": "3", "include.unknown.datatypes": "true", "event.converting.failure.handling.mode": "fail",
		"key.converter": "StringConverter", "value.converter": classBinary,
		"value.converter.delegate.converter.type": "JsonConverter", "value.converter.delegate.converter.type.schemas.enable": "false",
		"header.converter": classJSON, "header.converter.decimal.format": "NUMERIC",
		"transforms": " outbox ", "predicates": "q", "predicates.q.type": predicateClass, "predicates.q.pattern": "app\\.public\\..*",
		p + "predicate": "q", p + "negate": "true", p + "table.op.invalid.behavior": "ERROR",
		p + "table.field.event.id": "i", p + "table.field.event.key": "k", p + "table.field.event.payload": "v", p + "table.field.event.timestamp": "t",
		p + "table.field.event.schema.version": "sv", p + "table.fields.additional.placement": "a:header:b", p + "table.field.additional.missing": "ignore",
		p + "table.expand.json.payload": "true", p + "table.json.payload.null.behavior": "optional_bytes", p + "route.by.field": "r",
		p + "route.topic.regex": "(.*)", p + "route.topic.replacement": "x.$1", p + "route.tombstone.on.empty.payload": "true",
		"producer.override.bootstrap.servers": "k:9092", "producer.override.compression.type": "lz4",
		"topic.creation.default.replication.factor": "3", "topic.creation.default.partitions": "6", "topic.creation.default.retention.ms": "1",
	})
	if err != nil {
		t.Fatal(texts(err))
	}
	modes := column.Modes{Binary: "hex", Decimal: "string", Time: "connect", HStore: "map", Interval: "string", MoneyDigits: 3, IncludeUnknown: true, Failure: "fail"}
	want := &Spec{
		Name:                  "orders",
		Database:              Database{Hostname: "db", User: "debezium", Password: "hunter2", Name: "shop", Port: 5433, SSLMode: "verify-full", SSLRootCert: "/ca.pem", KeepAlive: true},
		SlotName:              "s",
		SlotDropOnStop:        true,
		SlotFailover:          true,
		SlotRetries:           6,
		SlotRetryDelay:        defaultRetryDelay,
		StatusInterval:        defaultRetryDelay / 2,
		PublicationName:       "p",
		PublicationAutocreate: "filtered",
		PublishViaRoot:        true,
		SkippedOperations:     "u,d,t",
		HasSkipped:            true,
		TableInclude:          []string{"public.outbox"},
		PredicateTopic:        `app\.public\..*`,
		PredicateNegate:       true,
		SnapshotMode:          "no_data",
		HeartbeatInterval:     defaultRetryDelay / 10,
		HeartbeatQuery:        "select 1",
		FlushManual:           true,
		Kafka: Kafka{
			Brokers: []string{"k:9092"}, Producer: map[string]string{"compression.type": "lz4"},
			CreateTopics: true, TopicPartitions: 6, TopicReplicas: 3, TopicConfigs: map[string]string{"retention.ms": "1"},
		},
		Key:     ConverterSpec{classString, map[string]string{}},
		Value:   ConverterSpec{classBinary, map[string]string{delegateOption: classJSON, delegateOption + ".schemas.enable": "false"}},
		Header:  ConverterSpec{classJSON, map[string]string{"decimal.format": "NUMERIC"}},
		Modes:   modes,
		Version: "3.6",
		Router: router.Options{
			FieldEventID: "i", FieldEventKey: "k", FieldEventPayload: "v", FieldEventTimestamp: "t", FieldEventSchemaVersion: "sv",
			Placement: "a:header:b", HasPlacement: true, MissingIgnored: true, OpInvalid: "error", ExpandJSON: true,
			JSONNull: "optional_bytes", JSONEmptyArray: "ignore", RouteByField: "r", TopicRegex: "(.*)", TopicReplace: "x.$1", TombstoneEmpty: true,
			TopicPrefix: "app", ContextHeaders: 4, TaskID: "0", ConnectorName: "postgresql", HeartbeatTopic: "hb-app", Modes: modes,
		},
	}
	if diff := cmp.Diff(want, spec, cmpopts.IgnoreUnexported(Spec{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("spec differs (-want +got):\n%s", diff)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	const missing, former = "transforms.outbox.table.field.additional.missing", "transforms.outbox.table.fields.additional.error.on.missing"
	tests := []struct {
		version string
		off     bool
		keys    map[string]string
		headers int
		ignored bool
		refused string
	}{
		{version: "", headers: 4},
		{version: "2.5", headers: 0},
		{version: "3.1.2.Final", headers: 0},
		{version: "3.2", headers: 3},
		{version: "3.4", headers: 4},
		{version: "3.7-SNAPSHOT", headers: 4},
		{version: "3.6", off: true, headers: 0},
		{version: "3.6", keys: map[string]string{"extended.headers.enabled": "false"}, headers: 0},
		{version: "3.6", keys: map[string]string{missing: "ignore"}, headers: 4, ignored: true},
		{version: "3.6", keys: map[string]string{former: "false"}, refused: former},
		{version: "3.6", keys: map[string]string{former: "true"}, headers: 4},
		{version: "3.5", keys: map[string]string{former: "false"}, headers: 4, ignored: true},
		{version: "2.5", keys: map[string]string{former: "false"}, ignored: true},
		{version: "2.4", keys: map[string]string{former: "false"}, refused: former},
		{version: "3.5", keys: map[string]string{missing: "ignore"}, refused: missing},
		{version: "3.5", keys: map[string]string{missing: "error"}, headers: 4},
		{version: "3.5", keys: map[string]string{"topic.heartbeat.name": "hb"}, refused: "topic.heartbeat.name"},
		{version: "3.7", keys: map[string]string{"transforms.outbox.table.json.payload.empty.array.behavior": "optional_string"}, headers: 4},
		{version: "1.9", refused: "debezium.version"},
		{version: "4.0", refused: "debezium.version"},
		{version: "new", refused: "debezium.version"},
	}
	for _, test := range tests {
		spec, _, err := readMap(t, test.keys, func(o *Options) { o.Version, o.NoContextHeaders = test.version, test.off })
		switch {
		case test.refused != "":
			if err == nil || !strings.Contains(texts(err), test.refused) {
				t.Errorf("%+v: got %v", test, err)
			}
		case err != nil:
			t.Errorf("%+v: %v", test, err)
		case spec.Router.ContextHeaders != test.headers || spec.Router.MissingIgnored != test.ignored:
			t.Errorf("%+v: got %d headers, missing ignored %v", test, spec.Router.ContextHeaders, spec.Router.MissingIgnored)
		}
	}
}

func TestReproduceDebugText(t *testing.T) {
	t.Parallel()
	keys := map[string]string{"transforms.outbox.table.fields.additional.placement": "type:envelope"}
	if _, _, err := readMap(t, keys); err == nil {
		t.Error("without the setting: got no error")
	}
	spec, _, err := readMap(t, keys, func(o *Options) { o.ReproduceDebugText = true })
	if err != nil || !spec.ReproduceDebugText {
		t.Errorf("with the setting: got %v", err)
	}
}

func TestConnectorAndDriver(t *testing.T) {
	t.Parallel()
	spec, _, err := readMap(t, map[string]string{"lsn.flush.mode": "connector_and_driver"})
	if err != nil || spec.HeartbeatInterval != idleHeartbeat || spec.Router.HeartbeatTopic != "__debezium-heartbeat.app" || spec.FlushManual {
		t.Errorf("got %v, %q, %v", spec.HeartbeatInterval, spec.Router.HeartbeatTopic, err)
	}
}

func TestLastPropertyCounts(t *testing.T) {
	t.Parallel()
	data := append(properties(base), "topic.prefix=other\n"...)
	spec, report, err := Read(Options{Config: "c.properties", ConfigData: data})
	if err != nil || spec.Router.TopicPrefix != "other" {
		t.Fatalf("got %v", err)
	}
	list := entriesOf(report, "topic.prefix")
	if len(list) != 2 || list[0].Decision != Ignored || !strings.Contains(list[0].Does, "c.properties:15") {
		t.Errorf("got %+v", list)
	}
}

func TestWorker(t *testing.T) {
	t.Parallel()
	worker := `bootstrap.servers=k:9092
key.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=false
value.converter=org.apache.kafka.connect.json.JsonConverter
value.converter.schemas.enable=false
header.converter=org.apache.kafka.connect.storage.StringConverter
producer.compression.type=zstd
producer.client.id=worker
`
	keys := map[string]string{
		"key.converter": absent, "key.converter.schemas.enable": "true",
		"value.converter": classJSON, "producer.override.client.id": "mine",
	}
	spec, report, err := readMap(t, keys, func(o *Options) { o.Worker, o.WorkerData = "w.properties", []byte(worker) })
	if err != nil {
		t.Fatal(texts(err))
	}
	if spec.Key.Class != classJSON || spec.Key.Options["schemas.enable"] != "false" {
		t.Errorf("key: got %+v, want the worker's, with its options alone", spec.Key)
	}
	if spec.Value.Class != classJSON || len(spec.Value.Options) != 0 {
		t.Errorf("value: got %+v, want the connector's, without the worker's options", spec.Value)
	}
	if spec.Header.Class != classString || spec.Kafka.Brokers[0] != "k:9092" {
		t.Errorf("header %+v, brokers %v", spec.Header, spec.Kafka.Brokers)
	}
	for _, want := range []Overlay{
		{Name: "kafka.client_id", Text: "mine"}, {Name: "kafka.compression", Text: "zstd"}, {Name: "kafka.brokers", Text: "k:9092"},
	} {
		if got := overlayOf(spec, want.Name); got != want.Text {
			t.Errorf("%s: got %q, want %q", want.Name, got, want.Text)
		}
	}
	if e := entry(t, report, "producer.client.id"); e.Decision != Ignored {
		t.Errorf("got %+v", e)
	}
}

func overlayOf(s *Spec, name string) string {
	for _, o := range s.Overlay() {
		if o.Name == name {
			return o.Text
		}
	}
	return ""
}

func TestWorkerKeys(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]Decision{
		"key.convertor=x": Refused, "bootstrap.server=x": Refused, "producer.compresion.type=x": Refused, "producer.compression.type=rar": Refused,
		"group.id=x": Ignored, "internal.key.converter=x": Ignored, "plugin.path=/x": Ignored, "some.vendors.thing=1": Ignored,
		"exactly.once.source.support=enabled": Ignored, "topic.creation.enable=true": Ignored, "sasl.mechanism=PLAIN": Ignored,
		"config.providers=file": Honoured, "bootstrap.servers=k:1": Honoured,
	} {
		key, _, _ := strings.Cut(line, "=")
		_, report, _ := readMap(t, nil, func(o *Options) { o.Worker, o.WorkerData = "w", []byte(line) })
		if e := entry(t, report, key); e.Decision != want || e.Origin != "w:1" {
			t.Errorf("%s: got %+v, want %s", line, e, want)
		}
	}
}

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	keys := map[string]string{
		"database.password": secret, "database.pasword": secret, "database.sslpassword": secret,
		"producer.override.sasl.jaas.config":        `x.PlainLoginModule required username="u" password="` + secret + `"`,
		"producer.override.sasl.mechanism":          "PLAIN",
		"producer.override.security.protocol":       "SASL_SSL",
		"producer.override.ssl.keystore.password":   secret,
		"producer.override.ssl.key.password":        secret,
		"producer.override.ssl.keystore.key":        secret,
		"value.converter.basic.auth.user.info":      "u:" + secret,
		"value.converter.schema.registry.url":       "http://u:" + secret + "@host",
		"signal.kafka.sasl.jaas.config":             secret,
		"some.api.key":                              secret,
		"heartbeat.interval.ms":                     "${env:THE_PASSWORD}",
		"transforms.outbox.table.field.event.token": secret,
	}
	_, report, err := readMap(t, keys, func(o *Options) { o.Environ = []string{"THE_PASSWORD=" + secret} })
	for _, e := range report.Entries {
		if strings.Contains(e.Key+e.Value+e.Does+e.Difference+e.Way, secret) {
			t.Errorf("a secret in %+v", e)
		}
	}
	if text := texts(err); err == nil || strings.Contains(text, secret) {
		t.Errorf("a secret in %s", text)
	}
	_, _, err = Read(Options{Config: "c.json", ConfigData: []byte(`{"database.password": "hunter2", "x": hunter2}`)})
	if err == nil || strings.Contains(texts(err), secret) {
		t.Errorf("a secret in %v", err)
	}
}

func TestReadFaults(t *testing.T) {
	t.Parallel()
	read := files{"app.properties": "debezium.sink.type=kafka\n", "w": "debezium.source.a=b", "c.properties": string(properties(base)), "big": strings.Repeat("#", maxFile+1)}.read
	for name, test := range map[string]struct {
		opt  Options
		want string
	}{
		"nothing":            {Options{}, "no connector configuration is named\n  name the connector's file\n"},
		"no file":            {Options{Config: "no"}, "open no: file does not exist\n  name a file that exists and can be read\n"},
		"no worker":          {Options{Config: "c.properties", Worker: "no"}, "open no: file does not exist\n  name a file that exists and can be read\n"},
		"too large":          {Options{Config: "big"}, "big: larger than 1 MiB\n  name the connector's configuration\n"},
		"server with worker": {Options{Config: "app.properties", Worker: "c.properties"}, "c.properties: Debezium Server has no Connect worker\n  leave the worker's file out\n"},
		"server as worker":   {Options{Config: "c.properties", Worker: "w"}, "w: this is the file of Debezium Server, not of a Connect worker\n  name it as the connector's file\n"},
	} {
		test.opt.ReadFile = read
		_, report, err := Read(test.opt)
		if diff := cmp.Diff(test.want, texts(err)); diff != "" || report != nil {
			t.Errorf("%s: error differs (-want +got):\n%s", name, diff)
		}
	}
}

func TestAllRefusalsAtOnce(t *testing.T) {
	t.Parallel()
	spec, report, err := readMap(t, map[string]string{"topic.prefix": absent, "plugin.name": absent, "errors.tolerance": "all", "nonsense.key": "x"})
	if spec != nil || report.Worst() != SeverityRefused || report.Count(SeverityRefused) != 4 {
		t.Errorf("got %d refusals", report.Count(SeverityRefused))
	}
	list, ok := err.(Errors)
	if !ok || len(list.Errors()) != 4 || list.ExitCode() != 2 || list[0].ExitCode() != 2 {
		t.Fatalf("got %v", err)
	}
	if got := list.Error(); !strings.Contains(got, "c.properties: plugin.name: not set") || !strings.Contains(got, "; ") {
		t.Errorf("got %s", got)
	}
	sorted := report.Sorted()
	if sorted[3].Severity != SeverityRefused || sorted[4].Severity == SeverityRefused || sorted[0].Key != "errors.tolerance" {
		t.Errorf("the worst are not first: %v", sorted[:5])
	}
}
