package connector

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Overlay is a value for one of walpost's own options.
type Overlay struct {
	Name   string // of the option, such as kafka.brokers
	Text   string // the value, in the form that a flag takes
	Origin string // where it stands
	Key    string // as it is written there
	Secret bool

	raw string
}

// Overlay gives what the connector's configuration means for walpost's own
// options: connection, slot, publication, tables and brokers. Whatever is not in
// it is left to walpost's own configuration.
func (s *Spec) Overlay() []Overlay { return slices.Clone(s.overlay) }

// dsn gives the connection string; the password is left out on demand.
func (d *Database) dsn(password bool) string {
	u := url.URL{Scheme: "postgres", Host: d.Hostname, Path: "/" + d.Name}
	if d.Port != 0 || strings.Contains(d.Hostname, ":") {
		u.Host = net.JoinHostPort(strings.Trim(d.Hostname, "[]"), strconv.Itoa(max(d.Port, 1)))
	}
	if d.User != "" {
		u.User = url.User(d.User)
		if password && d.Password != "" {
			u.User = url.UserPassword(d.User, d.Password)
		}
	}
	q := url.Values{}
	add := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	add("sslmode", d.SSLMode)
	add("sslrootcert", d.SSLRootCert)
	add("sslcert", d.SSLCert)
	add("sslkey", d.SSLKey)
	if password {
		add("sslpassword", d.SSLPassword)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// finish fills in what follows from several keys at once.
func (r *reading) finish() {
	spec := r.spec
	spec.Server, spec.Partial = r.server, r.partial
	spec.Router.Server = r.server
	spec.Router.TaskID, spec.Router.ConnectorName = "0", "postgresql"
	spec.Router.Modes = spec.Modes
	spec.Router.MessageTopics = r.value("message.prefix.exclude.list", "") != ".*"
	if r.is("lsn.flush.mode", "connector", "connector_and_driver") && spec.HeartbeatInterval == 0 {
		spec.HeartbeatInterval = idleHeartbeat
	}
	if spec.HeartbeatInterval > 0 {
		spec.Router.HeartbeatTopic = r.heartbeatTopic()
	}
	if spec.SlotRetryDelay == 0 && !r.set("slot.retry.delay.ms") {
		spec.SlotRetryDelay = defaultRetryDelay
	}
	if !r.set("slot.max.retries") {
		spec.SlotRetries = 6
	}
	if host := r.connector.byKey["database.hostname"]; host != nil && spec.Database.Hostname != "" {
		r.over("postgres.dsn", spec.Database.dsn(true), host).Secret = true
	}
	if r.partial || len(spec.Kafka.Brokers) > 0 {
		return
	}
	s := &setting{written: "bootstrap.servers", origin: "default"}
	switch {
	case r.server:
		s.written = serverProducer + "bootstrap.servers"
		if r.set(producerOverride + "bootstrap.servers") {
			return
		}
		r.enter(s, nil, refused("not set, and the producer has no default", "add it, as host:port with commas between"))
	case r.worker.byKey["bootstrap.servers"] == nil && r.producer("bootstrap.servers") == nil:
		r.enter(s, nil, noted("the brokers stand in the worker's file: name it with --worker, or name them with --brokers", ""))
	}
}
