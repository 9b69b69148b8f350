package sim

import (
	"encoding/binary"
	"hash/crc32"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// producers is the coordinator of transactional ids. Taking an id raises its
// epoch here, and nowhere else: a partition learns of it by the next write or
// marker of the new owner, as at a real broker.
type producers struct {
	next int64
	ids  map[string]*owner
}

type owner struct {
	pid         int64
	epoch, last int16 // last: the epoch before, for a caller that repeats itself
	ongoing     bool
	marking     bool
	partitions  map[*partition]bool
}

// init is InitProducerId. The caller holds the cluster's mutex.
func (c *cluster) initProducer(req *kmsg.InitProducerIDRequest, resp *kmsg.InitProducerIDResponse) {
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if req.TransactionalID == nil || *req.TransactionalID == "" {
		resp.ProducerID, resp.ProducerEpoch = c.producers.next, 0
		c.producers.next++
		return
	}
	id := *req.TransactionalID
	if c.denied.transactionalID {
		resp.ErrorCode = codeTxnDenied
		return
	}
	o := c.producers.ids[id]
	if o == nil {
		o = &owner{pid: c.producers.next, epoch: -1, last: -1, partitions: map[*partition]bool{}}
		c.producers.next++
		c.producers.ids[id] = o
	}
	switch {
	case o.marking:
		resp.ErrorCode = codeConcurrent
		return
	case req.ProducerID >= 0 && (req.ProducerID != o.pid || req.ProducerEpoch != o.epoch && req.ProducerEpoch != o.last):
		resp.ErrorCode = codeProducerFenced
		return
	case o.ongoing:
		// The predecessor's transaction is aborted under a higher epoch.
		o.epoch++
		o.last = -1
		c.mark(o, false)
		resp.ErrorCode = codeConcurrent
		return
	case req.ProducerID >= 0 && req.ProducerEpoch == o.last && req.ProducerEpoch != o.epoch:
		// A repeat: its first answer was lost.
	case req.ProducerID >= 0:
		o.last = o.epoch
		o.epoch++
	default:
		o.last = -1
		o.epoch++
	}
	resp.ProducerID, resp.ProducerEpoch = o.pid, o.epoch
}

// owned finds who may act under an id.
func (c *cluster) owned(id string, pid int64, epoch int16) (*owner, int16) {
	o := c.producers.ids[id]
	switch {
	case c.denied.transactionalID:
		return nil, codeTxnDenied
	case o == nil || o.pid != pid || o.epoch != epoch:
		return nil, codeProducerFenced
	case o.marking:
		return nil, codeConcurrent
	}
	return o, 0
}

func (c *cluster) addPartitions(req *kmsg.AddPartitionsToTxnRequest, resp *kmsg.AddPartitionsToTxnResponse) {
	o, code := c.owned(req.TransactionalID, req.ProducerID, req.ProducerEpoch)
	unknown := false
	for _, t := range req.Topics {
		for _, n := range t.Partitions {
			unknown = unknown || c.find(t.Topic, n) == nil
		}
	}
	for _, t := range req.Topics {
		rt := kmsg.NewAddPartitionsToTxnResponseTopic()
		rt.Topic = t.Topic
		for _, n := range t.Partitions {
			rp := kmsg.NewAddPartitionsToTxnResponseTopicPartition()
			rp.Partition = n
			p := c.find(t.Topic, n)
			switch {
			case code != 0:
				rp.ErrorCode = code
			case p == nil:
				rp.ErrorCode = codeUnknownTopic
			case unknown:
				rp.ErrorCode = codeNotAttempted
			default:
				o.ongoing = true
				o.partitions[p] = true
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
}

func (c *cluster) endTxn(req *kmsg.EndTxnRequest, resp *kmsg.EndTxnResponse) {
	o, code := c.owned(req.TransactionalID, req.ProducerID, req.ProducerEpoch)
	if code != 0 {
		resp.ErrorCode = code
		return
	}
	if o.ongoing {
		c.mark(o, req.Commit)
	}
}

// mark writes the markers, some time after it has been answered for.
func (c *cluster) mark(o *owner, commit bool) {
	o.ongoing, o.marking = false, true
	targets := maps.Clone(o.partitions)
	clear(o.partitions)
	epoch := o.epoch
	delay := time.Duration(0)
	left := len(targets)
	if left == 0 {
		o.marking = false
	}
	for p := range targets {
		delay += 2 * time.Millisecond
		wait := delay
		c.spawn(func() {
			time.Sleep(wait)
			c.mu.Lock()
			m := marker(o.pid, epoch, commit)
			for {
				// A marker counts when it is replicated; a leader that moves may
				// lose it, and it is written again.
				p.append(m)
				m.seal()
				c.log("cluster", "marker epoch=%d %s/%d at %d", epoch, p.topic, p.number, m.base)
				for p.hw <= m.base && p.has(m) {
					changed := p.changed
					c.mu.Unlock()
					<-changed
					c.mu.Lock()
				}
				if p.has(m) {
					break
				}
				m = marker(o.pid, epoch, commit)
			}
			if left--; left == 0 {
				o.marking = false
			}
			c.mu.Unlock()
		})
	}
}

func (p *partition) has(b *batch) bool {
	for i := len(p.log) - 1; i >= 0; i-- {
		if p.log[i] == b {
			return true
		}
	}
	return false
}

// marker is a control batch with one record.
func marker(pid int64, epoch int16, commit bool) *batch {
	kind := byte(0)
	if commit {
		kind = 1
	}
	r := kmsg.Record{Key: []byte{0, 0, 0, kind}, Value: make([]byte, 6)}
	rb := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: 0x30, ProducerID: pid, ProducerEpoch: epoch, FirstSequence: -1, NumRecords: 1,
		FirstTimestamp: time.Now().UnixMilli(), MaxTimestamp: time.Now().UnixMilli(),
	}
	r.Length = int32(len(r.AppendTo(nil)) - 1)
	rb.Records = r.AppendTo(nil)
	raw := rb.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return &batch{n: 1, pid: pid, epoch: epoch, control: true, raw: raw}
}
