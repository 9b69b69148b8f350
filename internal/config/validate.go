package config

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	maxStatusInterval = 10 * time.Second
	maxPollInterval   = 60 * time.Second
	minInFlight       = Size(1 << 20)
)

// check looks at values one by one, then at what contradicts what.
func (l *loader) check(options []Option) {
	for i := range options {
		o := &options[i]
		if !l.bad[o.Name] {
			l.checkOne(o, o.at(l.cfg))
		}
	}
	l.checkPostgres()
	l.checkBrokers()
	l.checkKafka()
	l.checkTopics()
	l.checkRelay()
	l.checkDebezium()
	if l.cfg.Kafka.ClientID == "" {
		l.cfg.Kafka.ClientID = "walpost-" + l.cfg.Postgres.Slot
	}
}

// checkOne knows the rules that follow from a value's kind alone.
func (l *loader) checkOne(o *Option, at any) {
	switch p := at.(type) {
	case *time.Duration:
		if *p <= 0 {
			l.failAt(o.Name, "must be more than zero, is "+formatDuration(*p), durationWay)
		}
	case *Size:
		if *p <= 0 {
			l.failAt(o.Name, "must be more than zero, is "+p.String(), sizeWay)
		}
	case *string:
		l.checkEnum(o, p)
	}
}

func (l *loader) checkEnum(o *Option, p *string) {
	if len(o.Enum) == 0 || *p == "" && o.Default == "" {
		return
	}
	for _, v := range o.Enum {
		if strings.EqualFold(v, *p) {
			*p = v
			return
		}
	}
	way := "one of " + strings.Join(o.Enum, ", ")
	if near, ok := Closest(*p, o.Enum); ok {
		way = fmt.Sprintf("did you mean %q?", near)
	}
	l.failAt(o.Name, "unknown value "+quote(*p), way)
}

// set says whether an option has a value of its own, good or bad.
func (l *loader) set(name string) bool { return l.cfg.origins[name].Text != fromDefault }

func (l *loader) checkPostgres() {
	p := &l.cfg.Postgres
	l.checkDSN()
	if !l.bad["postgres.slot"] && !validSlot(p.Slot) {
		l.failAt("postgres.slot", quote(p.Slot)+" is not a slot name", "use a-z, 0-9 and _, at most 63 of them")
	}
	if !l.bad["postgres.publication"] {
		if bad := checkName(p.Publication); bad != nil {
			l.failAt("postgres.publication", bad.what, bad.way)
		}
	}
	if !l.bad["postgres.status_interval"] && p.StatusInterval > maxStatusInterval {
		l.failAt("postgres.status_interval", formatDuration(p.StatusInterval)+" is more than 10s",
			"PostgreSQL ends a connection that stays silent; use 10s or less")
	}
	if !l.bad["postgres.poll_interval"] && p.PollInterval > maxPollInterval {
		l.failAt("postgres.poll_interval", formatDuration(p.PollInterval)+" is more than 60s",
			"a publication that breaks must be noticed; use 60s or less")
	}
	if !l.bad["postgres.tables"] {
		l.checkTables()
	}
}

func validSlot(s string) bool {
	return s != "" && len(s) <= maxName && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_'
	}) < 0
}

func (l *loader) checkTables() {
	seen := map[string]bool{}
	for _, t := range l.cfg.Postgres.Tables {
		name := t.String()
		if seen[name] {
			l.failAt("postgres.tables", name+" is listed twice", "keep one of them")
		}
		seen[name] = true
		headers := map[string]bool{}
		for _, h := range t.Headers {
			switch {
			case slices.Contains([]string{"id", "aggregate_type", "event_type"}, h.Name):
				l.failAt("postgres.tables", name+": header "+h.Name+" is always there", "give the header of column "+h.Column+" another name")
			case headers[h.Name]:
				l.failAt("postgres.tables", name+": header "+h.Name+" is listed twice", "keep one of them")
			}
			headers[h.Name] = true
		}
	}
}

// checkDebezium finds what would contradict the connector's configuration.
func (l *loader) checkDebezium() {
	if !l.cfg.Debezium.Enabled() {
		return
	}
	if l.set("topic") {
		l.failAt("topic", "set together with a Debezium connector, whose route.* options name the topics", "remove one of the two")
	}
	for _, t := range l.cfg.Postgres.Tables {
		if t.Columns != (Columns{}) || len(t.Headers) > 0 {
			l.failAt("postgres.tables", t.String()+": columns and headers are mapped together with a Debezium connector, which maps them itself",
				"remove the mapping, or the connector")
			return
		}
	}
}

func (l *loader) checkKafka() {
	k := &l.cfg.Kafka
	if !l.set("kafka.max_request_bytes") { // who wants larger batches wants them to be sent
		k.MaxRequestBytes = max(k.MaxRequestBytes, k.MaxBatchBytes)
	}
	if !l.bad["kafka.max_batch_bytes"] && !l.bad["kafka.max_request_bytes"] && k.MaxBatchBytes > k.MaxRequestBytes {
		name := "kafka.max_batch_bytes"
		if !l.set(name) {
			name = "kafka.max_request_bytes"
		}
		l.failAt(name, fmt.Sprintf("a batch of %v does not fit into a request of %v", k.MaxBatchBytes, k.MaxRequestBytes),
			"raise kafka.max_request_bytes or lower kafka.max_batch_bytes")
	}
	l.checkTLS()
	l.checkSASL()
}

func (l *loader) checkSASL() {
	s := &l.cfg.Kafka.SASL
	if l.bad["kafka.sasl.mechanism"] {
		return
	}
	if s.Mechanism == "" {
		for _, name := range []string{"kafka.sasl.username", "kafka.sasl.password"} {
			if l.set(name) {
				l.failAt(name, "set, but kafka.sasl.mechanism is not", "set it to PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
				return
			}
		}
		return
	}
	if s.Username == "" && !l.bad["kafka.sasl.username"] {
		l.failAt("kafka.sasl.username", s.Mechanism+" needs a user name", "set --kafka-sasl-username or WALPOST_KAFKA_SASL_USERNAME")
	}
	if s.Password == "" && !l.bad["kafka.sasl.password"] {
		l.failAt("kafka.sasl.password", s.Mechanism+" needs a password", "set --kafka-sasl-password-file or WALPOST_KAFKA_SASL_PASSWORD")
	}
	if s.Mechanism == SASLPlain && !l.cfg.Kafka.TLS.Enabled && !l.bad["kafka.tls.enabled"] {
		if !s.AllowPlaintext {
			l.failAt("kafka.sasl.mechanism", "PLAIN without TLS sends the password readable to everybody on the way",
				"set kafka.tls.enabled, or kafka.sasl.allow_plaintext if you accept that")
			return
		}
		l.warn("the SASL password is sent to the brokers in the clear", "set kafka.tls.enabled")
	}
}

func (l *loader) warn(text, way string) {
	l.cfg.Warnings = append(l.cfg.Warnings, Warning{Text: text, Way: way})
}

func (l *loader) checkTopics() {
	t := &l.cfg.Topics
	if l.cfg.Topic == "" && !l.bad["topic"] {
		l.failAt("topic", "must not be empty", "write a name, such as outbox.event.<aggregate_type>")
	}
	for _, pattern := range t.Allow {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			l.failAt("topics.allow", quote(pattern)+" is not a pattern", "write a topic's name, or a pattern with *, ? and [a-z]")
		}
	}
	for _, n := range []struct {
		name  string
		value int
		most  int
	}{
		{"topics.partitions", t.Partitions, 1<<31 - 1},
		{"topics.replication_factor", t.ReplicationFactor, 1<<15 - 1},
	} {
		if !l.bad[n.name] && (n.value == 0 || n.value < -1 || n.value > n.most) {
			l.failAt(n.name, fmt.Sprintf("%d is out of range", n.value), "use a number from 1, or -1 for the broker's default")
		}
	}
	if t.Create || l.bad["topics.create"] {
		return
	}
	for _, name := range []string{"topics.partitions", "topics.replication_factor", "topics.configs"} {
		if l.set(name) && !l.bad[name] {
			l.failAt(name, "set, but topics.create is not", "set topics.create, or remove this")
		}
	}
}

func (l *loader) checkRelay() {
	r := &l.cfg.Relay
	if !l.bad["relay.in_flight_bytes"] && r.InFlightBytes < minInFlight {
		l.failAt("relay.in_flight_bytes", r.InFlightBytes.String()+" is less than 1MiB", "use 1MiB or more; 6MiB is the default")
	}
	l.checkListen()
}
