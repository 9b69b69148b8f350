package connector

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	producerOverride = "producer.override."
	producerWorker   = "producer."
	topicCreation    = "topic.creation.default."
)

// producerRules are the settings of Kafka's Java producer, behind one of its
// prefixes.
func producerRules(server bool) []rule {
	const pace = "batches grow with the load, and no event waits for others"
	const retry = "walpost goes on trying, in order, until Kafka has the event"
	const client = "it tunes the Java client"
	const metrics = "walpost has metrics of its own"
	rules := []rule{
		{key: "bootstrap.servers", own: true, decide: decideBrokers},
		{key: "client.id", own: true, decide: func(r *reading, s *setting) verdict {
			r.over("kafka.client_id", strings.TrimSpace(s.value), s)
			return r.honour("client.id", s, "client id shown by the brokers")
		}},
		{key: "compression.type", own: true, decide: func(r *reading, s *setting) verdict {
			return oneOf([]string{"none", "gzip", "snappy", "lz4", "zstd"}, "compression of record batches", func(r *reading, v string) {
				r.over("kafka.compression", v, s)
				r.honour("compression.type", s, "")
			})(r, s)
		}},
		{key: "compression.*", decide: ignore("walpost takes the usual level of the compression")},
		{key: "acks", own: true, decide: decideAcks},
		{key: "request.timeout.ms", own: true, decide: func(r *reading, s *setting) verdict {
			d, way := parseMillis(s)
			if way != "" || d == 0 {
				return malformed(s, "write a number of milliseconds, more than 0")
			}
			r.over("kafka.request_timeout", d.String(), s)
			return r.honour("request.timeout.ms", s, "how long one request may take")
		}},
		{key: "linger.ms", decide: ignore(pace)},
		{key: "batch.size", decide: ignore(pace + "; kafka.max_batch_bytes bounds them")},
		{key: "buffer.memory", decide: ignore("relay.in_flight_bytes bounds the memory")},
		{key: "max.request.size", decide: ignore("the topic's max.message.bytes alone decides how large an event may be")},
		{key: "max.in.flight.requests.per.connection", decide: ignore("a partition never has two batches under way")},
		{key: "enable.idempotence", decide: ignore("walpost's batches always carry sequence numbers")},
		{key: "retries", decide: ignore(retry)},
		{key: "retry.backoff.*", decide: ignore(retry)},
		{key: "delivery.timeout.ms", decide: ignore(retry)},
		{key: "max.block.ms", decide: ignore(retry)},
		{key: "reconnect.backoff.*", decide: ignore(client)},
		{key: "connections.max.idle.ms", decide: ignore(client)},
		{key: "socket.connection.setup.*", decide: ignore(client)},
		{key: "send.buffer.bytes", decide: ignore(client)},
		{key: "receive.buffer.bytes", decide: ignore(client)},
		{key: "metadata.*", decide: ignore(client)},
		{key: "client.dns.lookup", decide: ignore(client)},
		{key: "client.rack", decide: ignore(client)},
		{key: "metric.reporters", decide: ignore(metrics)},
		{key: "metrics.*", decide: ignore(metrics)},
		{key: "auto.include.jmx.reporter", decide: ignore(metrics)},
		{key: "enable.metrics.push", decide: ignore(metrics)},
		{key: "interceptor.classes", decide: refuseUnless([]string{""}, "it names Java classes that may change records", "remove it")},
		{key: "partitioner.class", decide: refuseUnless([]string{"", "org.apache.kafka.clients.producer.internals.DefaultPartitioner"},
			"walpost takes the partition that Kafka's default partitioner takes", "remove it, if the partition of a key may change; else go on with Debezium")},
		{key: "partitioner.ignore.keys", decide: refuseUnless([]string{"false"},
			"events of one key would lose their order", "remove it")},
		{key: "partitioner.*", decide: ignore("it is about records without a key, which go to a partition of the producer's choice")},
		{key: "transactional.id", decide: refuse("walpost does not write events in Kafka transactions", "remove it")},
		{key: "transaction.timeout.ms", decide: ignore("walpost does not write events in Kafka transactions")},
		{key: "key.serializer", show: server, own: true, decide: decideSerializer("key")},
		{key: "value.serializer", show: server, own: true, decide: decideSerializer("value")},
	}
	return append(rules, securityRules()...)
}

// honour keeps a producer's setting in the Spec.
func (r *reading) honour(key string, s *setting, does string) verdict {
	if r.spec.Kafka.Producer == nil {
		r.spec.Kafka.Producer = map[string]string{}
	}
	r.spec.Kafka.Producer[key] = strings.TrimSpace(s.value)
	return same(does)
}

// producer finds a setting of the producer: the connector's, else the worker's.
func (r *reading) producer(key string) *setting {
	if s := r.connector.byKey[producerOverride+key]; s != nil {
		return s
	}
	return r.worker.byKey[producerWorker+key]
}

func (r *reading) producerValue(key, otherwise string) string {
	if s := r.producer(key); s != nil {
		return strings.TrimSpace(s.value)
	}
	return otherwise
}

func decideBrokers(r *reading, s *setting) verdict {
	var brokers []string
	for _, b := range splitList(s.value) {
		if _, rest, ok := strings.Cut(b, "://"); ok {
			b = rest // Java lets a protocol stand in front, and ignores it
		}
		brokers = append(brokers, b)
	}
	if len(brokers) == 0 {
		return malformed(s, "write host:port, with commas between")
	}
	r.spec.Kafka.Brokers = brokers
	r.over("kafka.brokers", strings.Join(brokers, ","), s)
	return same("brokers to start from")
}

func decideAcks(_ *reading, s *setting) verdict {
	switch v := strings.ToLower(strings.TrimSpace(s.value)); v {
	case "all", "-1":
		return moot("walpost always waits for all in-sync replicas")
	case "0", "1":
		return verdict{
			decision: Ignored, severity: SeverityNote, does: "walpost always waits for all in-sync replicas",
			difference: "an acknowledged event is safer, and may take longer",
		}
	default:
		return malformed(s, "write all, 1 or 0")
	}
}

// topicRules are about topics that Kafka Connect creates.
func topicRules() []rule {
	option := func(name, config string) decide {
		return func(r *reading, s *setting) verdict {
			n, way := parseInt(s, -1)
			if way != "" || n == 0 {
				return malformed(s, "write a number, or -1 for the broker's default")
			}
			if why := r.creationOff(); why != "" {
				return ignored(why)
			}
			r.spec.Kafka.CreateTopics = true
			r.over("topics.create", "true", s)
			r.over(config, strconv.Itoa(n), s)
			if name == "replication.factor" {
				r.spec.Kafka.TopicReplicas = n
			} else {
				r.spec.Kafka.TopicPartitions = n
			}
			return same(name + " of a topic that is created")
		}
	}
	return []rule{
		{key: "replication.factor", show: true, own: true, decide: func(r *reading, s *setting) verdict {
			if !s.set {
				return noted("a broker with auto.create.topics.enable=true makes a missing topic, as it does for Debezium", "without that its events wait, where Debezium fails; topics.create lets walpost make it")
			}
			return option("replication.factor", "topics.replication_factor")(r, s)
		}},
		{key: "partitions", own: true, decide: option("partitions", "topics.partitions")},
		{key: "include", decide: ignore("the group default has every topic")},
		{key: "exclude", decide: ignore("the group default has every topic")},
		{key: "*", own: true, decide: func(r *reading, s *setting) verdict {
			if why := r.creationOff(); why != "" {
				return ignored(why)
			}
			if r.spec.Kafka.TopicConfigs == nil {
				r.spec.Kafka.TopicConfigs = map[string]string{}
			}
			r.spec.Kafka.TopicConfigs[strings.TrimPrefix(s.key, topicCreation)] = strings.TrimSpace(s.value)
			var pairs []string
			for key, value := range r.spec.Kafka.TopicConfigs {
				pairs = append(pairs, key+"="+value)
			}
			slices.Sort(pairs)
			r.over("topics.configs", strings.Join(pairs, ","), s)
			return same("a setting of a topic that is created")
		}},
	}
}

// creationOff says why nobody would create topics.
func (r *reading) creationOff() string {
	if r.server {
		return "Debezium Server does not create topics"
	}
	if v, _ := r.worker.get("topic.creation.enable"); strings.EqualFold(v, "false") {
		return "the worker's topic.creation.enable is false"
	}
	return ""
}

// defaultRetryDelay is Debezium's slot.retry.delay.ms.
const defaultRetryDelay = 10 * time.Second
