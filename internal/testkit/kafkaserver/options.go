package kafkaserver

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Version is the Kafka that is started, as pinned in the pom.
const Version = "4.4.0"

// User and Password are what the SASL listeners know, with PLAIN, SCRAM-SHA-256
// and SCRAM-SHA-512. User is also the common name of the client certificate.
const (
	User     = "walpost"
	Password = "walpost-secret"
)

// Options says what cluster to start.
type Options struct {
	// Brokers is how many; 0 means 1.
	Brokers int
	// Settings are added to each broker's properties and win over our own.
	Settings map[string]string
	// AutoCreateTopics lets clients create topics by using them.
	AutoCreateTopics bool
	// SASL adds a SASL_PLAINTEXT listener, TLS an SSL listener (which asks for
	// a client certificate but takes clients without), both a SASL_SSL one too.
	SASL, TLS bool
	// Authorizer turns on ACLs: the plain listeners' anonymous clients may do
	// everything, others what an ACL allows.
	Authorizer bool
	// Proxied puts a proxy in front of each broker's plain listener, and
	// advertises it. See Cluster.Proxy.
	Proxied bool
	// Throughput lets the JVM compile all the way and gives it more memory: for
	// benchmarks. It starts more slowly.
	Throughput bool
	// Log receives what is worth saying; nil drops it.
	Log func(format string, args ...any)
}

// properties returns the configuration of a broker.
func (c *Cluster) properties(b *broker) string {
	n := len(c.brokers)
	quorum := (n + 1) / 2
	var voters []string
	for _, other := range c.brokers {
		voters = append(voters, fmt.Sprintf("%d@%s", other.id, other.addr(controller)))
	}
	var listeners, advertised, protocols []string
	for _, l := range c.listeners() {
		listeners = append(listeners, string(l)+"://"+b.addr(l))
		protocols = append(protocols, string(l)+":"+l.protocol())
		switch {
		case l == plaintext && b.proxy != nil:
			advertised = append(advertised, string(l)+"://"+b.proxy.Addr())
		case l != controller:
			advertised = append(advertised, string(l)+"://"+b.addr(l))
		}
	}
	p := map[string]string{
		"process.roles":                                    "broker,controller",
		"node.id":                                          fmt.Sprint(b.id),
		"controller.quorum.voters":                         strings.Join(voters, ","),
		"listeners":                                        strings.Join(listeners, ","),
		"advertised.listeners":                             strings.Join(advertised, ","),
		"listener.security.protocol.map":                   strings.Join(protocols, ","),
		"controller.listener.names":                        string(controller),
		"inter.broker.listener.name":                       string(replication),
		"log.dirs":                                         b.data,
		"num.partitions":                                   "12",
		"default.replication.factor":                       fmt.Sprint(n),
		"min.insync.replicas":                              fmt.Sprint(quorum),
		"offsets.topic.replication.factor":                 fmt.Sprint(n),
		"offsets.topic.num.partitions":                     "4",
		"transaction.state.log.replication.factor":         fmt.Sprint(n),
		"transaction.state.log.min.isr":                    fmt.Sprint(quorum),
		"transaction.state.log.num.partitions":             "4",
		"share.coordinator.state.topic.num.partitions":     "4",
		"share.coordinator.state.topic.replication.factor": fmt.Sprint(n),
		"share.coordinator.state.topic.min.isr":            fmt.Sprint(quorum),
		"group.initial.rebalance.delay.ms":                 "0",
		// A broker that was killed cannot register again before its session has
		// ended, and nobody leads its partitions meanwhile.
		"broker.session.timeout.ms":    "3000",
		"broker.heartbeat.interval.ms": "500",
		"auto.create.topics.enable":    fmt.Sprint(c.opts.AutoCreateTopics),
		// The age of a record is that of its timestamp, which tests choose: with the
		// default of seven days, one from 1970 is gone 30 seconds after the start.
		"log.retention.ms":               "-1",
		"log.cleaner.dedupe.buffer.size": "8388608", // of 128 MiB, more than a third of the heap
	}
	if c.opts.SASL {
		scram := "org.apache.kafka.common.security.scram.ScramLoginModule required;"
		plain := fmt.Sprintf("org.apache.kafka.common.security.plain.PlainLoginModule required user_%s=%q;", User, Password)
		p["sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
		for _, l := range []listener{saslPlaintext, saslTLS} {
			prefix := "listener.name." + strings.ToLower(string(l))
			p[prefix+".plain.sasl.jaas.config"] = plain
			p[prefix+".scram-sha-256.sasl.jaas.config"] = scram
			p[prefix+".scram-sha-512.sasl.jaas.config"] = scram
		}
	}
	if c.opts.TLS {
		p["ssl.keystore.type"] = "PEM"
		p["ssl.keystore.location"] = c.certs.ServerPEM
		p["ssl.truststore.type"] = "PEM"
		p["ssl.truststore.location"] = c.certs.CA
		p["ssl.client.auth"] = "requested"
	}
	if c.opts.Authorizer {
		p["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
		p["super.users"] = "User:ANONYMOUS"
		p["allow.everyone.if.no.acl.found"] = "false"
	}
	maps.Copy(p, c.opts.Settings)
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&out, "%s=%s\n", name, strings.ReplaceAll(p[name], `\`, `\\`))
	}
	return out.String()
}

// listener is the name of one.
type listener string

const (
	plaintext     listener = "PLAINTEXT"
	replication   listener = "REPLICATION"
	controller    listener = "CONTROLLER"
	saslPlaintext listener = "SASL_PLAINTEXT"
	tlsOnly       listener = "SSL"
	saslTLS       listener = "SASL_SSL"
)

func (l listener) protocol() string {
	if l == replication || l == controller {
		return string(plaintext)
	}
	return string(l)
}

func (c *Cluster) listeners() []listener {
	all := []listener{plaintext, replication, controller}
	if c.opts.SASL {
		all = append(all, saslPlaintext)
	}
	if c.opts.TLS {
		all = append(all, tlsOnly)
	}
	if c.opts.SASL && c.opts.TLS {
		all = append(all, saslTLS)
	}
	return all
}

func (c *Cluster) path(name string) string { return filepath.Join(c.dir.Path, name) }
