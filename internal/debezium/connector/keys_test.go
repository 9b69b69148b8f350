package connector

import (
	"strings"
	"testing"
)

// decided is a row of the tests below: a key with its value, and what is decided.
type decided struct {
	key, value string
	decision   Decision
	severity   Severity
	text       string // a part of what is said
	also       map[string]string
}

func testDecisions(t *testing.T, rows []decided, more ...func(*Options)) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.key+"="+row.value, func(t *testing.T) {
			t.Parallel()
			keys := map[string]string{}
			for key, value := range row.also {
				keys[key] = value
			}
			keys[row.key] = row.value
			_, report, err := readMap(t, keys, more...)
			if report == nil {
				t.Fatal(err)
			}
			e := entry(t, report, row.key)
			if e.Decision != row.decision || e.Severity != row.severity {
				t.Errorf("got %s, %s, want %s, %s: %s", e.Decision, e.Severity, row.decision, row.severity, e.Does)
			}
			if all := e.Does + "; " + e.Difference + "; " + e.Way; !strings.Contains(all, row.text) {
				t.Errorf("got %q, want %q in it", all, row.text)
			}
			if e.Decision == Refused && (err == nil || e.Way == "") {
				t.Errorf("refused with error %v and hint %q", err, e.Way)
			}
			if e.Severity == SeverityRefused != (e.Decision == Refused) {
				t.Errorf("decision %s and severity %s", e.Decision, e.Severity)
			}
			if e.Set != (row.value != absent) {
				t.Errorf("set is %v", e.Set)
			}
		})
	}
}

func TestIdentityAndDatabase(t *testing.T) {
	t.Parallel()
	testDecisions(t, []decided{
		{"name", "orders", Honoured, SeveritySame, "", nil},
		{"connector.class", "PostgresConnector", Honoured, SeveritySame, "", nil},
		{"connector.class", "io.debezium.connector.mysql.MySqlConnector", Refused, SeverityRefused, "PostgreSQL", nil},
		{"connector.class", absent, Refused, SeverityRefused, "add connector.class", nil},
		{"topic.prefix", absent, Refused, SeverityRefused, "database.server.name", nil},
		{"topic.prefix", "a b", Refused, SeverityRefused, "letters", nil},
		{"database.hostname", absent, Refused, SeverityRefused, "add database.hostname", nil},
		{"database.dbname", "", Refused, SeverityRefused, "", nil},
		{"database.port", "5433", Honoured, SeveritySame, "", nil},
		{"database.port", "99999", Refused, SeverityRefused, "65535", nil},
		{"database.port", "x", Refused, SeverityRefused, "whole number", nil},
		{"database.sslmode", "verify-full", Honoured, SeveritySame, "", nil},
		{"database.sslmode", "on", Refused, SeverityRefused, "verify-ca", nil},
		{"database.sslmode", "require", Honoured, SeverityNote, "libpq", map[string]string{"database.sslrootcert": "/ca.pem"}},
		{"database.sslkey", "/k.pk8", Refused, SeverityRefused, "openssl pkcs8 -inform DER -in /k.pk8", nil},
		{"database.sslkey", "/k.pem", Honoured, SeveritySame, "", nil},
		{"database.sslfactory", "x.Y", Refused, SeverityRefused, "Java", nil},
		{"database.tcpKeepAlive", "false", Ignored, SeverityDiffers, "", nil},
		{"database.tcpKeepAlive", "yes", Refused, SeverityRefused, "true or false", nil},
		{"database.initial.statements", "set x = y", Refused, SeverityRefused, "alter role", nil},
		{"database.query.timeout.ms", "1", Ignored, SeverityNote, "", nil},
		{"database.server.name", "app", Refused, SeverityRefused, "topic.prefix", nil},
		{"database.whitelist", "app", Refused, SeverityRefused, "database.dbname", nil},
	})
}

func TestPEMIsLookedAt(t *testing.T) {
	t.Parallel()
	read := files{"/der.key": "\x30\x82", "/pem.key": "text\n-----BEGIN PRIVATE KEY-----\n"}.read
	for file, want := range map[string]Decision{"/der.key": Refused, "/pem.key": Honoured} {
		_, report, _ := readMap(t, map[string]string{"database.sslkey": file}, func(o *Options) { o.ReadFile = read })
		if e := entry(t, report, "database.sslkey"); e.Decision != want {
			t.Errorf("%s: got %s, want %s", file, e.Decision, want)
		}
	}
}

func TestSelection(t *testing.T) {
	t.Parallel()
	testDecisions(t, []decided{
		{"table.include.list", "public.outbox,sales\\.outbox", Honoured, SeveritySame, "the outbox tables", nil},
		{"table.include.list", ".*outbox", Honoured, SeveritySame, "regular expressions", nil},
		{"table.include.list", absent, Honoured, SeverityNote, "every table", nil},
		{"table.include.list", absent, Honoured, SeveritySame, "router's columns", map[string]string{"schema.include.list": "public"}},
		{"table.include.list", "(", Refused, SeverityRefused, "", nil},
		{"table.include.list", "a(?=b)", Refused, SeverityRefused, "", nil},
		{"table.exclude.list", "public.x", Refused, SeverityRefused, "together with table.include.list", nil},
		{"schema.exclude.list", "x", Refused, SeverityRefused, "together with", map[string]string{"schema.include.list": "y"}},
		{"column.exclude.list", "public.outbox.secret", Ignored, SeverityNote, "", nil},
		{"column.exclude.list", `public\.outbox\.pay.*`, Refused, SeverityRefused, "column payload", nil},
		{"column.exclude.list", "public.outbox.kind", Refused, SeverityRefused, "column kind", map[string]string{"transforms.outbox.table.fields.additional.placement": "kind:header"}},
		{"column.exclude.list", "a.b.c", Refused, SeverityRefused, "may hide", map[string]string{"table.include.list": ".*"}},
		{"column.include.list", "public.outbox.(id|payload|aggregateid|aggregatetype)", Ignored, SeverityNote, "", nil},
		{"column.include.list", "public.outbox.(id|payload)", Refused, SeverityRefused, "column aggregateid", nil},
		{"column.mask.hash.SHA-256.with.salt.x", "public.outbox.payload", Refused, SeverityRefused, "alters the row", nil},
		{"column.truncate.to.20.chars", "public.outbox.payload", Refused, SeverityRefused, "alters the row", nil},
		{"message.key.columns", "public.outbox:id", Ignored, SeverityNote, "", nil},
	})
}

func TestReplication(t *testing.T) {
	t.Parallel()
	testDecisions(t, []decided{
		{"plugin.name", absent, Refused, SeverityRefused, "decoderbufs", nil},
		{"plugin.name", "decoderbufs", Refused, SeverityRefused, "pgoutput", nil},
		{"slot.name", absent, Honoured, SeveritySame, "", nil},
		{"slot.name", "Slot", Refused, SeverityRefused, "a-z", nil},
		{"slot.drop.on.stop", "true", Honoured, SeveritySame, "", nil},
		{"slot.drop.on.stop", "1", Refused, SeverityRefused, "true or false", nil},
		{"slot.failover", "TRUE", Honoured, SeveritySame, "", nil},
		{"slot.stream.params", "a=b", Refused, SeverityRefused, "", nil},
		{"slot.max.retries", "3", Ignored, SeverityNote, "goes on", nil},
		{"slot.max.retries", "-1", Refused, SeverityRefused, "", nil},
		{"slot.retry.delay.ms", "5", Ignored, SeverityNote, "goes on", nil},
		{"publication.name", "Mixed", Honoured, SeverityNote, "lower case", nil},
		{"publication.autocreate.mode", absent, Honoured, SeverityNote, "FOR ALL TABLES", nil},
		{"publication.autocreate.mode", "filtered", Honoured, SeverityNote, "", nil},
		{"publication.autocreate.mode", "disabled", Honoured, SeveritySame, "", nil},
		{"publication.autocreate.mode", "some", Refused, SeverityRefused, "all_tables", nil},
		{"publish.via.partition.root", "true", Honoured, SeveritySame, "", nil},
		{"status.update.interval.ms", "5000", Honoured, SeveritySame, "", nil},
		{"status.update.interval.ms", "60000", Ignored, SeverityNote, "10 s", nil},
		{"status.update.interval.ms", "0", Refused, SeverityRefused, "", nil},
		{"lsn.flush.mode", "connector", Honoured, SeveritySame, "", nil},
		{"lsn.flush.mode", "manual", Honoured, SeverityNote, "confirms nothing", nil},
		{"lsn.flush.mode", "connector_and_driver", Honoured, SeverityNote, "10 minutes", nil},
		{"lsn.flush.mode", "driver", Refused, SeverityRefused, "", nil},
		{"flush.lsn.source", "false", Honoured, SeverityNote, "confirms nothing", nil},
		{"flush.lsn.source", "true", Honoured, SeveritySame, "", nil},
		{"flush.lsn.source", "false", Ignored, SeverityNote, "lsn.flush.mode", map[string]string{"lsn.flush.mode": "connector"}},
		{"lsn.flush.timeout.ms", "1", Ignored, SeverityNote, "", nil},
		{"xmin.fetch.interval.ms", "1", Ignored, SeverityNote, "", nil},
		{"offset.mismatch.strategy", "trust_slot", Ignored, SeverityNote, "", nil},
		{"skipped.operations", "u,d,t", Honoured, SeveritySame, "", nil},
		{"skipped.operations", "none", Honoured, SeverityNote, "TRUNCATE", nil},
		{"skipped.operations", "c", Refused, SeverityRefused, "no event", nil},
		{"skipped.operations", "r,t", Refused, SeverityRefused, "snapshot", map[string]string{"snapshot.mode": "initial"}},
		{"skipped.operations", "r,t", Honoured, SeveritySame, "", nil},
		{"skipped.operations", "x", Refused, SeverityRefused, "", nil},
		{"skipped.operations", "none,t", Refused, SeverityRefused, "alone", nil},
		{"replica.identity.autoset.values", "public.outbox:FULL", Ignored, SeverityDiffers, "alters no table", nil},
	})
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	testDecisions(t, []decided{
		{"snapshot.mode", absent, Honoured, SeverityNote, "then streams", nil},
		{"snapshot.mode", "initial", Honoured, SeveritySame, "", nil},
		{"snapshot.mode", "NO_DATA", Honoured, SeveritySame, "", nil},
		{"snapshot.mode", "never", Honoured, SeverityNote, "no_data", nil},
		{"snapshot.mode", "always", Honoured, SeveritySame, "", nil},
		{"snapshot.mode", "initial_only", Honoured, SeveritySame, "", nil},
		{"snapshot.mode", "when_needed", Honoured, SeveritySame, "", nil},
		{"snapshot.mode", "exported", Refused, SeverityRefused, "initial", nil},
		{"snapshot.mode", "custom", Refused, SeverityRefused, "", nil},
		{"snapshot.mode", "configuration_based", Refused, SeverityRefused, "", nil},
		{"snapshot.mode", "sometimes", Refused, SeverityRefused, "", nil},
		{"snapshot.select.statement.overrides", "public.outbox", Refused, SeverityRefused, "", nil},
		{"snapshot.include.collection.list", "x", Ignored, SeverityNote, "no snapshot", nil},
		{"snapshot.include.collection.list", "x", Refused, SeverityRefused, "", map[string]string{"snapshot.mode": "initial"}},
		{"snapshot.include.collection.list", "public.outbox", Ignored, SeveritySame, "", map[string]string{"snapshot.mode": "initial"}},
		{"snapshot.query.mode", "custom", Refused, SeverityRefused, "", nil},
		{"snapshot.isolation.mode", "serializable", Ignored, SeverityNote, "", nil},
		{"snapshot.locking.mode", "none", Ignored, SeveritySame, "", nil},
		{"snapshot.locking.mode", "shared", Ignored, SeverityNote, "", nil},
		{"snapshot.fetch.size", "1", Ignored, SeverityNote, "", nil},
		{"signal.data.collection", "public.signals", Refused, SeverityRefused, "", nil},
		{"signal.enabled.channels", "source", Ignored, SeveritySame, "", nil},
		{"signal.enabled.channels", "source,kafka", Refused, SeverityRefused, "", nil},
		{"read.only", "true", Refused, SeverityRefused, "", nil},
		{"read.only", "false", Ignored, SeveritySame, "", nil},
		{"incremental.snapshot.chunk.size", "1", Ignored, SeverityNote, "", nil},
	})
}

func TestValues(t *testing.T) {
	t.Parallel()
	json := map[string]string{"value.converter": classJSON}
	plain := map[string]string{"value.converter": classJSON, "value.converter.schemas.enable": "false"}
	testDecisions(t, []decided{
		{"binary.handling.mode", "base64-url-safe", Honoured, SeveritySame, "", nil},
		{"binary.handling.mode", "octal", Refused, SeverityRefused, "hex", nil},
		{"decimal.handling.mode", "String", Honoured, SeveritySame, "", nil},
		{"time.precision.mode", "isostring", Honoured, SeveritySame, "", nil},
		{"time.precision.mode", "connect", Honoured, SeverityNote, "zone", nil},
		{"hstore.handling.mode", "map", Honoured, SeveritySame, "", nil},
		{"interval.handling.mode", "string", Honoured, SeveritySame, "", nil},
		{"money.fraction.digits", "3", Honoured, SeveritySame, "", nil},
		{"include.unknown.datatypes", "true", Honoured, SeveritySame, "", nil},
		{"event.converting.failure.handling.mode", "fail", Honoured, SeveritySame, "", nil},
		{"event.processing.failure.handling.mode", "skip", Ignored, SeverityDiffers, "drops", nil},
		{"unavailable.value.placeholder", "x", Ignored, SeverityNote, "", nil},
		{"schema.name.adjustment.mode", "avro", Ignored, SeverityNote, "no record shows", plain},
		{"schema.name.adjustment.mode", "avro", Refused, SeverityRefused, "schemas.enable=false", json},
		{"schema.name.adjustment.mode", "none", Ignored, SeveritySame, "", json},
		{"include.schema.comments", "true", Refused, SeverityRefused, "", json},
		{"column.propagate.source.type", ".*", Ignored, SeverityNote, "", nil},
		{"field.name.adjustment.mode", "avro", Refused, SeverityRefused, "", nil},
		{"converters", "isbn", Refused, SeverityRefused, "Java", nil},
		{"post.processors", "x", Refused, SeverityRefused, "Java", nil},
		{"sourceinfo.struct.maker", "x.Y", Refused, SeverityRefused, "", nil},
	})
}

func TestRouter(t *testing.T) {
	t.Parallel()
	const p = "transforms.outbox."
	json := map[string]string{"value.converter": classJSON}
	predicate := map[string]string{
		"predicates": "isOutbox", "predicates.isOutbox.type": predicateClass, "predicates.isOutbox.pattern": ".*outbox",
	}
	testDecisions(t, []decided{
		{p + "table.op.invalid.behavior", " FATAL ", Honoured, SeveritySame, "", nil},
		{p + "table.op.invalid.behavior", "explode", Refused, SeverityRefused, "warn, error, fatal", nil},
		{p + "table.field.event.id", "event_id", Honoured, SeveritySame, "", nil},
		{p + "table.field.event.id", "", Refused, SeverityRefused, "", nil},
		{p + "table.field.event.type", "kind", Ignored, SeverityNote, "never reads", nil},
		{p + "table.field.event.timestamp", "at", Honoured, SeveritySame, "", nil},
		{p + "table.fields.additional.placement", "type:header:eventType,part:partition", Honoured, SeveritySame, "", nil},
		{p + "table.fields.additional.placement", " type : HEADER : et ", Honoured, SeveritySame, "", nil},
		{p + "table.fields.additional.placement", "type:header,", Honoured, SeveritySame, "", nil},
		{p + "table.fields.additional.placement", "type:header:", Honoured, SeveritySame, "", nil},
		{p + "table.fields.additional.placement", "", Refused, SeverityRefused, "neither a pair", nil},
		{p + "table.fields.additional.placement", "type", Refused, SeverityRefused, "neither a pair", nil},
		{p + "table.fields.additional.placement", "a:header:b:c", Refused, SeverityRefused, "neither a pair", nil},
		{p + "table.fields.additional.placement", "type:heder", Refused, SeverityRefused, "fails at every row", nil},
		{p + "table.fields.additional.placement", "a:envelope:x,b:envelope:x", Refused, SeverityRefused, "two fields", json},
		{p + "table.fields.additional.placement", "a:envelope:payload", Refused, SeverityRefused, "two fields", json},
		{p + "table.fields.additional.placement", "a:envelope", Honoured, SeveritySame, "", json},
		{p + "table.fields.additional.placement", "a:envelope", Refused, SeverityRefused, "debug text", nil},
		{p + "table.field.additional.missing", "ignore", Honoured, SeveritySame, "", nil},
		{p + "table.field.additional.missing", "maybe", Refused, SeverityRefused, "", nil},
		{p + "table.fields.additional.error.on.missing", "true", Ignored, SeverityNote, "", nil},
		{p + "table.fields.additional.error.on.missing", "false", Refused, SeverityRefused, "table.field.additional.missing=ignore", nil},
		{p + "table.expand.json.payload", "true", Honoured, SeverityNote, "hash table", json},
		{p + "table.expand.json.payload", "true", Refused, SeverityRefused, "debug text", nil},
		{p + "table.expand.json.payload", "yes", Refused, SeverityRefused, "", nil},
		{p + "table.json.payload.null.behavior", "optional_bytes", Honoured, SeveritySame, "", nil},
		{p + "table.json.payload.empty.array.behavior", "optional_string", Refused, SeverityRefused, "3.7", nil},
		{p + "table.json.payload.empty.array.behavior", "ignore", Ignored, SeverityNote, "", nil},
		{p + "route.topic.regex", "(.*)-(.*)", Honoured, SeveritySame, "", map[string]string{p + "route.topic.replacement": "$2.$1"}},
		{p + "route.topic.regex", " [[a-z]", Refused, SeverityRefused, "", nil},
		{p + "route.topic.regex", "(?!x).*", Refused, SeverityRefused, "", nil},
		{p + "route.topic.regex", "(.*)++", Refused, SeverityRefused, "", nil},
		{p + "route.topic.replacement", "${nope}", Refused, SeverityRefused, "fails at every row", nil},
		{p + "route.topic.replacement", "a.${routedByValue}", Honoured, SeveritySame, "", nil},
		{p + "route.tombstone.on.empty.payload", "true", Honoured, SeveritySame, "", nil},
		{p + "tracing.span.context.field", "x", Ignored, SeverityNote, "OpenTelemetry", nil},
		{p + "field.name.adjustment.mode", "avro", Ignored, SeverityNote, "", nil},
		{p + "field.name.adjustment.mode", "avro", Refused, SeverityRefused, "", map[string]string{"value.converter": classJSON, p + "table.expand.json.payload": "true"}},
		{p + "route.topic.regexp", "x", Refused, SeverityRefused, `did you mean "transforms.outbox.route.topic.regex"?`, nil},
		{p + "colour", "x", Refused, SeverityRefused, "ignores it without a word", nil},
		{p + "debezium.op.invalid.behavior", "warn", Refused, SeverityRefused, "table.op.invalid.behavior", nil},
		{p + "predicate", "isOutbox", Honoured, SeveritySame, "", predicate},
		{p + "predicate", "isOutbox", Refused, SeverityRefused, "predicates does not name it", nil},
		{p + "negate", "true", Refused, SeverityRefused, "without a predicate", nil},
	})
}

func TestTransforms(t *testing.T) {
	t.Parallel()
	predicate := func(kind string) map[string]string {
		return map[string]string{
			"transforms.outbox.predicate": "p", "predicates": "p", "predicates.p.type": kind, "predicates.p.pattern": "x",
		}
	}
	testDecisions(t, []decided{
		{"transforms", absent, Refused, SeverityRefused, "no outbox router", nil},
		{"transforms", "other", Refused, SeverityRefused, "no outbox router", nil},
		{"transforms", "outbox,second", Refused, SeverityRefused, "two outbox routers", map[string]string{"transforms.second.type": routerClass}},
		{"transforms", "outbox,second", Refused, SeverityRefused, "no type", nil},
		{
			"transforms.route.type", "org.apache.kafka.connect.transforms.RegexRouter", Refused, SeverityRefused, "route.topic.regex",
			map[string]string{"transforms": "outbox,route"},
		},
		{"transforms.route.regex", "x", Ignored, SeverityNote, "no transform in transforms", nil},
		{"predicates.p.type", predicateClass, Honoured, SeveritySame, "", predicate(predicateClass)},
		{"predicates.p.type", "x.HasHeaderKey", Refused, SeverityRefused, "", predicate("")},
		{"predicates.p.pattern", "(?=a)", Refused, SeverityRefused, "", predicate(predicateClass)},
		{"predicates.p.type", "x.HasHeaderKey", Ignored, SeverityNote, "does not use", nil},
	})
}

func TestOtherTopics(t *testing.T) {
	t.Parallel()
	binary := map[string]string{"value.converter": classBinary}
	testDecisions(t, []decided{
		{"heartbeat.interval.ms", "0", Honoured, SeveritySame, "", nil},
		{"heartbeat.interval.ms", "10000", Honoured, SeverityNote, "Struct", nil},
		{"heartbeat.interval.ms", "10000", Refused, SeverityRefused, "bytes only", binary},
		{"heartbeat.interval.ms", "-1", Refused, SeverityRefused, "", nil},
		{"heartbeat.action.query", "select 1", Honoured, SeveritySame, "", nil},
		{"topic.heartbeat.prefix", "hb", Honoured, SeveritySame, "", nil},
		{"topic.heartbeat.name", "hb", Honoured, SeveritySame, "", nil},
		{"topic.naming.strategy", "x.Y", Refused, SeverityRefused, "", nil},
		{"topic.naming.strategy", schemaNaming, Ignored, SeveritySame, "", nil},
		{"provide.transaction.metadata", "true", Refused, SeverityRefused, "", nil},
		{"provide.transaction.metadata", "false", Ignored, SeveritySame, "", nil},
		{"message.prefix.include.list", "x", Refused, SeverityRefused, "", nil},
		{"message.prefix.exclude.list", "x", Refused, SeverityRefused, "", nil},
		{"message.prefix.exclude.list", ".*", Honoured, SeveritySame, "", nil},
		{"extended.headers.enabled", "false", Honoured, SeveritySame, "no context headers", nil},
		{"notification.enabled.channels", "log,sink", Refused, SeverityRefused, "", nil},
		{"notification.enabled.channels", "log,jmx", Ignored, SeverityNote, "", nil},
	})
}

func TestConnectAndInside(t *testing.T) {
	t.Parallel()
	rows := []decided{
		{"errors.tolerance", "none", Ignored, SeveritySame, "", nil},
		{"errors.tolerance", "all", Refused, SeverityRefused, "errors.tolerance=none", nil},
		{"errors.max.retries", "-1", Ignored, SeveritySame, "", nil},
		{"errors.max.retries", "5", Ignored, SeverityDiffers, "stops", nil},
		{"exactly.once.support", "requested", Ignored, SeverityNote, "", nil},
		{"exactly.once.support", "required", Refused, SeverityRefused, "", nil},
		{"transaction.boundary", "interval", Refused, SeverityRefused, "", nil},
		{"topic.creation.groups", "a", Refused, SeverityRefused, "", nil},
		{"databse.port", "5432", Refused, SeverityRefused, `did you mean "database.port"?`, nil},
		{"colour.of.the.sky", "blue", Refused, SeverityRefused, "does not know this key", nil},
	}
	for _, key := range []string{
		"tasks.max", "tombstones.on.delete", "skip.messages.without.change", "poll.interval.ms", "max.queue.size", "max.batch.size",
		"max.queue.size.in.bytes", "query.fetch.size", "snapshot.max.threads", "schema.refresh.mode", "retriable.restart.connector.wait.ms",
		"errors.log.enable", "offset.flush.interval.ms", "offset.storage", "offset.storage.topic", "schema.history.internal.kafka.topic",
		"custom.metric.tags", "advanced.metrics.enable", "statistics.metrics.enabled", "log.position.check.enable",
		"connection.validation.timeout.ms", "executor.shutdown.timeout.ms", "topic.cache.size", "openlineage.integration.enabled",
		"guardrail.collections.max", "internal.log.position.check.enable", "config.action.reload", "snapshot.lock.timeout.ms",
	} {
		rows = append(rows, decided{key, "1", Ignored, SeverityNote, "", nil})
	}
	testDecisions(t, rows)
}
