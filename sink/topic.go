package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/metadata"
	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/retry"
)

// topic knows its lanes, one per partition, once the cluster has told how many
// there are.
//
// Partitions that are added later move keys. So that the order of a key
// survives, the topic is then reshaped: no lane begins a new batch, batches
// under way are settled, and what is queued is spread anew, old records first.
type topic struct {
	name      string
	lanes     []*lane         // by partition number; empty while unknown
	orphans   map[int32]*lane // records for partitions that do not exist
	waiting   queue           // records that have no lane yet
	reshaping bool
	partCount int       // what the cluster says now
	fewer     time.Time // since when it says a lower number than before
	maxBatch  int       // learned from MESSAGE_TOO_LARGE; 0: the configured one
	shrunk    time.Time // when
	hold      *Hold
	tries     int
	next      time.Time // not before this is creation tried again
}

// lane of a record. A partition that does not exist gets an orphan.
func (t *topic) lane(partition int32, key []byte) *lane {
	if partition == ByKey {
		return t.lanes[partitionOf(key, len(t.lanes))]
	}
	if partition >= 0 && int(partition) < len(t.lanes) {
		return t.lanes[partition]
	}
	l := t.orphans[partition]
	if l == nil {
		l = &lane{topic: t, partition: partition, leader: -1, orphan: true}
		if t.orphans == nil {
			t.orphans = make(map[int32]*lane)
		}
		t.orphans[partition] = l
	}
	return l
}

// shrinkFor is how long a learned limit holds. The topic's own may have been
// raised since, and finding it out again costs a refused request or two.
const shrinkFor = 5 * time.Minute

func (t *topic) shrink(to int) {
	if t.maxBatch == 0 || to < t.maxBatch {
		t.maxBatch = to
	}
	t.shrunk = time.Now()
}

// askMetadata makes the metadata loop look at once.
func (k *Kafka) askMetadata() {
	select {
	case k.refresh <- struct{}{}:
	default:
	}
}

// metadataBurst is how many forced refreshes may follow each other at once, after
// a time without any. A start needs three: for the cluster, for the topics that are
// expected, and for the topic of the first record if it is not among those.
const metadataBurst = 4

// watchMetadata keeps topics, partitions and leaders up to date.
func (k *Kafka) watchMetadata(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	burst := metadataBurst
	for attempt := 1; ; attempt++ {
		select {
		case <-ctx.Done():
			return nil
		case <-k.refresh:
		case <-timer.C:
			burst = metadataBurst
		}
		wait := k.timing.metadata
		switch incomplete, err := k.updateMetadata(ctx); {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			v := classify(err)
			k.unreached(&k.outage, v, err)
			wait = k.timing.backoff(v.class, attempt)
		default:
			attempt = 0
			if incomplete {
				wait = k.timing.metadataRetry
			}
		}
		if burst > 0 {
			burst--
		} else if retry.Wait(ctx, k.timing.metadataFloor) != nil {
			return nil
		}
		timer.Reset(wait)
	}
}

// updateMetadata asks for all our topics. It reports whether something is
// missing that should be looked for again soon. What it learned before an error
// counts.
func (k *Kafka) updateMetadata(ctx context.Context) (incomplete bool, err error) {
	k.mu.Lock()
	k.beat = time.Now()
	names := k.wanted()
	k.mu.Unlock()
	var s survey
	for _, piece := range pieces(names) {
		if err = k.survey(ctx, piece, &s); err != nil {
			break
		}
	}
	if len(s.missing) > 0 {
		// The others come next time, so that leaders are looked at in between.
		k.createTopics(ctx, s.missing[:min(len(s.missing), createAtOnce)])
		k.askMetadata()
	}
	if len(s.asked) > 0 {
		k.askForTopics(ctx, s.asked)
		k.askMetadata()
	}
	k.settleKnown()
	return k.registerLanes(ctx) || s.incomplete, err
}

// survey is what came of asking for all topics, piece by piece.
type survey struct {
	missing    []string // to be created
	asked      []string // to be asked for so that the broker creates them
	incomplete bool
	acquainted bool
}

// survey asks for some topics and takes over what the cluster says of them, and of
// its brokers.
func (k *Kafka) survey(ctx context.Context, names []string, s *survey) error {
	call, cancel := context.WithTimeout(ctx, k.opt.RequestTimeout)
	defer cancel()
	resp, err := k.metadata(call, names)
	if err != nil {
		return err
	}
	if !s.acquainted {
		s.acquainted = true
		k.acquaint(call, resp.Brokers)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reached()
	for _, b := range resp.Brokers {
		if k.brokers[b.NodeID] == nil && !k.closed {
			k.addBroker(ctx, b.NodeID)
		}
	}
	for i := range resp.Topics {
		m := &resp.Topics[i]
		t, code := k.topics[m.Name], kafka.Error(m.ErrorCode)
		switch {
		case t == nil && k.ahead.topics[m.Name]:
			s.incomplete = k.meet(m, resp.Brokers) || s.incomplete
		case t == nil:
		case code != 0 && t.unused():
			delete(k.topics, t.name)
		case code != 0:
			s.incomplete = true
			if code == kafka.UnknownTopicOrPartition && k.opt.Topics.Create {
				if time.Now().After(t.next) {
					s.missing = append(s.missing, t.name)
				}
				continue
			}
			if code == kafka.UnknownTopicOrPartition && k.opt.Topics.Ask && time.Now().After(t.next) {
				t.next = time.Now().Add(askEvery)
				s.asked = append(s.asked, t.name)
			}
			k.holdTopic(t, code)
		default:
			s.incomplete = k.updateTopic(t, m.Partitions, resp.Brokers) || s.incomplete
		}
	}
	return nil
}

// describeAtOnce bounds the topics of a metadata request: the answer is in memory
// as a whole, and larger there than on the wire.
const describeAtOnce = 50

// pieces are at least one: the cluster is asked for without topics too.
func pieces(names []string) [][]string {
	if len(names) == 0 {
		return [][]string{{}}
	}
	return slices.Collect(slices.Chunk(names, describeAtOnce))
}

// metadata asks for the cluster and some topics; nil are all, but for those that
// we may not describe. A topic that the answer leaves out does not exist. The
// client's form of it would be several times as large, with brokers in each
// partition.
func (k *Kafka) metadata(ctx context.Context, topics []string) (*metadata.Response, error) {
	answer, err := k.client.Transport.RoundTrip(ctx, k.client.Addr, &metadata.Request{TopicNames: topics})
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	resp, ok := answer.(*metadata.Response)
	if !ok {
		return nil, fmt.Errorf("metadata: unexpected answer %T", answer)
	}
	for _, name := range topics {
		if !slices.ContainsFunc(resp.Topics, func(t metadata.ResponseTopic) bool { return t.Name == name }) {
			resp.Topics = append(resp.Topics, metadata.ResponseTopic{Name: name, ErrorCode: int16(kafka.UnknownTopicOrPartition)})
		}
	}
	return resp, nil
}

// askEvery is how often a missing topic is asked for.
const askEvery = time.Second

// askForTopics looks the topics up in the way that makes a broker create them,
// if it is set to. What came of it is seen the next time.
func (k *Kafka) askForTopics(ctx context.Context, names []string) {
	ctx, cancel := context.WithTimeout(ctx, k.opt.RequestTimeout)
	defer cancel()
	_, err := k.client.Transport.RoundTrip(ctx, k.client.Addr, &metadata.Request{TopicNames: names, AllowAutoTopicCreation: true})
	if err != nil {
		k.log.Debug("topics asked for", zap.Strings("topics", names), zap.Error(err))
	}
}

// updateTopic takes over what the cluster says of a topic's partitions.
func (k *Kafka) updateTopic(t *topic, partitions []metadata.ResponsePartition, brokers []metadata.ResponseBroker) (incomplete bool) {
	if time.Since(t.shrunk) > shrinkFor {
		t.maxBatch = 0
	}
	if t.hold != nil {
		k.log.Info("topic usable", zap.String("topic", t.name))
		k.topicHolds--
	}
	t.hold, t.tries, t.next = nil, 0, time.Time{}
	leaders := make([]int32, len(partitions))
	for i := range leaders {
		leaders[i] = -1
	}
	for i := range partitions {
		p := &partitions[i]
		if p.PartitionIndex < 0 || int(p.PartitionIndex) >= len(leaders) {
			return true // a list with holes: the cluster has not settled yet
		}
		code := kafka.Error(p.ErrorCode)
		if (code == 0 || code == kafka.ReplicaNotAvailable) && hasBroker(brokers, p.LeaderID) {
			leaders[p.PartitionIndex] = p.LeaderID
		}
		incomplete = incomplete || leaders[p.PartitionIndex] < 0
	}
	if len(leaders) == 0 {
		return true
	}
	if len(leaders) >= len(t.lanes) {
		t.fewer = time.Time{}
	} else {
		// Only a topic made anew has fewer partitions than before, but so says
		// also a broker that lags behind: believe it when it lasts.
		if t.fewer.IsZero() {
			t.fewer = time.Now()
		}
		if time.Since(t.fewer) < k.timing.metadata {
			for len(leaders) < len(t.lanes) {
				leaders = append(leaders, -1)
			}
			incomplete = true
		}
	}
	t.partCount = len(leaders)
	if t.partCount != len(t.lanes) {
		if len(t.lanes) > 0 && !t.reshaping {
			k.log.Warn("partition count changed", zap.String("topic", t.name),
				zap.Int("from", len(t.lanes)), zap.Int("to", t.partCount))
		}
		t.reshaping = true
	}
	if t.reshaping && !k.reshape(t) {
		incomplete = true
	}
	for i, l := range t.lanes {
		if i < len(leaders) && l.leader != leaders[i] {
			l.leader = leaders[i]
			if l.state == delayed && l.leader >= 0 {
				l.state = idle // what it waits for has happened
			}
		}
		k.offer(l)
	}
	return incomplete
}

// hasBroker says whether the cluster names a broker. The leader of a partition
// that has none is -1, or for a moment a broker that has gone.
func hasBroker(brokers []metadata.ResponseBroker, id int32) bool {
	return slices.ContainsFunc(brokers, func(b metadata.ResponseBroker) bool { return b.NodeID == id })
}

// reshape spreads everything that is queued over the partitions that there are
// now. It reports false while a batch is not settled.
func (k *Kafka) reshape(t *topic) bool {
	for i, l := range t.lanes {
		if i >= t.partCount && l.state != sending {
			// The topic was made anew with fewer partitions: whatever an unknown
			// batch left behind is gone with the old one.
			l.frozen = 0
		}
		if l.state == sending || l.frozen > 0 {
			return false
		}
	}
	old := slices.Clone(t.lanes)
	for _, l := range t.orphans {
		old = append(old, l)
	}
	queues := make([]queue, 0, len(old)+1)
	for _, l := range old {
		queues = append(queues, l.queue)
		if l.queue.count > 0 {
			k.lanes--
		}
		l.queue = queue{}
		l.limit, l.alone = 0, false
		if l.state == delayed || l.state == ready {
			l.state = idle
		}
		k.release(l)
	}
	queues = append(queues, t.waiting)
	if t.waiting.count > 0 {
		k.lanes--
	}
	t.waiting = queue{}
	t.orphans = nil
	for len(t.lanes) < t.partCount {
		t.lanes = append(t.lanes, &lane{topic: t, partition: int32(len(t.lanes)), leader: -1})
	}
	t.lanes = t.lanes[:t.partCount]
	t.reshaping = false
	for i := range queues {
		q := &queues[i]
		for q.count > 0 {
			c := q.first()
			m, body := c.next()
			l := t.lane(m.partition, bodyKey(body))
			if len(k.known) > 0 && i == len(queues)-1 && k.alreadyThere(l, parse(t.name, m, body)) {
				k.records--
				k.found = append(k.found, Ack{Tx: m.tag.Tx, N: 1, Topic: t.name, Replay: true})
				q.release(&k.pool, c, 1, len(body))
				continue
			}
			if l.queue.count == 0 {
				k.lanes++
			}
			l.queue.appendRaw(&k.pool, m, body)
			q.release(&k.pool, c, 1, len(body))
		}
	}
	for n, l := range t.orphans {
		if l.queue.count > 0 {
			k.holdOrphan(l)
		} else {
			delete(t.orphans, n) // what was for it is in Kafka already
		}
	}
	return true
}

// holdOrphan says that a record's partition does not exist.
func (k *Kafka) holdOrphan(l *lane) {
	v := verdict{class: Poison, reason: "no_such_partition", way: "correct the partition column, or add partitions to the topic"}
	k.holdLane(l, v, fmt.Sprintf("the topic has %d partitions", len(l.topic.lanes)))
}

// holdTopic notes that nothing of a topic can be sent.
func (k *Kafka) holdTopic(t *topic, err error) {
	v := classify(err)
	detail := err.Error()
	if v.reason == "UNKNOWN_TOPIC_OR_PARTITION" {
		v.class = Permanent
		detail = "the topic does not exist"
		v.way = fmt.Sprintf("create it (kafka-topics.sh --create --topic %s), or set topics.create", t.name)
	}
	if t.hold == nil {
		k.log.Warn("topic held", zap.String("topic", t.name), zap.String("reason", v.reason), zap.String("hint", v.way))
		t.hold = &Hold{Topic: t.name, Partition: -1, Since: time.Now()}
		k.topicHolds++
	}
	t.hold.Class, t.hold.Reason = v.class, v.reason
	t.hold.Attempts++
	t.hold.Err = failure(t.name, -1, v, detail)
}

// createAtOnce bounds the topics of one request: a controller refuses what makes
// more than 10,000 partitions at once.
const createAtOnce = 50

// createTopics makes missing topics in one request.
func (k *Kafka) createTopics(ctx context.Context, names []string) {
	call, cancel := context.WithTimeout(ctx, k.opt.RequestTimeout)
	defer cancel()
	policy := &k.opt.Topics
	configs := make([]kafka.TopicConfig, len(names))
	for i, name := range names {
		c := kafka.TopicConfig{Topic: name, NumPartitions: policy.Partitions, ReplicationFactor: policy.ReplicationFactor}
		if c.NumPartitions == 0 {
			c.NumPartitions = -1
		}
		if c.ReplicationFactor == 0 {
			c.ReplicationFactor = -1
		}
		for key, value := range policy.Configs {
			c.ConfigEntries = append(c.ConfigEntries, kafka.ConfigEntry{ConfigName: key, ConfigValue: value})
		}
		configs[i] = c
	}
	resp, callErr := k.client.CreateTopics(call, &kafka.CreateTopicsRequest{Topics: configs})
	moved := errors.Is(callErr, kafka.NotController)
	defer func() {
		if moved {
			k.lookAgain(ctx)
		}
	}()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range names {
		err := callErr
		if err == nil {
			err = resp.Errors[name]
		}
		if err == nil {
			k.log.Info("topic created", zap.String("topic", name))
		}
		t := k.topics[name]
		if err == nil || errors.Is(err, kafka.TopicAlreadyExists) {
			continue // the broker that is asked may not know of it yet; then it comes again
		}
		moved = moved || errors.Is(err, kafka.NotController)
		t.tries++
		t.next = time.Now().Add(k.timing.backoff(classify(err).class, t.tries))
		k.holdTopic(t, fmt.Errorf("create topic: %w", err))
	}
}
