package sim

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// produced is the fate of one partition of a produce request.
type produced struct {
	p      *partition
	b      *batch
	code   int16
	base   int64
	repeat bool
	after  int16 // answered although it was stored
}

// produce appends the batches, then waits until all in-sync replicas have them:
// the answer comes when the slowest partition is done.
func (c *cluster) produce(br *broker, req *kmsg.ProduceRequest, resp *kmsg.ProduceResponse, who *instance) {
	var list []*produced
	c.mu.Lock()
	for _, t := range req.Topics {
		for _, rp := range t.Partitions {
			b, err := parseBatch(t.Topic, rp.Partition, rp.Records)
			if err != nil {
				c.world.fail("broker", "produce of %s to %s/%d: %v", who.name, t.Topic, rp.Partition, err)
				b = &batch{}
			}
			if req.Acks != -1 || b.pid < 0 {
				c.world.fail("broker", "produce of %s with acks=%d producer=%d", who.name, req.Acks, b.pid)
			}
			list = append(list, c.store(br, t.Topic, rp.Partition, b, who))
		}
	}
	c.mu.Unlock()
	timeout := time.NewTimer(time.Duration(req.TimeoutMillis) * time.Millisecond)
	defer timeout.Stop()
	for _, x := range list {
		c.await(br, x, timeout)
	}
	at := 0
	for _, t := range req.Topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic = t.Topic
		for _, part := range t.Partitions {
			x := list[at]
			at++
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition, rp.ErrorCode, rp.BaseOffset = part.Partition, x.code, x.base
			if x.repeat && x.code == 0 {
				rp.LogAppendTime = x.b.at
			}
			if x.code != 0 {
				rp.BaseOffset = -1
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
}

// store decides about one batch.
func (c *cluster) store(br *broker, topic string, number int32, b *batch, who *instance) *produced {
	x := &produced{p: c.find(topic, number), b: b, base: -1}
	var before int16
	for _, r := range c.rules {
		if r.code != 0 && r.matches(keyProduce, br.id) && r.at(topic, number) {
			if r.stored {
				x.after = r.code
			} else {
				before = r.code
			}
		}
	}
	switch {
	case x.p == nil:
		x.code = codeUnknownTopic
	case x.p.leader != br.id:
		x.code = codeNotLeader
	case before != 0:
		x.code = before
	case c.maxBatch > 0 && len(b.raw) > c.maxBatch:
		x.code = codeTooLarge
	case x.p.short > 0:
		x.code = codeNotEnough
	default:
		var old *batch
		if old, x.code = x.p.admit(b); old != nil {
			x.b, x.base, x.repeat = old, old.base, true
		} else if x.code == 0 {
			b.at = time.Now().UnixMilli()
			x.p.append(b)
			b.seal()
			x.base = b.base
			c.stored(x.p, b, who.name)
		}
	}
	if x.code != 0 {
		c.log(c.name(br), "refuse %d records of %s for %s/%d pid=%d epoch=%d seq=%d: code=%d", b.n, who.name, topic, number, b.pid, b.epoch, b.seq, x.code)
	}
	return x
}

// await waits for the replicas of a stored batch.
func (c *cluster) await(br *broker, x *produced, timeout *time.Timer) {
	if x.code != 0 {
		return
	}
	expired := false
	for {
		c.mu.Lock()
		done := x.p.hw >= x.base+int64(x.b.n)
		lost := x.p.leader != br.id || !x.p.has(x.b)
		changed := x.p.changed
		switch {
		case lost:
			x.code = codeNotLeader
		case done:
			x.code = x.after
		case expired:
			x.code = codeTimedOut
		}
		c.mu.Unlock()
		if lost || done || expired {
			if x.code != 0 {
				c.log(c.name(br), "stored at %s/%d %d, but answered %d", x.p.topic, x.p.number, x.base, x.code)
			}
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			expired = true
			timeout.Reset(0) // for the other partitions of the request
		}
	}
}
