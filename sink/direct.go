package sink

import (
	"context"
	"net"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/createtopics"
	"github.com/segmentio/kafka-go/protocol/fetch"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
	"github.com/segmentio/kafka-go/protocol/metadata"
	"github.com/segmentio/kafka-go/protocol/produce"
	"github.com/segmentio/kafka-go/protocol/rawproduce"
)

// The client library finds the broker for a request in a picture of the cluster,
// which it fetches every few seconds: all topics with all partitions, ours or not,
// in memory twice. Here it knows the brokers only (see New). What goes to a
// partition's leader names it, and the leaders are ours to know.

// direct passes requests on as they are. Of its own, the library answers metadata
// requests from its picture, and when topics were created it waits until they come
// up there.
type direct struct{ *kafka.Transport }

// RoundTrip implements kafka.RoundTripper.
func (d direct) RoundTrip(ctx context.Context, addr net.Addr, request kafka.Request) (kafka.Response, error) {
	response, err := d.Transport.RoundTrip(ctx, addr, exact{request})
	if e, ok := response.(exact); ok {
		response = e.Message
	}
	return response, err
}

// exact is a request that is split into nothing but itself: a form that the
// library has no case for. Its answer is one too.
type exact struct{ protocol.Message }

// Split implements protocol.Splitter.
func (e exact) Split(protocol.Cluster) ([]protocol.Message, protocol.Merger, error) {
	return []protocol.Message{e.Message}, e, nil
}

// Merge implements protocol.Merger.
func (exact) Merge(_ []protocol.Message, results []any) (protocol.Message, error) {
	answer, err := protocol.Result(results[0])
	if err != nil {
		return nil, err
	}
	return exact{answer}, nil
}

// leader is what the requests below have in common: the id of the broker that they
// go to. Where the library does not know that broker, kafka.BrokerNotAvailable comes
// back, and nothing was sent.
type leader int32

// Broker implements protocol.BrokerMessage.
func (id leader) Broker(protocol.Cluster) (protocol.Broker, error) {
	return protocol.Broker{ID: int32(id)}, nil
}

// leaderRequests marks the requests below, whose fields and versions are those of
// the library's own. Its codec leaves unexported fields out.
const leaderRequests protocol.OverrideTypeKey = 1

// TypeKey implements protocol.OverrideTypeMessage.
func (leader) TypeKey() protocol.OverrideTypeKey { return leaderRequests }

func init() {
	protocol.RegisterOverride(&produceRequest{}, &produce.Response{}, leaderRequests)
	protocol.RegisterOverride(&offsetsRequest{}, &listoffsets.Response{}, leaderRequests)
	protocol.RegisterOverride(&fetchRequest{}, &fetch.Response{}, leaderRequests)
}

type produceRequest struct {
	TransactionalID string                    `kafka:"min=v3,max=v8,nullable"`
	Acks            int16                     `kafka:"min=v0,max=v8"`
	Timeout         int32                     `kafka:"min=v0,max=v8"`
	Topics          []rawproduce.RequestTopic `kafka:"min=v0,max=v8"`
	leader
}

// ApiKey implements protocol.Message.
func (*produceRequest) ApiKey() protocol.ApiKey { return protocol.Produce }

type offsetsRequest struct {
	ReplicaID      int32                      `kafka:"min=v1,max=v5"`
	IsolationLevel int8                       `kafka:"min=v2,max=v5"`
	Topics         []listoffsets.RequestTopic `kafka:"min=v1,max=v5"`
	leader
}

// ApiKey implements protocol.Message.
func (*offsetsRequest) ApiKey() protocol.ApiKey { return protocol.ListOffsets }

type fetchRequest struct {
	ReplicaID       int32                         `kafka:"min=v0,max=v11"`
	MaxWaitTime     int32                         `kafka:"min=v0,max=v11"`
	MinBytes        int32                         `kafka:"min=v0,max=v11"`
	MaxBytes        int32                         `kafka:"min=v3,max=v11"`
	IsolationLevel  int8                          `kafka:"min=v4,max=v11"`
	SessionID       int32                         `kafka:"min=v7,max=v11"`
	SessionEpoch    int32                         `kafka:"min=v7,max=v11"`
	Topics          []fetch.RequestTopic          `kafka:"min=v0,max=v11"`
	ForgottenTopics []fetch.RequestForgottenTopic `kafka:"min=v7,max=v11"`
	RackID          string                        `kafka:"min=v11,max=v11"`
	leader
}

// ApiKey implements protocol.Message.
func (*fetchRequest) ApiKey() protocol.ApiKey { return protocol.Fetch }

// acquaint makes the library look for the brokers at once, when it does not know
// them as they are now: by itself it looks every few seconds.
func (k *Kafka) acquaint(ctx context.Context, brokers []metadata.ResponseBroker) {
	answer, err := k.transport.RoundTrip(ctx, k.client.Addr, &metadata.Request{TopicNames: []string{}})
	if known, ok := answer.(*metadata.Response); err == nil && ok && sameBrokers(known.Brokers, brokers) {
		return
	}
	k.lookAgain(ctx)
}

// lookAgain makes the library look for brokers and controller, and waits for that.
func (k *Kafka) lookAgain(ctx context.Context) {
	call, stop := context.WithTimeout(ctx, lookTimeout)
	defer stop()
	_, _ = k.transport.RoundTrip(call, k.client.Addr, nothing{})
}

const lookTimeout = 2 * time.Second

// nothing is a request that sends nothing. To the library its answer is that topics
// were created, after which it looks at once, for none in particular. A CreateTopics
// without topics would do as well if the controller that the library knows were
// always there.
type nothing struct{}

// ApiKey implements protocol.Message.
func (nothing) ApiKey() protocol.ApiKey { return protocol.CreateTopics }

// Split implements protocol.Splitter.
func (n nothing) Split(protocol.Cluster) ([]protocol.Message, protocol.Merger, error) {
	return nil, n, nil
}

// Merge implements protocol.Merger.
func (nothing) Merge([]protocol.Message, []any) (protocol.Message, error) {
	return &createtopics.Response{}, nil
}

func sameBrokers(a, b []metadata.ResponseBroker) bool {
	if len(a) != len(b) {
		return false
	}
	for _, broker := range a {
		if !slices.Contains(b, broker) {
			return false
		}
	}
	return true
}
