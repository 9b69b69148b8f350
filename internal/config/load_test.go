package config

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
)

// world is what a process would see: flags, environment and files.
type world struct {
	args    []string
	environ []string
	files   map[string]string
	need    Need
}

func (w world) load(t *testing.T) (*Config, error) {
	t.Helper()
	flags := pflag.NewFlagSet("walpost", pflag.ContinueOnError)
	AddFileFlag(flags)
	AddFlags(flags, IsGlobal)
	AddFlags(flags, IsLocal)
	if err := flags.Parse(w.args); err != nil {
		t.Fatalf("parse flags: %v", err)
	}
	return Load(Sources{
		Flags: flags, Environ: w.environ, Need: w.need,
		ReadFile: func(path string) ([]byte, error) {
			if text, ok := w.files[path]; ok {
				return []byte(text), nil
			}
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		},
	})
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	got, err := world{}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Postgres: Postgres{
			Slot: "walpost", Publication: "walpost",
			Tables:         []Table{{Schema: "public", Name: "outbox_events"}},
			StatusInterval: 10 * time.Second, ConfirmInterval: 100 * time.Millisecond, PollInterval: 10 * time.Second,
			Snapshot: SnapshotNone,
		},
		Kafka: Kafka{
			ClientID: "walpost-walpost", Compression: "none",
			MaxBatchBytes: 1e6, MaxRequestBytes: 1e6, RequestTimeout: 10 * time.Second,
		},
		Topic:    "outbox.event.<aggregate_type>",
		Topics:   Topics{Partitions: -1, ReplicationFactor: -1},
		Relay:    Relay{InFlightBytes: 6 << 20, DrainTimeout: 20 * time.Second},
		Sink:     SinkKafka,
		Admin:    Admin{Listen: ":8642"},
		Debezium: Debezium{Version: "3.6", ContextHeaders: true, JavaVersion: 21},
		Log:      Log{Level: "info", Format: "auto"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Config{})); diff != "" {
		t.Errorf("defaults differ (-want +got):\n%s", diff)
	}
	for _, s := range got.Settings() {
		if s.Origin != "default" {
			t.Errorf("%s: got origin %q, want default", s.Name, s.Origin)
		}
	}
}

func TestEverythingSet(t *testing.T) {
	t.Parallel()
	got, err := loadFixture("good")
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		File: "walpost.yaml",
		Postgres: Postgres{
			DSN:  "postgres://walpost:hunter2@db:5432/shop",
			Slot: "orders_outbox", Publication: "orders-outbox",
			Tables: []Table{
				{Schema: "public", Name: "outbox_events"},
				{
					Schema: "Sales", Name: "Out.box",
					Columns: Columns{
						ID: "event_uuid", AggregateType: "kind", AggregateID: "order_id", Type: "what",
						Payload: "body", Timestamp: "happened_at", Partition: "shard",
					},
					Headers: []Header{{Column: "tenant", Name: "tenant"}, {Column: "trace", Name: "traceparent", Required: true}},
				},
			},
			StatusInterval: 5 * time.Second, ConfirmInterval: 50 * time.Millisecond, PollInterval: time.Minute,
			Snapshot: SnapshotInitial,
		},
		Kafka: Kafka{
			Brokers:  []string{"kafka-1:9092", "kafka-2:9092", "[::1]:9094"},
			ClientID: "orders", Compression: "zstd",
			MaxBatchBytes: 524288, MaxRequestBytes: 1 << 20, RequestTimeout: 90 * time.Second,
			TLS:  TLS{Enabled: true, ServerName: "kafka.internal"},
			SASL: SASL{Mechanism: SASLScramSHA512, Username: "walpost", Password: "hunter2"},
		},
		Topic: "shop.<aggregate_type>",
		Topics: Topics{
			Allow: []string{"shop.orders", "shop.*"}, Create: true, Partitions: 12, ReplicationFactor: 3,
			Configs: map[string]string{
				"min.insync.replicas": "2", "cleanup.policy": "compact,delete", "unclean.leader.election.enable": "false",
			},
		},
		Relay:    Relay{InFlightBytes: 64 << 20, DrainTimeout: 25 * time.Second},
		Sink:     SinkKafka,
		Debezium: Debezium{Version: "3.6", ContextHeaders: true, JavaVersion: 21},
		Log:      Log{Level: "debug", Format: "json"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Config{})); diff != "" {
		t.Errorf("values differ (-want +got):\n%s", diff)
	}
	for _, s := range got.Settings() {
		unset := strings.HasPrefix(s.Name, "kafka.tls.") && s.Name != "kafka.tls.enabled" && s.Name != "kafka.tls.server_name" ||
			s.Name == "kafka.sasl.allow_plaintext" || strings.HasPrefix(s.Name, "debezium.")
		if got := s.Origin != "default"; got == unset {
			t.Errorf("%s: origin %q", s.Name, s.Origin)
		}
		if strings.Contains(fmt.Sprint(s.Value, s.Text()), "hunter2") {
			t.Errorf("%s shows a secret: %v", s.Name, s.Value)
		}
	}
}

func TestPrecedenceAndOrigins(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"walpost.yaml": "postgres:\n  slot: from_file\n  dsn: host=file\n",
		"other.yaml":   "postgres:\n\n  slot: from_other\n",
		"/run/dsn":     "host=secret password=hunter2\r\n",
		"/run/lines":   "host=secret\n\n",
	}
	tests := map[string]struct {
		world
		option string
		value  func(*Config) string
		want   string
		origin string
	}{
		"file over default": {world{}, "postgres.slot", slot, "from_file", "walpost.yaml:2"},
		"environment over file": {
			world{environ: []string{"WALPOST_SLOT=from_env"}}, "postgres.slot", slot, "from_env", "env WALPOST_SLOT",
		},
		"flag over environment": {
			world{args: []string{"--slot", "from_flag"}, environ: []string{"WALPOST_SLOT=from_env"}},
			"postgres.slot", slot, "from_flag", "flag --slot",
		},
		"the last of two flags": {
			world{args: []string{"--slot=one", "--slot=two"}}, "postgres.slot", slot, "two", "flag --slot",
		},
		"an empty variable is not set": {
			world{environ: []string{"WALPOST_SLOT="}}, "postgres.slot", slot, "from_file", "walpost.yaml:2",
		},
		"file named by the environment": {
			world{environ: []string{"WALPOST_CONFIG=other.yaml"}}, "postgres.slot", slot, "from_other", "other.yaml:3",
		},
		"file named by a flag": {
			world{args: []string{"--config", "walpost.yaml"}, environ: []string{"WALPOST_CONFIG=other.yaml"}},
			"postgres.slot", slot, "from_file", "walpost.yaml:2",
		},
		"secret from a file, by the environment": {
			world{environ: []string{"WALPOST_DSN_FILE=/run/dsn"}},
			"postgres.dsn", dsn, "host=secret password=hunter2", "file /run/dsn (env WALPOST_DSN_FILE)",
		},
		"secret from a file, by a flag, over the environment": {
			world{args: []string{"--dsn-file=/run/dsn"}, environ: []string{"WALPOST_DSN=host=env"}},
			"postgres.dsn", dsn, "host=secret password=hunter2", "file /run/dsn (flag --dsn-file)",
		},
		"one newline is trimmed": {
			world{environ: []string{"WALPOST_DSN_FILE=/run/lines"}},
			"postgres.dsn", dsn, "host=secret\n", "file /run/lines (env WALPOST_DSN_FILE)",
		},
		"secret by a flag": {
			world{args: []string{"--dsn=host=flag"}}, "postgres.dsn", dsn, "host=flag", "flag --dsn",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.files = files
			cfg, err := test.load(t)
			if err != nil {
				t.Fatal(err)
			}
			if got := test.value(cfg); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if got := cfg.Origin(test.option); got != test.origin {
				t.Errorf("got origin %q, want %q", got, test.origin)
			}
		})
	}
}

func slot(c *Config) string { return c.Postgres.Slot }
func dsn(c *Config) string  { return c.Postgres.DSN }

func TestListsFromFlagsAndEnvironment(t *testing.T) {
	t.Parallel()
	cfg, err := world{
		args: []string{
			"--brokers", "a:1,b", "--brokers=[::1]", "--table", "one", "--table", `sales."two,2"`,
			"--topics-create", "--topics-config", "cleanup.policy=compact,delete", "--topics-config", "retention.ms=1",
		},
		environ: []string{"WALPOST_TOPICS_ALLOW= x , y.*,"},
	}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a:1", "b:9092", "[::1]:9092"}, cfg.Kafka.Brokers); diff != "" {
		t.Errorf("brokers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Table{{Schema: "public", Name: "one"}, {Schema: "sales", Name: "two,2"}}, cfg.Postgres.Tables); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "1"}, cfg.Topics.Configs); diff != "" {
		t.Errorf("topic configs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"x", "y.*"}, cfg.Topics.Allow); diff != "" {
		t.Errorf("allowed topics (-want +got):\n%s", diff)
	}
}

// TestRequestFollowsBatch: a larger batch alone needs no second option; a request
// size that is given stays.
func TestRequestFollowsBatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want Size
	}{
		{[]string{"--kafka-max-batch-bytes", "4MB"}, 4e6},
		{[]string{"--kafka-max-batch-bytes", "500kB"}, 1e6},
		{[]string{"--kafka-max-batch-bytes", "4MB", "--kafka-max-request-bytes", "5MB"}, 5e6},
	} {
		cfg, err := world{args: append(tt.args, "--brokers", "a:1")}.load(t)
		if err != nil {
			t.Fatalf("%v: %v", tt.args, err)
		}
		if got := cfg.Kafka.MaxRequestBytes; got != tt.want {
			t.Errorf("%v: a request of %v, want %v", tt.args, got, tt.want)
		}
	}
}

func TestFaultsOutsideTheFile(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		world
		want []string
	}{
		"flag": {
			world{args: []string{"--status-interval", "soon"}},
			[]string{`--status-interval: "soon" is not a duration`, "write a number with a unit: 500ms, 10s, 2m"},
		},
		"environment": {
			world{environ: []string{"WALPOST_KAFKA_TLS=maybe"}},
			[]string{`WALPOST_KAFKA_TLS: "maybe" is neither true nor false`, "write true or false"},
		},
		"empty list": {
			world{args: []string{"--brokers="}},
			[]string{"--brokers: the list is empty", "name at least one"},
		},
		"not a setting": {
			world{args: []string{"--topics-config=compact"}},
			[]string{`--topics-config: "compact" is not a setting`, "write name=value, such as min.insync.replicas=2"},
		},
		"flag and file flag": {
			world{args: []string{"--dsn=host=db", "--dsn-file=x"}},
			[]string{"--dsn and --dsn-file are both set", "keep one of them"},
		},
		"variable and file variable": {
			world{environ: []string{"WALPOST_DSN=host=db", "WALPOST_DSN_FILE=x"}},
			[]string{"WALPOST_DSN and WALPOST_DSN_FILE are both set", "keep one of them"},
		},
		"secret file": {
			world{environ: []string{"WALPOST_DSN_FILE=x"}},
			[]string{"WALPOST_DSN_FILE: open x: file does not exist", "name a file that exists and can be read"},
		},
		"broken secret from a file": {
			world{environ: []string{"WALPOST_DSN_FILE=dsn"}, files: map[string]string{"dsn": "postgres://u:hunter2@[::1/x"}},
			[]string{"WALPOST_DSN_FILE: the DSN cannot be read: it is neither a URL nor a list of keyword=value", `write it as "postgres://user@host:5432/database?sslmode=verify-full" or "host=… dbname=… user=…"; in a URL, escape : / ? # @ of a password as %3A %2F %3F %23 %40`},
		},
		"configuration file": {
			world{args: []string{"--config=x"}, need: NeedPostgres | NeedSink},
			[]string{"--config: open x: file does not exist", "name a file that exists and can be read"},
		},
		"nothing that is needed": {
			world{need: NeedPostgres | NeedSink},
			[]string{
				"postgres.dsn: no PostgreSQL server is named", "set --dsn-file, WALPOST_DSN or --dsn; or libpq's PGHOST or PGSERVICE",
				"kafka.brokers: at least one broker is required", "set --brokers or WALPOST_BROKERS to host:port",
			},
		},
		"contradiction between layers": {
			world{args: []string{"--kafka-sasl-mechanism=plain"}, environ: []string{"WALPOST_KAFKA_SASL_USERNAME=u", "WALPOST_KAFKA_SASL_PASSWORD=hunter2"}},
			[]string{
				"--kafka-sasl-mechanism: PLAIN without TLS sends the password readable to everybody on the way",
				"set kafka.tls.enabled, or kafka.sasl.allow_plaintext if you accept that",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := test.load(t)
			var errs Errors
			if !errors.As(err, &errs) {
				t.Fatalf("got error %v, want Errors", err)
			}
			var got []string
			for _, e := range errs {
				got = append(got, e.Error(), e.Hint())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("lines differ (-want +got):\n%s", diff)
			}
			if errs.ExitCode() != 2 {
				t.Errorf("got exit code %d, want 2", errs.ExitCode())
			}
		})
	}
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	tests := map[string]world{
		"no brokers for stdout":     {args: []string{"--sink=stdout"}, need: NeedSink},
		"brokers too":               {args: []string{"--sink=stdout", "--brokers=k"}, need: NeedSink},
		"host from libpq":           {environ: []string{"PGHOST=db"}, need: NeedPostgres},
		"service from libpq":        {environ: []string{"PGSERVICE=shop"}, need: NeedPostgres},
		"plain text, knowingly":     {args: []string{"--kafka-sasl-mechanism=PLAIN", "--kafka-sasl-username=u", "--kafka-sasl-allow-plaintext"}, environ: []string{"WALPOST_KAFKA_SASL_PASSWORD=p"}},
		"scram without TLS":         {args: []string{"--kafka-sasl-mechanism=SCRAM-SHA-256", "--kafka-sasl-username=u", "--kafka-sasl-password-file=p"}, files: map[string]string{"p": "p\n"}},
		"a Unix socket":             {args: []string{"--dsn=host=/var/run/postgresql dbname=shop"}},
		"percent-encoded password":  {args: []string{"--dsn=postgres://u:p%40ss@db/shop"}},
		"several hosts":             {args: []string{"--dsn=postgres://u@a:1,b:2/shop?target_session_attrs=read-write"}},
		"probes on a free port":     {args: []string{"--admin-listen=127.0.0.1:0"}},
		"probes off, by an empty":   {args: []string{"--admin-listen="}},
		"nothing in the file":       {files: map[string]string{"walpost.yaml": "# nothing\n"}},
		"section without a value":   {files: map[string]string{"walpost.yaml": "kafka:\nsink: stdout\n"}},
		"false where TLS is not on": {args: []string{"--kafka-tls-insecure-skip-verify=false"}},
	}
	for name, w := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := w.load(t); err != nil {
				t.Errorf("got error %v, want none", err)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	cfg, err := world{
		args: []string{"--kafka-tls", "--kafka-tls-insecure-skip-verify"},
		environ: []string{
			"WALPOST_BROKER=kafka:9092", "WALPOST_DSN_FLIE=x",
			// What Kubernetes and the tests set is no misspelling.
			"WALPOST_SERVICE_HOST=10.0.0.1", "WALPOST_PORT=tcp://10.0.0.1:8642", "WALPOST_TEST_DSN=x",
		},
	}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	want := []Warning{
		{"environment variable WALPOST_BROKER is not used", "did you mean WALPOST_BROKERS?"},
		{"environment variable WALPOST_DSN_FLIE is not used", "did you mean WALPOST_DSN_FILE?"},
		{"the brokers' certificates are not verified", "remove kafka.tls.insecure_skip_verify and name the authority with kafka.tls.ca_file"},
	}
	if diff := cmp.Diff(want, cfg.Warnings); diff != "" {
		t.Errorf("warnings differ (-want +got):\n%s", diff)
	}
}

// The real files: a certificate that fits its key, and one that does not.
func TestCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := newPair(t, dir, "one"), newPair(t, dir, "two")
	load := func(cert, key string) (*Config, error) {
		return Load(Sources{
			Environ: []string{
				"WALPOST_KAFKA_TLS=true", "WALPOST_KAFKA_TLS_CA_FILE=" + one + ".pem",
				"WALPOST_KAFKA_TLS_CERT_FILE=" + cert, "WALPOST_KAFKA_TLS_KEY_FILE=" + key,
			},
			ReadFile: os.ReadFile,
		})
	}
	cfg, err := load(one+".pem", one+".key")
	if err != nil {
		t.Fatalf("got error %v, want none", err)
	}
	client, err := cfg.Kafka.TLS.ClientConfig(os.ReadFile)
	if err != nil || client.RootCAs == nil || client.MinVersion != tls.VersionTLS12 || client.InsecureSkipVerify {
		t.Fatalf("got %+v, error %v", client, err)
	}
	// A replaced certificate is used at the next connection.
	first, err := client.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	newPair(t, dir, "one")
	second, err := client.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(first.Certificate[0], second.Certificate[0]) {
		t.Error("the replaced certificate is not used")
	}
	if off, err := (&TLS{}).ClientConfig(os.ReadFile); off != nil || err != nil {
		t.Errorf("not enabled: got %v, error %v, want none", off, err)
	}

	_, err = load(one+".pem", two+".key")
	want := "WALPOST_KAFKA_TLS_CERT_FILE: certificate " + one + ".pem and key " + two +
		".key do not make a pair: tls: private key does not match public key"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestForeignValuesTakeTheDefaultsPlace(t *testing.T) {
	t.Parallel()
	files := map[string]string{"walpost.yaml": "postgres:\n  publication: mine\ndebezium:\n  properties:\n    topic.prefix: app\n    transforms: outbox, second\n"}
	read := func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	var seen Debezium
	c, err := Load(Sources{Environ: []string{"WALPOST_DSN=postgres://env"}, ReadFile: read, Foreign: func(d Debezium) ([]Value, []Warning, error) {
		seen = d
		return []Value{
			{"postgres.slot", "debezium", "connector.json:4"},
			{"postgres.publication", "dbz_publication", "connector.json:5"},
			{"postgres.dsn", "postgres://connector", "connector.json:6"},
			{"kafka.brokers", "k1:9092,k2:9092", "worker.properties:1"},
		}, []Warning{{"tasks.max is ignored", ""}}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if seen.Properties["transforms"] != "outbox, second" || seen.PropertiesOrigin != "walpost.yaml:4" || seen.Version != "3.6" || !seen.ContextHeaders {
		t.Errorf("the connector's part is %+v", seen)
	}
	if c.Postgres.Slot != "debezium" || c.Postgres.Publication != "mine" || c.Postgres.DSN != "postgres://env" || len(c.Kafka.Brokers) != 2 || len(c.Warnings) != 1 {
		t.Errorf("got %+v, brokers %v, warnings %v", c.Postgres, c.Kafka.Brokers, c.Warnings)
	}
	if c.Origin("postgres.slot") != "connector.json:4" {
		t.Errorf("origin of the slot is %q", c.Origin("postgres.slot"))
	}
	for text, want := range map[string]string{
		"debezium:\n  worker: w.properties\n":                                          `walpost.yaml:2: debezium.worker: set, but no connector is`,
		"debezium:\n  config: c.json\n  properties: {a: b}\n":                          `walpost.yaml:2: debezium.config: debezium.properties is set too`,
		"topic: x\ndebezium:\n  config: c.json\n":                                      `walpost.yaml:1: topic: set together with a Debezium connector, whose route.* options name the topics`,
		"postgres: {tables: [{name: a, columns: {id: x}}]}\ndebezium: {config: c.j}\n": `walpost.yaml:1: postgres.tables: public.a: columns and headers are mapped together with a Debezium connector, which maps them itself`,
	} {
		files["walpost.yaml"] = text
		_, err := Load(Sources{ReadFile: read, Foreign: func(Debezium) ([]Value, []Warning, error) { return nil, nil, nil }})
		if err == nil || err.Error() != want {
			t.Errorf("%q: error is\n%v, want\n%s", text, err, want)
		}
	}
}
