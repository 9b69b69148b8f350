package sim

import (
	"encoding/binary"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	keyProduce         = 0
	keyFetch           = 1
	keyListOffsets     = 2
	keyMetadata        = 3
	keyFindCoordinator = 10
	keyAPIVersions     = 18
	keyCreateTopics    = 19
	keyInitProducerID  = 22
	keyAddPartitions   = 24
	keyEndTxn          = 26
)

// versions that the brokers offer: what the client library has.
var versions = map[int16]int16{
	keyProduce: 8, keyFetch: 11, keyListOffsets: 5, keyMetadata: 8, keyFindCoordinator: 2,
	keyAPIVersions: 2, keyCreateTopics: 5, keyInitProducerID: 4, keyAddPartitions: 3, keyEndTxn: 3,
}

// latency of one direction.
const latency = 500 * time.Microsecond

// serve answers the requests of one connection, one after the other. Requests
// that have arrived are done even when the client is gone meanwhile.
func (c *cluster) serve(b *broker, server, client *conn, who *instance) {
	defer func() {
		_ = server.Close()
		c.with(func() { delete(b.open, client) })
	}()
	for {
		var size [4]byte
		if _, err := io.ReadFull(server, size[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(server, frame); err != nil {
			return
		}
		key := int16(binary.BigEndian.Uint16(frame))
		time.Sleep(latency)
		if r := c.rule(key, b.id, func(r *rule) bool { return r.loseRequest }); r != nil {
			c.log(c.name(b), "request %d of %s lost", key, who.name)
			client.cut(true)
			return
		}
		if r := c.rule(key, b.id, func(r *rule) bool { return r.delay > 0 }); r != nil {
			c.log(c.name(b), "request %d of %s delayed by %v", key, who.name, r.delay)
			time.Sleep(r.delay)
		}
		if c.isDown(b) {
			return
		}
		out, ok := c.answer(b, frame, who)
		if !ok {
			return
		}
		if r := c.rule(key, b.id, func(r *rule) bool { return r.slow > 0 }); r != nil {
			time.Sleep(r.slow)
		}
		time.Sleep(latency)
		if r := c.rule(key, b.id, func(r *rule) bool { return r.loseResponse }); r != nil {
			c.log(c.name(b), "answer %d to %s lost", key, who.name)
			if r.half {
				_, _ = server.Write(out[:len(out)/2])
				time.Sleep(latency)
			}
			client.cut(true)
			return
		}
		if _, err := server.Write(out); err != nil {
			return
		}
	}
}

func (c *cluster) isDown(b *broker) (down bool) {
	c.with(func() { down = b.down > 0 })
	return down
}

func (c *cluster) rule(key int16, broker int32, is func(*rule) bool) (found *rule) {
	c.with(func() {
		for _, r := range c.rules {
			if is(r) && r.matches(key, broker) {
				found = r
				return
			}
		}
	})
	return found
}

// answer decodes a request and encodes what the broker says to it.
func (c *cluster) answer(b *broker, frame []byte, who *instance) ([]byte, bool) {
	key, version := int16(binary.BigEndian.Uint16(frame)), int16(binary.BigEndian.Uint16(frame[2:]))
	correlation := frame[4:8]
	rest := frame[8:]
	clientID := int(int16(binary.BigEndian.Uint16(rest)))
	rest = rest[2+max(clientID, 0):]
	if most, known := versions[key]; !known || version > most {
		c.world.fail("broker", "request with key %d version %d", key, version)
		return nil, false
	}
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	if req.IsFlexible() {
		rest = rest[1:] // no tags
	}
	if err := req.ReadFrom(rest); err != nil {
		c.world.fail("broker", "request with key %d version %d: %v", key, version, err)
		return nil, false
	}
	resp := req.ResponseKind()
	c.handle(b, req, resp, who)
	out := append(make([]byte, 4, 256), correlation...)
	if resp.IsFlexible() {
		out = append(out, 0)
	}
	out = resp.AppendTo(out)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out, true
}

func (c *cluster) handle(b *broker, req kmsg.Request, resp kmsg.Response, who *instance) {
	if req, ok := req.(*kmsg.ProduceRequest); ok {
		c.produce(b, req, resp.(*kmsg.ProduceResponse), who)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var code int16
	for _, r := range c.rules {
		if r.code != 0 && r.matches(req.Key(), b.id) && len(r.keys) > 0 {
			code = r.code
		}
	}
	switch req := req.(type) {
	case *kmsg.ApiVersionsRequest:
		resp := resp.(*kmsg.ApiVersionsResponse)
		for key, most := range versions {
			k := kmsg.NewApiVersionsResponseApiKey()
			k.ApiKey, k.MaxVersion = key, most
			resp.ApiKeys = append(resp.ApiKeys, k)
		}
	case *kmsg.MetadataRequest:
		c.metadata(req, resp.(*kmsg.MetadataResponse))
	case *kmsg.CreateTopicsRequest:
		c.createTopics(req, resp.(*kmsg.CreateTopicsResponse))
	case *kmsg.FindCoordinatorRequest:
		resp := resp.(*kmsg.FindCoordinatorResponse)
		resp.ErrorCode = code
		for _, other := range c.brokers {
			if other.down == 0 {
				resp.NodeID, resp.Host, resp.Port = other.id, c.name(other), 9092
				break
			}
		}
	case *kmsg.InitProducerIDRequest:
		resp := resp.(*kmsg.InitProducerIDResponse)
		if resp.ErrorCode = code; code == 0 {
			c.initProducer(req, resp)
		} else {
			resp.ProducerID = -1
		}
		c.log(c.name(b), "init producer for %s: code=%d pid=%d epoch=%d", who.name, resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch)
	case *kmsg.AddPartitionsToTxnRequest:
		resp := resp.(*kmsg.AddPartitionsToTxnResponse)
		if c.addPartitions(req, resp); code != 0 {
			for i := range resp.Topics {
				for j := range resp.Topics[i].Partitions {
					resp.Topics[i].Partitions[j].ErrorCode = code
				}
			}
		}
	case *kmsg.EndTxnRequest:
		resp := resp.(*kmsg.EndTxnResponse)
		if resp.ErrorCode = code; code == 0 {
			c.endTxn(req, resp)
		}
		c.log(c.name(b), "end of transaction of %s epoch %d: code=%d", who.name, req.ProducerEpoch, resp.ErrorCode)
	case *kmsg.ListOffsetsRequest:
		c.listOffsets(b, req, resp.(*kmsg.ListOffsetsResponse), code)
	case *kmsg.FetchRequest:
		c.fetch(b, req, resp.(*kmsg.FetchResponse), code)
	}
}

func (c *cluster) metadata(req *kmsg.MetadataRequest, resp *kmsg.MetadataResponse) {
	id := "sim"
	resp.ClusterID, resp.ControllerID = &id, -1
	for _, b := range c.brokers {
		if b.down > 0 {
			continue
		}
		if resp.ControllerID < 0 {
			resp.ControllerID = b.id
		}
		rb := kmsg.NewMetadataResponseBroker()
		rb.NodeID, rb.Host, rb.Port = b.id, c.name(b), 9092
		resp.Brokers = append(resp.Brokers, rb)
	}
	var names []string
	if req.Topics == nil {
		names = slices.Sorted(maps.Keys(c.topics))
	}
	for _, t := range req.Topics {
		names = append(names, *t.Topic)
	}
	for _, name := range names {
		t := kmsg.NewMetadataResponseTopic()
		t.Topic = &name
		if c.topics[name] == nil {
			t.ErrorCode = codeUnknownTopic
		}
		for _, p := range c.topics[name] {
			rp := kmsg.NewMetadataResponseTopicPartition()
			rp.Partition, rp.Leader = p.number, p.leader
			if c.brokers[p.leader].down > 0 {
				rp.Leader, rp.ErrorCode = -1, 5
			}
			t.Partitions = append(t.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, t)
	}
}

func (c *cluster) createTopics(req *kmsg.CreateTopicsRequest, resp *kmsg.CreateTopicsResponse) {
	for _, t := range req.Topics {
		rt := kmsg.NewCreateTopicsResponseTopic()
		rt.Topic = t.Topic
		if c.topics[t.Topic] != nil {
			rt.ErrorCode = codeExists
		} else {
			c.grow(t.Topic, c.create)
			c.log("cluster", "topic %s created with %d partitions", t.Topic, c.create)
		}
		resp.Topics = append(resp.Topics, rt)
	}
}

func (c *cluster) listOffsets(b *broker, req *kmsg.ListOffsetsRequest, resp *kmsg.ListOffsetsResponse, code int16) {
	for _, t := range req.Topics {
		rt := kmsg.NewListOffsetsResponseTopic()
		rt.Topic = t.Topic
		for _, want := range t.Partitions {
			rp := kmsg.NewListOffsetsResponseTopicPartition()
			rp.Partition = want.Partition
			p := c.find(t.Topic, want.Partition)
			switch {
			case p == nil:
				rp.ErrorCode = codeUnknownTopic
			case p.leader != b.id:
				rp.ErrorCode = codeNotLeader
			case code != 0:
				rp.ErrorCode = code
			case want.Timestamp == -2:
				rp.Offset = 0
			default:
				rp.Offset = p.hw
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
}

func (c *cluster) fetch(b *broker, req *kmsg.FetchRequest, resp *kmsg.FetchResponse, code int16) {
	for _, t := range req.Topics {
		rt := kmsg.NewFetchResponseTopic()
		rt.Topic = t.Topic
		for _, want := range t.Partitions {
			rp := kmsg.NewFetchResponseTopicPartition()
			rp.Partition = want.Partition
			p := c.find(t.Topic, want.Partition)
			switch {
			case p == nil:
				rp.ErrorCode = codeUnknownTopic
			case c.denied.fetch:
				rp.ErrorCode = codeTopicDenied
			case p.leader != b.id:
				rp.ErrorCode = codeNotLeader
			case code != 0:
				rp.ErrorCode = code
			case want.FetchOffset < 0 || want.FetchOffset > p.hw:
				rp.ErrorCode = codeOutOfRange
			default:
				rp.HighWatermark, rp.LastStableOffset, rp.LogStartOffset = p.hw, p.hw, 0
				rp.RecordBatches = p.from(want.FetchOffset)
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
}
