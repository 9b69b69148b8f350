package connector

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/walpost/walpost/internal/config"
)

func TestOverlay(t *testing.T) {
	t.Parallel()
	const p = "producer.override."
	spec, _, err := readMap(t, map[string]string{
		"database.user": "a b", "database.password": "p@:/?", "database.sslcert": "/c d.pem",
		p + "bootstrap.servers": "a:1, b:2", p + "security.protocol": "SASL_PLAINTEXT", p + "sasl.mechanism": "PLAIN",
		p + "sasl.jaas.config":      `org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="s;\"x";`,
		p + "request.timeout.ms":    "5000",
		"status.update.interval.ms": "60000", "topic.creation.default.replication.factor": "-1", "topic.creation.default.min.insync.replicas": "2",
		"table.include.list": `public.outbox,sales\.outbox,public.outbox`,
	})
	if err != nil {
		t.Fatal(texts(err))
	}
	want := map[string]string{
		"postgres.dsn":               "postgres://a%20b:p%40%3A%2F%3F@db:5432/shop?sslcert=%2Fc+d.pem&sslmode=prefer",
		"postgres.slot":              "debezium",
		"postgres.publication":       "dbz_publication",
		"postgres.status_interval":   "10s",
		"postgres.tables":            "public.outbox,sales.outbox",
		"kafka.brokers":              "a:1,b:2",
		"kafka.request_timeout":      "5s",
		"kafka.tls.enabled":          "false",
		"kafka.sasl.mechanism":       "PLAIN",
		"kafka.sasl.username":        "u",
		"kafka.sasl.password":        `s;"x`,
		"kafka.sasl.allow_plaintext": "true",
		"topics.create":              "true",
		"topics.replication_factor":  "-1",
		"topics.configs":             "min.insync.replicas=2",
	}
	got := map[string]string{}
	for _, o := range spec.Overlay() {
		got[o.Name] = o.Text
		if secret := o.Name == "postgres.dsn" || o.Name == "kafka.sasl.password"; o.Secret != secret {
			t.Errorf("%s: secret is %v", o.Name, o.Secret)
		}
		if o.Origin == "" {
			t.Errorf("%s has no origin", o.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("overlay differs (-want +got):\n%s", diff)
	}
	known := map[string]bool{}
	for _, o := range config.Options() {
		known[o.Name] = true
	}
	for name := range got {
		if !known[name] {
			t.Errorf("walpost has no option %s", name)
		}
	}
}

func TestSchemaListsLimitTables(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{"sales": "sales.outbox", "SALES|public": "public.outbox,sales.outbox", "x": ""} {
		spec, _, err := readMap(t, map[string]string{"table.include.list": "public.outbox,sales.outbox", "schema.include.list": list})
		if err != nil || overlayOf(spec, "postgres.tables") != want {
			t.Errorf("%s: got %q, %v, want %q", list, overlayOf(spec, "postgres.tables"), err, want)
		}
	}
	spec, _, err := readMap(t, map[string]string{"table.include.list": "public.outbox,sales.outbox", "schema.exclude.list": "sales"})
	if got := overlayOf(spec, "postgres.tables"); err != nil || got != "public.outbox" {
		t.Errorf("got %q, %v", got, err)
	}
}
