package kafkaserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"github.com/walpost/walpost/internal/testkit/kafkaserver"
)

func start(t *testing.T, opts kafkaserver.Options) (context.Context, *kafkaserver.Cluster) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs real servers: run without -short")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	opts.Log = t.Logf
	began := time.Now()
	cluster, err := kafkaserver.Start(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %v", time.Since(began))
	t.Cleanup(func() {
		began := time.Now()
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
		t.Logf("closed in %v", time.Since(began))
	})
	return ctx, cluster
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// metadata asks through a transport of its own and returns the broker addresses.
func metadata(ctx context.Context, addr string, transport *kafka.Transport) ([]string, error) {
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(addr), Transport: transport, Timeout: 10 * time.Second}
	response, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	var addrs []string
	for _, b := range response.Brokers {
		addrs = append(addrs, kafka.TCP(b.Host).String())
	}
	return addrs, nil
}

func TestBrokerLifecycle(t *testing.T) {
	t.Parallel()
	ctx, cluster := start(t, kafkaserver.Options{})
	step := func(name string, err error, began time.Time) {
		t.Helper()
		must(t, err)
		t.Logf("%s: %v", name, time.Since(began))
	}
	began := time.Now()
	step("kill", cluster.Kill9(ctx, 0), began)
	began = time.Now()
	step("start again", cluster.StartAgain(ctx), began)
	must(t, cluster.Pause(0))
	frozen, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := metadata(frozen, cluster.Addr()[0], &kafka.Transport{}); err == nil {
		t.Error("a frozen broker answered")
	}
	must(t, cluster.Resume(0))
	_, err := metadata(ctx, cluster.Addr()[0], &kafka.Transport{})
	must(t, err)
	began = time.Now()
	step("term", cluster.Term(ctx, 0), began)
	began = time.Now()
	step("start again", cluster.StartAgain(ctx), began)
}

func TestSecureListeners(t *testing.T) {
	t.Parallel()
	ctx, cluster := start(t, kafkaserver.Options{SASL: true, TLS: true, Authorizer: true})
	pool := x509.NewCertPool()
	ca, err := os.ReadFile(cluster.CAFile())
	must(t, err)
	pool.AppendCertsFromPEM(ca)
	cert, err := tls.LoadX509KeyPair(cluster.ClientCert(), cluster.ClientKey())
	must(t, err)
	trusting := &tls.Config{RootCAs: pool}
	mutual := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}}
	scram256, err := scram.Mechanism(scram.SHA256, kafkaserver.User, kafkaserver.Password)
	must(t, err)
	scram512, err := scram.Mechanism(scram.SHA512, kafkaserver.User, kafkaserver.Password)
	must(t, err)
	wrong, err := scram.Mechanism(scram.SHA512, kafkaserver.User, "wrong")
	must(t, err)

	tests := []struct {
		name string
		addr []string
		tls  *tls.Config
		sasl sasl.Mechanism
		want error
	}{
		{name: "plain", addr: cluster.SASLAddr(), sasl: plain.Mechanism{Username: kafkaserver.User, Password: kafkaserver.Password}},
		{name: "scram 256", addr: cluster.SASLAddr(), sasl: scram256},
		{name: "scram 512", addr: cluster.SASLAddr(), sasl: scram512},
		{name: "wrong password", addr: cluster.SASLAddr(), sasl: wrong, want: kafka.SASLAuthenticationFailed},
		{name: "tls", addr: cluster.TLSAddr(), tls: trusting},
		{name: "mutual tls", addr: cluster.TLSAddr(), tls: mutual},
		{name: "sasl over tls", addr: cluster.SASLTLSAddr(), tls: trusting, sasl: scram512},
	}
	for _, test := range tests {
		_, err := metadata(ctx, test.addr[0], &kafka.Transport{TLS: test.tls, SASL: test.sasl})
		if !errors.Is(err, test.want) {
			t.Errorf("%s: error = %v, want %v", test.name, err, test.want)
		}
	}
}
