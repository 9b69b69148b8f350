package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/certs"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
)

// TestKafkaSecurity: each listener with what is right for it, and with what is
// wrong, which is said and mended without a restart where that is possible.
func TestKafkaSecurity(t *testing.T) {
	t.Parallel()
	cluster := privateKafka(t, kafkaserver.Options{SASL: true, TLS: true, Authorizer: true})
	otherCA, err := certs.Write(t.TempDir(), kafkaserver.User)
	need(t, err)
	const wrong = "not-the-secret-7391"
	password := func(text string) string {
		file := filepath.Join(t.TempDir(), "password")
		need(t, os.WriteFile(file, []byte(text+"\n"), 0o600))
		return file
	}
	right, bad := password(kafkaserver.Password), password(wrong)
	login := func(mechanism, file string) []string {
		flags := []string{"--kafka-sasl-mechanism", mechanism, "--kafka-sasl-username", kafkaserver.User, "--kafka-sasl-password-file", file}
		if mechanism == "PLAIN" {
			flags = append(flags, "--kafka-sasl-allow-plaintext")
		}
		return flags
	}
	tls := []string{"--kafka-tls", "--kafka-tls-ca-file", cluster.CAFile()}
	with := func(parts ...[]string) (all []string) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	type listener = func() []string
	for _, c := range []struct {
		name  string
		at    listener
		flags []string
		// Of what is wrong; empty when it is right.
		reason, detail, hint string
	}{
		{name: "plain", at: cluster.SASLAddr, flags: login("PLAIN", right)},
		{name: "scram 256", at: cluster.SASLAddr, flags: login("SCRAM-SHA-256", right)},
		{name: "scram 512", at: cluster.SASLAddr, flags: login("SCRAM-SHA-512", right)},
		{name: "tls", at: cluster.TLSAddr, flags: tls},
		{name: "mtls", at: cluster.TLSAddr, flags: with(tls, []string{"--kafka-tls-cert-file", cluster.ClientCert(), "--kafka-tls-key-file", cluster.ClientKey()})},
		{name: "plain over tls", at: cluster.SASLTLSAddr, flags: with(tls, login("PLAIN", right))},
		{name: "scram 512 over tls", at: cluster.SASLTLSAddr, flags: with(tls, login("SCRAM-SHA-512", right))},

		{"plain, wrong password", cluster.SASLAddr, login("PLAIN", bad), "kafka_refuses", "SASL_AUTHENTICATION_FAILED", "password"},
		{"scram 256, wrong password", cluster.SASLAddr, login("SCRAM-SHA-256", bad), "kafka_refuses", "SASL_AUTHENTICATION_FAILED", "password"},
		{"scram 512, wrong password, tls", cluster.SASLTLSAddr, with(tls, login("SCRAM-SHA-512", bad)), "kafka_refuses", "SASL_AUTHENTICATION_FAILED", "password"},
		{"wrong authority", cluster.TLSAddr, []string{"--kafka-tls", "--kafka-tls-ca-file", otherCA.CA}, "kafka_refuses", "tls", "the CA"},
		{"wrong server name", cluster.TLSAddr, with(tls, []string{"--kafka-tls-server-name", "kafka.example"}), "kafka_refuses", "kafka.example", "server name"},
		{"foreign client certificate", cluster.TLSAddr, with(tls, []string{"--kafka-tls-cert-file", otherCA.ClientCert, "--kafka-tls-key-file", otherCA.ClientKey}), "kafka_refuses", "tls", "kafka.tls"},
		{"tls to a plain port", cluster.Addr, tls, "kafka_unreachable", "connection", "kafka.tls"},
		{"no tls to a tls port", cluster.TLSAddr, nil, "kafka_refuses", "expecting TLS", "kafka.tls"},
		{"no sasl to a sasl port", cluster.SASLAddr, nil, "kafka_unreachable", "connection", "SASL"},
		{"sasl to a plain port", cluster.Addr, login("SCRAM-SHA-256", right), "kafka_refuses", "SASL", "SASL"},
	} {
		// One after the other: all in parallel they would be more than the
		// machine, and the rest of the suite, can take.
		t.Run(c.name, func(t *testing.T) {
			o := newOutboxAt(t, testkit.Postgres(t, kafkaMajor).NewDB(t), cluster.Addr())
			o.createTopic("order")
			allow(t, cluster, "User:"+kafkaserver.User, o.topic("order"), kafka.ACLOperationTypeWrite)
			allow(t, cluster, "User:CN="+kafkaserver.User, o.topic("order"), kafka.ACLOperationTypeWrite)
			o.insertMany("order", 1, 10, 3)
			r := o.startAt(c.at(), c.flags...)
			if c.reason == "" {
				r.awaitPublished(10)
				r.awaitReady()
				r.stop()
				o.noRepeats("order", 10)
			} else {
				s := r.awaitReason(c.reason)
				if s.State != "holding" || !strings.Contains(value(s.Detail), c.detail) || !strings.Contains(value(s.Hint), c.hint) {
					t.Errorf("state %s\ndetail %q, want something of %q\nhint %q, want something of %q", s.State, value(s.Detail), c.detail, value(s.Hint), c.hint)
				}
				r.probesWhileHolding(c.reason)
				if s.Published.Events != 0 {
					t.Errorf("%d events published", s.Published.Events)
				}
				_, body := r.code("/status.json")
				_, metrics := r.code("/metrics")
				r.kill()
				for _, secret := range []string{wrong, kafkaserver.Password} {
					if strings.Contains(r.logText()+body+metrics, secret) {
						t.Errorf("the password is in log, status or metrics")
					}
				}
			}
		})
	}
	t.Run("acl", func(t *testing.T) { testACL(t, cluster, login("SCRAM-SHA-256", right)) })
}

// startAt starts the relay with other brokers than the test uses: the flag adds
// to the list.
func (o *outbox) startAt(brokers []string, flags ...string) *relay {
	o.t.Helper()
	mine := o.brokers
	defer func() { o.brokers = mine }()
	o.brokers = brokers
	return o.start(flags...)
}

// testACL: WRITE is missing on one topic of two.
func testACL(t *testing.T, cluster *kafkaserver.Cluster, login []string) {
	o := newOutboxAt(t, testkit.Postgres(t, kafkaMajor).NewDB(t), cluster.Addr())
	user := "User:" + kafkaserver.User
	open, closed := o.createTopic("open"), o.createTopic("closed")
	allow(t, cluster, user, open, kafka.ACLOperationTypeWrite)
	allow(t, cluster, user, closed, kafka.ACLOperationTypeDescribe)
	r := o.startAt(cluster.SASLAddr(), login...)
	o.insertMany("open", 1, 20, 3)
	r.awaitPublished(20)
	o.insertMany("closed", 1, 30, 3)
	behind := o.walNow()
	o.insertMany("open", 21, 20, 3)
	s := r.awaitReason("kafka_refuses")
	h, ok := holdOf(s, closed, "TOPIC_AUTHORIZATION_FAILED")
	if !ok || s.State != "holding" || h.Class != "permanent" || !strings.Contains(value(h.Hint), "WRITE") {
		t.Errorf("state %s, holds %+v", s.State, s.Holds)
	}
	r.probesWhileHolding("kafka_refuses")
	r.await("events of the other topic", func(s admin.Status) bool { return s.Published.Events == 40 })
	o.noRepeats("open", 40)
	if got := o.read("closed"); len(got) != 0 {
		t.Errorf("%d records in the closed topic", len(got))
	}
	o.confirmedBelow(behind)
	allow(t, cluster, user, closed, kafka.ACLOperationTypeWrite)
	r.awaitPublished(70)
	r.awaitReady()
	if n := r.metric("walpost_publish_errors_total"); n >= 40 {
		t.Errorf("%.0f refused batches: the relay hammers the broker", n)
	}
	o.awaitConfirmed()
	r.stop()
	o.noRepeats("closed", 30)
}

// allow lets a principal do something with a topic.
func allow(t *testing.T, cluster *kafkaserver.Cluster, principal, name string, operation kafka.ACLOperationType) {
	t.Helper()
	allowOn(t, cluster, kafka.ResourceTypeTopic, principal, name, operation)
}

// allowOn is allow for any kind of resource.
func allowOn(t *testing.T, cluster *kafkaserver.Cluster, kind kafka.ResourceType, principal, name string, operation kafka.ACLOperationType) {
	t.Helper()
	client := kafkaAdmin(t, cluster.Addr())
	// A starved broker is out of its own cluster for a moment.
	testkit.Await(t, "an ACL", func() bool {
		resp, err := client.CreateACLs(testkit.Context(t), &kafka.CreateACLsRequest{ACLs: []kafka.ACLEntry{{
			ResourceType: kind, ResourceName: name, ResourcePatternType: kafka.PatternTypeLiteral,
			Principal: principal, Host: "*", Operation: operation, PermissionType: kafka.ACLPermissionTypeAllow,
		}}})
		return err == nil && errors.Join(resp.Errors...) == nil
	})
}
