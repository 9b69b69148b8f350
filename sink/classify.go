package sink

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/segmentio/kafka-go"
)

// verdict is what one failed attempt means for the batch.
type verdict struct {
	class   Class
	reason  string // short and stable, for metrics and readiness
	unknown bool   // the batch may have been stored: only the same bytes may go again
	cut     bool   // the batch is too large: half of it may pass
	lost    bool   // the broker's idea of our sequence differs: bump the epoch
	refresh bool   // metadata is stale
	trouble bool   // the partition's replicas are the problem: keep it out of others' requests
	way     string // hint for people
}

// codes classifies Kafka's error codes (Kafka documentation, "Error Codes").
// What is not listed is unknown, and so treated like a permanent failure. The
// library's own Error.Temporary is too coarse: it is true for a corrupt batch
// and false for some passing ones.
//
// The outcome of 3, 6 and 56 is unknown although they usually come before the
// append: with acks=all a broker also answers them when it loses the partition,
// its leadership or its disk while the batch, already in its log, waits for the
// followers (DelayedProduce.tryComplete), and the new leader may have it.
var codes = map[int16]verdict{
	2:   {class: Permanent, reason: "CORRUPT_MESSAGE", way: "the broker found a wrong checksum: look for a faulty network device between here and the broker"},
	3:   {class: Passing, reason: "UNKNOWN_TOPIC_OR_PARTITION", unknown: true, refresh: true},
	5:   {class: Passing, reason: "LEADER_NOT_AVAILABLE", refresh: true},
	6:   {class: Passing, reason: "NOT_LEADER_OR_FOLLOWER", unknown: true, refresh: true},
	7:   {class: Passing, reason: "REQUEST_TIMED_OUT", unknown: true, trouble: true},
	8:   {class: Passing, reason: "BROKER_NOT_AVAILABLE", refresh: true},
	9:   {class: Passing, reason: "REPLICA_NOT_AVAILABLE", refresh: true},
	10:  {class: Poison, reason: "MESSAGE_TOO_LARGE", cut: true, way: "raise max.message.bytes of the topic, or make the event smaller at its source"},
	13:  {class: Passing, reason: "NETWORK_EXCEPTION", unknown: true, refresh: true},
	14:  {class: Passing, reason: "COORDINATOR_LOAD_IN_PROGRESS"},
	15:  {class: Passing, reason: "COORDINATOR_NOT_AVAILABLE"},
	16:  {class: Passing, reason: "NOT_COORDINATOR"},
	17:  {class: Permanent, reason: "INVALID_TOPIC_EXCEPTION", way: "change the topic template or the aggregate type"},
	18:  {class: Poison, reason: "RECORD_LIST_TOO_LARGE", cut: true, way: "raise segment.bytes of the topic"},
	19:  {class: Passing, reason: "NOT_ENOUGH_REPLICAS", trouble: true},
	20:  {class: Passing, reason: "NOT_ENOUGH_REPLICAS_AFTER_APPEND", unknown: true, trouble: true},
	29:  {class: Permanent, reason: "TOPIC_AUTHORIZATION_FAILED", way: "grant WRITE and DESCRIBE on the topic to walpost's principal"},
	31:  {class: Permanent, reason: "CLUSTER_AUTHORIZATION_FAILED", way: "grant WRITE on a topic, or IDEMPOTENT_WRITE on the cluster, to walpost's principal"},
	32:  {class: Poison, reason: "INVALID_TIMESTAMP", way: "the record time is outside message.timestamp.before.max.ms / after.max.ms of the topic"},
	33:  {class: Permanent, reason: "UNSUPPORTED_SASL_MECHANISM", way: "set kafka.sasl.mechanism to one that the broker enables"},
	34:  {class: Permanent, reason: "ILLEGAL_SASL_STATE", way: "this listener does not use SASL: use the SASL listener's port, or remove kafka.sasl"},
	35:  {class: Permanent, reason: "UNSUPPORTED_VERSION"},
	37:  {class: Permanent, reason: "INVALID_PARTITIONS", way: "correct topics.partitions"},
	38:  {class: Permanent, reason: "INVALID_REPLICATION_FACTOR", way: "correct topics.replication_factor: it may not exceed the number of brokers"},
	39:  {class: Permanent, reason: "INVALID_REPLICA_ASSIGNMENT"},
	40:  {class: Permanent, reason: "INVALID_CONFIG", way: "correct topics.configs"},
	41:  {class: Passing, reason: "NOT_CONTROLLER", refresh: true},
	42:  {class: Permanent, reason: "INVALID_REQUEST"},
	43:  {class: Permanent, reason: "UNSUPPORTED_FOR_MESSAGE_FORMAT"},
	44:  {class: Permanent, reason: "POLICY_VIOLATION", way: "the cluster's create.topic.policy refuses the topic: create it by hand"},
	45:  {class: Permanent, reason: "OUT_OF_ORDER_SEQUENCE_NUMBER", lost: true},
	46:  {class: Permanent, reason: "DUPLICATE_SEQUENCE_NUMBER", lost: true},
	47:  {class: Fenced, reason: "INVALID_PRODUCER_EPOCH", way: "another relay of the same slot has taken over"},
	48:  {class: Permanent, reason: "INVALID_TXN_STATE", lost: true},
	49:  {class: Permanent, reason: "INVALID_PRODUCER_ID_MAPPING", lost: true},
	51:  {class: Passing, reason: "CONCURRENT_TRANSACTIONS"},
	53:  {class: Permanent, reason: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"},
	54:  {class: Permanent, reason: "SECURITY_DISABLED"},
	55:  {class: Permanent, reason: "OPERATION_NOT_ATTEMPTED"},
	56:  {class: Passing, reason: "KAFKA_STORAGE_ERROR", unknown: true, refresh: true},
	58:  {class: Permanent, reason: "SASL_AUTHENTICATION_FAILED", way: "check kafka.sasl.username and the password"},
	59:  {class: Permanent, reason: "UNKNOWN_PRODUCER_ID", lost: true},
	70:  {class: Passing, reason: "FETCH_SESSION_ID_NOT_FOUND"},
	71:  {class: Passing, reason: "INVALID_FETCH_SESSION_EPOCH"},
	72:  {class: Passing, reason: "LISTENER_NOT_FOUND", refresh: true},
	74:  {class: Passing, reason: "FENCED_LEADER_EPOCH", refresh: true},
	75:  {class: Passing, reason: "UNKNOWN_LEADER_EPOCH", refresh: true},
	76:  {class: Permanent, reason: "UNSUPPORTED_COMPRESSION_TYPE", way: "set kafka.compression to one that the topic accepts"},
	77:  {class: Passing, reason: "STALE_BROKER_EPOCH", refresh: true},
	78:  {class: Passing, reason: "OFFSET_NOT_AVAILABLE"}, // a new leader does not know how far its followers are
	80:  {class: Passing, reason: "PREFERRED_LEADER_NOT_AVAILABLE", refresh: true},
	83:  {class: Passing, reason: "ELIGIBLE_LEADERS_NOT_AVAILABLE", refresh: true},
	87:  {class: Poison, reason: "INVALID_RECORD", way: "a compacted topic refuses records without a key"},
	89:  {class: Passing, reason: "THROTTLING_QUOTA_EXCEEDED"},
	90:  {class: Fenced, reason: "PRODUCER_FENCED", way: "another relay of the same slot has taken over"},
	100: {class: Passing, reason: "UNKNOWN_TOPIC_ID", refresh: true},
	103: {class: Passing, reason: "INCONSISTENT_TOPIC_ID", refresh: true},
	106: {class: Passing, reason: "FETCH_SESSION_TOPIC_ID_ERROR", refresh: true},
}

// classify reads an error of the client library. Transport errors say nothing
// about the outcome unless the request cannot have left.
func classify(err error) verdict {
	var ke kafka.Error
	var dns *net.DNSError
	switch {
	case errors.As(err, &ke):
		if v, ok := codes[int16(ke)]; ok {
			return v
		}
		return verdict{class: Unknown, reason: "KAFKA_ERROR_" + strconv.Itoa(int(ke)), unknown: true}
	case isTLS(err):
		return verdict{class: Permanent, reason: "tls", unknown: true, way: "check kafka.tls: the CA, the server name and the listener's port"}
	case errors.As(err, &dns):
		return verdict{class: Passing, reason: "dns", refresh: true, way: "check the broker's host name"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return verdict{class: Passing, reason: "connection_refused", refresh: true, way: "check that the broker runs and that kafka.brokers names its listener"}
	default:
		return verdict{class: Passing, reason: "connection", unknown: true, refresh: true,
			way: "if this lasts, the listener may expect TLS or SASL, or none where they are set (kafka.tls, kafka.sasl)"}
	}
}

func isTLS(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var op *net.OpError
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) ||
		errors.As(err, &record) || errors.As(err, &alert) ||
		errors.As(err, &op) && op.Op == "remote error" ||
		strings.Contains(err.Error(), "expecting TLS")
}

// DeliveryError says why a record, a partition or a topic does not move.
type DeliveryError struct {
	Topic     string // empty: the whole cluster
	Partition int32  // -1: the whole topic
	Class     Class
	Reason    string
	Detail    string // the broker's or the library's words
	Way       string
}

func (e *DeliveryError) Error() string {
	where := "kafka"
	switch {
	case e.Topic != "" && e.Partition >= 0:
		where = fmt.Sprintf("topic %q partition %d", e.Topic, e.Partition)
	case e.Topic != "":
		where = fmt.Sprintf("topic %q", e.Topic)
	}
	if e.Detail == "" || e.Detail == e.Reason {
		return where + ": " + e.Reason
	}
	return where + ": " + e.Reason + ": " + e.Detail
}

// Hint is what to do about it; it may be empty.
func (e *DeliveryError) Hint() string { return e.Way }

func failure(topic string, partition int32, v verdict, detail string) *DeliveryError {
	return &DeliveryError{Topic: topic, Partition: partition, Class: v.class, Reason: v.reason, Detail: detail, Way: v.way}
}
