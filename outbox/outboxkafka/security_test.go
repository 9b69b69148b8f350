package outboxkafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
)

// TestSecurity: TLS and SASL of the dialer are those of every connection, and a
// refused password ends Run instead of being tried for ever.
func TestSecurity(t *testing.T) {
	t.Parallel()
	cluster := testkit.PrivateKafka(t, kafkaserver.Options{SASL: true, TLS: true})
	r := setupOn(t, cluster.Addr(), 1)
	r.publish(r.some(1, 3)...)
	r.brokers = cluster.SASLTLSAddr()

	pem, err := os.ReadFile(cluster.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		t.Fatal("no certificate")
	}
	mechanism, err := scram.Mechanism(scram.SHA512, kafkaserver.User, kafkaserver.Password)
	if err != nil {
		t.Fatal(err)
	}
	secure := &tls.Config{RootCAs: roots}
	m := r.start(Options{Dialer: &kafka.Dialer{TLS: secure, SASLMechanism: mechanism}})
	r.awaitEffects(3)
	m.stop()
	r.check(3)

	runner, err := New(Options{
		Brokers: r.brokers, Group: r.group, Topics: []string{r.topic}, Consumer: m.opt.Consumer, Handler: effect,
		Dialer: &kafka.Dialer{TLS: secure, SASLMechanism: plain.Mechanism{Username: kafkaserver.User, Password: "wrong"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = runner.Run(testkit.Context(t))
	var hinted interface{ Hint() string }
	if !errors.Is(err, kafka.SASLAuthenticationFailed) || !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), "password") {
		t.Errorf("with a wrong password: %v", err)
	}
}
