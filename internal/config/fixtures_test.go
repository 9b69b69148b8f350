package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const testDSN = "WALPOST_DSN=postgres://walpost@db/shop"

// loadFixture loads testdata/<name>.yaml as if it were ./walpost.yaml.
func loadFixture(name string, environ ...string) (*Config, error) {
	return Load(Sources{
		Environ: environ,
		Need:    NeedPostgres | NeedSink,
		ReadFile: func(path string) ([]byte, error) {
			if path == DefaultFile {
				path = filepath.Join("testdata", name+".yaml")
			}
			return os.ReadFile(path)
		},
	})
}

// Each file in testdata has one fault. What is expected are the two lines that
// a person sees, for every fault that is reported.
func TestFixtures(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"acks": {
			`walpost.yaml:3: kafka.acks cannot be set`,
			`walpost always waits for all in-sync replicas (acks=all) and nothing weaker exists; remove the key`,
		},
		"admin-listen-port": {
			`walpost.yaml:4: admin.listen: "localhost" is not an address to listen on`,
			`write :8642, 127.0.0.1:8642 or off`,
		},
		"admin-listen": {
			`walpost.yaml:4: admin.listen: expected text, found a number`,
			`write text; in quotes if it looks like a number, a date, true or false`,
		},
		"alias": {
			`walpost.yaml:4: a value begins with *, which YAML takes for an alias`,
			`put the value in quotes`,
		},
		"batch-larger-than-request": {
			`walpost.yaml:3: kafka.max_batch_bytes: a batch of 4MB does not fit into a request of 1MB`,
			`raise kafka.max_request_bytes or lower kafka.max_batch_bytes`,
		},
		"bool-is-text": {
			`walpost.yaml:4: topics.create: expected true or false, found text`,
			`write true or false, without quotes`,
		},
		"broker-ipv6": {
			`walpost.yaml:2: kafka.brokers: "fe80::1" is an IPv6 address without brackets`,
			`write [fe80::1]:9092`,
		},
		"broker-login": {
			`walpost.yaml:2: kafka.brokers: a broker is a host and a port, nothing else`,
			`write host:port, such as kafka-1:9092 or [::1]:9092; a login is kafka.sasl`,
		},
		"broker-port": {
			`walpost.yaml:2: kafka.brokers: "kafka:0" has no port from 1 to 65535`,
			`write host:port, such as kafka-1:9092 or [::1]:9092`,
		},
		"broker-scheme": {
			`walpost.yaml:2: kafka.brokers: a broker has no scheme such as SASL_SSL://`,
			`write host:port, such as kafka-1:9092 or [::1]:9092; TLS is kafka.tls.enabled, a login is kafka.sasl`,
		},
		"comments": {
			`kafka.brokers: at least one broker is required`,
			`set --brokers or WALPOST_BROKERS to host:port`,
		},
		"dsn-at-in-password": {
			`walpost.yaml:4: postgres.dsn: the DSN cannot be read: a host name holds a character that none can have`,
			`write it as "postgres://user@host:5432/database?sslmode=verify-full" or "host=… dbname=… user=…"; in a URL, escape : / ? # @ of a password as %3A %2F %3F %23 %40`,
		},
		"dsn-broken": {
			`walpost.yaml:4: postgres.dsn: the DSN cannot be read: the port is not a number`,
			`write it as "postgres://user@host:5432/database?sslmode=verify-full" or "host=… dbname=… user=…"; in a URL, escape : / ? # @ of a password as %3A %2F %3F %23 %40`,
		},
		"dsn-file-empty": {
			`walpost.yaml:4: postgres.dsn_file: testdata/empty.txt is empty`,
			`write the value into the file`,
		},
		"dsn-file-missing": {
			`walpost.yaml:4: postgres.dsn_file: open testdata/no-such-file: no such file or directory`,
			`name a file that exists and can be read`,
		},
		"dsn-jdbc": {
			`walpost.yaml:4: postgres.dsn: the DSN cannot be read: it is a JDBC URL: remove jdbc: in front, and put user and password before the host`,
			`write it as "postgres://user@host:5432/database?sslmode=verify-full" or "host=… dbname=… user=…"; in a URL, escape : / ? # @ of a password as %3A %2F %3F %23 %40`,
		},
		"dsn-keywords-broken": {
			`walpost.yaml:4: postgres.dsn: the DSN cannot be read: it is neither a URL nor a list of keyword=value`,
			`write it as "postgres://user@host:5432/database?sslmode=verify-full" or "host=… dbname=… user=…"; in a URL, escape : / ? # @ of a password as %3A %2F %3F %23 %40`,
		},
		"dsn-other": {
			`walpost.yaml:4: postgres.dsn: the DSN cannot be read: it does not begin with postgres://`,
			`write it as "postgres://user@host:5432/database?sslmode=verify-full" or "host=… dbname=… user=…"; in a URL, escape : / ? # @ of a password as %3A %2F %3F %23 %40`,
		},
		"dsn-sslmode": {
			`walpost.yaml:4: postgres.dsn: the DSN cannot be read: sslmode is none of disable, allow, prefer, require, verify-ca, verify-full`,
			`write it as "postgres://user@host:5432/database?sslmode=verify-full" or "host=… dbname=… user=…"; in a URL, escape : / ? # @ of a password as %3A %2F %3F %23 %40`,
		},
		"dsn-twice": {
			`walpost.yaml:4: postgres.dsn and postgres.dsn_file on line 5 are both set`,
			`keep one of them`,
		},
		"duplicate-key": {
			`walpost.yaml:4: key "kafka.client_id" is given twice, first on line 3`,
			`keep one of them`,
		},
		"duplicate-section": {
			`walpost.yaml:5: key "kafka" is given twice, first on line 1`,
			`keep one of them`,
		},
		"duration-is-number": {
			`walpost.yaml:4: relay.drain_timeout: expected a duration, found a number`,
			`write a number with a unit: 500ms, 10s, 2m`,
		},
		"duration-negative": {
			`walpost.yaml:4: relay.drain_timeout: must be more than zero, is -1s`,
			`write a number with a unit: 500ms, 10s, 2m`,
		},
		"duration-unit": {
			`walpost.yaml:4: relay.drain_timeout: "20 seconds" is not a duration`,
			`write a number with a unit: 500ms, 10s, 2m`,
		},
		"empty-brokers": {
			`walpost.yaml:2: kafka.brokers: the list is empty`,
			`name at least one, or remove the key`,
		},
		"enum-far": {
			`walpost.yaml:3: sink: unknown value "rabbitmq"`,
			`one of kafka, stdout`,
		},
		"enum": {
			`walpost.yaml:3: kafka.compression: unknown value "zstdd"`,
			`did you mean "zstd"?`,
		},
		"everything-wrong": {
			`walpost.yaml:6: unknown key "kafka.linger"`,
			`see "walpost config reference" for all keys`,
			`walpost.yaml:3: postgres.tables[0]: "a.b.c" is not a table name`,
			`write schema.table; a name with a dot or a comma in it goes in double quotes: sales."out.box"`,
			`walpost.yaml:5: kafka.compression: unknown value "brotli"`,
			`one of none, gzip, snappy, lz4, zstd`,
			`walpost.yaml:8: relay.drain_timeout: must be more than zero, is 0s`,
			`write a number with a unit: 500ms, 10s, 2m`,
			`walpost.yaml:2: postgres.slot: "Orders" is not a slot name`,
			`use a-z, 0-9 and _, at most 63 of them`,
		},
		"header-id": {
			`walpost.yaml:4: postgres.tables: sales.outbox: header id is always there`,
			`give the header of column id another name`,
		},
		"header-twice": {
			`walpost.yaml:4: postgres.tables: sales.outbox: header tenant is listed twice`,
			`keep one of them`,
		},
		"header-without-column": {
			`walpost.yaml:8: postgres.tables[0].headers[1]: the header has no column`,
			`add column: name`,
		},
		"int-is-text": {
			`walpost.yaml:5: topics.partitions: expected a whole number, found text`,
			`write digits only, without quotes`,
		},
		"int-out-of-range": {
			`walpost.yaml:5: topics.partitions: 0 is out of range`,
			`use a number from 1, or -1 for the broker's default`,
		},
		"key-without-section": {
			`walpost.yaml:1: unknown key "brokers"`,
			`did you mean "kafka.brokers"?`,
		},
		"known-alias": {
			`walpost.yaml:5: postgres.slot: YAML aliases are not supported`,
			`write the value out, or put it in quotes if it begins with *`,
		},
		"list-is-text": {
			`walpost.yaml:2: kafka.brokers: expected a list, found text`,
			`write a list: brokers: [one, two]`,
		},
		"merge": {
			`walpost.yaml:3: kafka: expected a plain key`,
			`write key: value; anchors and merges are not used`,
		},
		"no-brokers": {
			`kafka.brokers: at least one broker is required`,
			`set --brokers or WALPOST_BROKERS to host:port`,
		},
		"not-yaml": {
			`walpost.yaml:2: not valid YAML: did not find expected key`,
			`check indentation and quotes; a value with : or # in it goes in quotes`,
		},
		"publication-name": {
			`walpost.yaml:4: postgres.publication: must not be empty`,
			`give it a name`,
		},
		"sasl-mechanism": {
			`walpost.yaml:4: kafka.sasl.mechanism: unknown value "SCRAM-SHA-521"`,
			`did you mean "SCRAM-SHA-512"?`,
		},
		"sasl-plain-without-tls": {
			`walpost.yaml:4: kafka.sasl.mechanism: PLAIN without TLS sends the password readable to everybody on the way`,
			`set kafka.tls.enabled, or kafka.sasl.allow_plaintext if you accept that`,
		},
		"sasl-user-without-mechanism": {
			`walpost.yaml:4: kafka.sasl.username: set, but kafka.sasl.mechanism is not`,
			`set it to PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512`,
		},
		"sasl-without-password": {
			`kafka.sasl.password: SCRAM-SHA-256 needs a password`,
			`set --kafka-sasl-password-file or WALPOST_KAFKA_SASL_PASSWORD`,
		},
		"secret-is-number": {
			`walpost.yaml:6: kafka.sasl.password: expected text, found a number`,
			`write text; in quotes if it looks like a number, a date, true or false`,
		},
		"section-is-text": {
			`walpost.yaml:1: kafka: expected keys and values, found text`,
			`write key: value, one a line, indented below it`,
		},
		"size-small": {
			`walpost.yaml:4: relay.in_flight_bytes: 512KiB is less than 1MiB`,
			`use 1MiB or more; 6MiB is the default`,
		},
		"size-unit": {
			`walpost.yaml:4: relay.in_flight_bytes: "32 megabytes" is not a size`,
			`write a number of bytes, or one with a unit: 1000000, 16MB, 32MiB`,
		},
		"slot-name": {
			`walpost.yaml:4: postgres.slot: "Orders-Outbox" is not a slot name`,
			`use a-z, 0-9 and _, at most 63 of them`,
		},
		"poll-interval": {
			`walpost.yaml:4: postgres.poll_interval: 2m is more than 60s`,
			`a publication that breaks must be noticed; use 60s or less`,
		},
		"status-interval": {
			`walpost.yaml:4: postgres.status_interval: 30s is more than 10s`,
			`PostgreSQL ends a connection that stays silent; use 10s or less`,
		},
		"table-name": {
			`walpost.yaml:4: postgres.tables[0]: "db.public.outbox" is not a table name`,
			`write schema.table; a name with a dot or a comma in it goes in double quotes: sales."out.box"`,
		},
		"table-twice": {
			`walpost.yaml:4: postgres.tables: public.outbox is listed twice`,
			`keep one of them`,
		},
		"table-unknown-column": {
			`walpost.yaml:7: unknown key "postgres.tables[0].columns.aggregat_id"`,
			`did you mean "aggregate_id"?`,
		},
		"table-unknown-key": {
			`walpost.yaml:6: unknown key "postgres.tables[0].filter"`,
			`keys here: name, columns, headers`,
		},
		"table-without-name": {
			`walpost.yaml:5: postgres.tables[0]: the table has no name`,
			`add name: schema.table`,
		},
		"text-is-nothing": {
			`walpost.yaml:4: postgres.slot: expected text, found nothing`,
			`write text; in quotes if it looks like a number, a date, true or false`,
		},
		"text-is-number": {
			`walpost.yaml:4: postgres.slot: expected text, found a number`,
			`write text; in quotes if it looks like a number, a date, true or false`,
		},
		"tls-ca-missing": {
			`walpost.yaml:5: kafka.tls.ca_file: open testdata/no-such-file: no such file or directory`,
			`name a readable PEM file that begins with -----BEGIN CERTIFICATE-----`,
		},
		"tls-ca-not-pem": {
			`walpost.yaml:5: kafka.tls.ca_file: read testdata/secret.txt: no certificate in it`,
			`name a readable PEM file that begins with -----BEGIN CERTIFICATE-----`,
		},
		"tls-cert-without-key": {
			`walpost.yaml:5: kafka.tls.cert_file: set, but kafka.tls.key_file is not`,
			`name the file with the certificate's key`,
		},
		"tls-key-without-cert": {
			`walpost.yaml:5: kafka.tls.key_file: set, but kafka.tls.cert_file is not`,
			`name the file with the key's certificate`,
		},
		"tls-not-enabled": {
			`walpost.yaml:4: kafka.tls.ca_file: set, but kafka.tls.enabled is not`,
			`set kafka.tls.enabled, or remove this`,
		},
		"tls-pair-not-pem": {
			`walpost.yaml:5: kafka.tls.cert_file: certificate testdata/secret.txt and key testdata/secret.txt do not make a pair: tls: failed to find any PEM data in certificate input`,
			`cert_file holds the client's certificate first, then its chain; key_file its key, not encrypted; both as PEM`,
		},
		"top-level-list": {
			`walpost.yaml:1: the file: expected keys and values, found a list`,
			`write key: value, one a line, indented below it`,
		},
		"topic-empty": {
			`walpost.yaml:3: topic: must not be empty`,
			`write a name, such as outbox.event.<aggregate_type>`,
		},
		"topic-list": {
			`walpost.yaml:3: topic: expected text, found a list`,
			`write text; in quotes if it looks like a number, a date, true or false`,
		},
		"topics-allow": {
			`walpost.yaml:4: topics.allow: "outbox.[a-" is not a pattern`,
			`write a topic's name, or a pattern with *, ? and [a-z]`,
		},
		"topics-config-list": {
			`walpost.yaml:6: topics.configs.cleanup.policy: expected one value, found a list`,
			`write name: value`,
		},
		"topics-not-created": {
			`walpost.yaml:4: topics.partitions: set, but topics.create is not`,
			`set topics.create, or remove this`,
		},
		"two-documents": {
			`walpost.yaml:3: a second YAML document begins here`,
			`put everything in one document`,
		},
		"unknown-key-far": {
			`walpost.yaml:3: unknown key "kafka.zookeeper_quorum"`,
			`see "walpost config reference" for all keys`,
		},
		"unknown-key": {
			`walpost.yaml:3: unknown key "kafka.compresion"`,
			`did you mean "kafka.compression"?`,
		},
		"unknown-section": {
			`walpost.yaml:1: unknown key "kafak"`,
			`did you mean "kafka"?`,
		},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environ := []string{testDSN}
			if strings.HasPrefix(name, "dsn-") {
				environ = nil // the file's own is what is tested
			}
			_, err := loadFixture(name, environ...)
			var errs Errors
			if !errors.As(err, &errs) {
				t.Fatalf("got error %v, want Errors", err)
			}
			var got []string
			for _, e := range errs {
				got = append(got, e.Error(), e.Hint())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("lines differ (-want +got):\n%s", diff)
			}
			if all := strings.Join(got, "\n"); strings.Contains(all, "hunter2") || strings.Contains(all, "4711007") {
				t.Errorf("a secret is in the text:\n%s", all)
			}
		})
	}
	t.Run("none is left out", func(t *testing.T) {
		t.Parallel()
		files, err := filepath.Glob("testdata/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".yaml")
			if _, ok := tests[name]; !ok && name != "good" {
				t.Errorf("%s is not tested", file)
			}
		}
	})
}
