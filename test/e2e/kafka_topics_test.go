package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/topic"
)

// TestTopicMissing: the events of a topic that does not exist wait, with the
// command that makes it; those of others flow. A crash meanwhile loses none of
// them; once the topic is there, they flow too.
func TestTopicMissing(t *testing.T) {
	t.Parallel()
	o := newOutbox(t, 15)
	o.createTopic("here")
	r := o.start()
	r.awaitReady()
	o.insertMany("later", 1, 60, 7)
	behind := o.walNow()
	o.insertMany("here", 1, 40, 7)
	s := r.awaitReason("topic_missing")
	h, ok := holdOf(s, o.topic("later"), "UNKNOWN_TOPIC_OR_PARTITION")
	if command := "kafka-topics.sh --create --topic " + o.topic("later"); !ok || s.State != "holding" ||
		!strings.Contains(value(h.Hint), command) || !strings.Contains(value(s.Hint), command) {
		t.Errorf("state %s, hint %q, holds %+v; want %q", s.State, value(s.Hint), s.Holds, command)
	}
	r.probesWhileHolding("topic_missing")
	r.await("events of the other topic", func(s admin.Status) bool { return s.Published.Events == 40 })
	o.noRepeats("here", 40)
	o.confirmedBelow(behind)
	r.kill()
	r = o.start()
	r.awaitReason("topic_missing")
	o.createTopic("later")
	r.awaitPublished(60)
	r.awaitReady()
	o.awaitConfirmed()
	r.stop()
	o.noRepeats("later", 60)
	// These were acked, but above an event that was not: they come again from
	// PostgreSQL, and are found in Kafka.
	o.noRepeats("here", 40)
}

// TestTopicCreated: with topics.create a missing topic is made as configured.
func TestTopicCreated(t *testing.T) {
	t.Parallel()
	o := newOutbox(t, kafkaMajor)
	name := o.topic("made")
	t.Cleanup(func() { testkit.DeleteTopic(t, o.brokers, name) })
	r := o.start("--topics-create", "--topics-partitions", "3", "--topics-replication-factor", "1",
		"--topics-config", "retention.ms=1234567", "--topics-config", "cleanup.policy=compact,delete")
	o.insertMany("made", 1, 90, 9)
	r.awaitPublished(90)
	r.stop()
	o.noRepeats("made", 90)
	ranges, err := topic.Ranges(t.Context(), o.brokers, name)
	need(t, err)
	if len(ranges) != 3 {
		t.Errorf("%d partitions, want 3", len(ranges))
	}
	var resp *kafka.DescribeConfigsResponse
	client := kafkaAdmin(t, o.brokers)
	testkit.Await(t, "the topic's configuration", func() bool {
		// A starved broker says that it is not available.
		resp, err = client.DescribeConfigs(t.Context(), &kafka.DescribeConfigsRequest{
			Resources: []kafka.DescribeConfigRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: name}},
		})
		return err == nil
	})
	got := map[string]string{}
	for _, e := range resp.Resources[0].ConfigEntries {
		got[e.ConfigName] = e.ConfigValue
	}
	if got["retention.ms"] != "1234567" || got["cleanup.policy"] != "compact,delete" {
		t.Errorf("retention.ms %q, cleanup.policy %q", got["retention.ms"], got["cleanup.policy"])
	}
}

// TestTopicMadeAnew: a topic is deleted while events are written for it and made
// anew, once with more and once with fewer partitions. Whatever was acked had
// been in the old one; the rest arrives in the new one without a restart.
func TestTopicMadeAnew(t *testing.T) {
	t.Parallel()
	o := newOutbox(t, kafkaMajor)
	name := o.topic("order")
	testkit.CreateTopic(t, o.brokers, name, 4)
	r := o.start()
	o.insertMany("order", 1, 100, 13)
	r.awaitPublished(100)
	next, old := 101, 4
	for _, partitions := range []int{7, 3} {
		need(t, topic.Delete(t.Context(), o.brokers, name))
		testkit.Await(t, "end of the topic", func() bool {
			names, err := topic.List(t.Context(), o.brokers)
			return err == nil && !strings.Contains(strings.Join(names, " ")+" ", name+" ")
		})
		o.insertMany("order", next, 100, 13)
		r.awaitReason("topic_missing")
		r.await("all events to wait", func(s admin.Status) bool { return s.InFlight.Events == 100 })
		need(t, topic.Create(t.Context(), o.brokers, topic.Spec{Name: name, Partitions: partitions}))
		r.awaitPublished(uint64(next + 99))
		next += 100
		r.awaitReady()
		got := o.read("order")
		type key struct {
			key       string
			partition int
		}
		last, first := map[key]int{}, map[key]int{}
		if len(got) != 100 {
			t.Errorf("%d records in the new topic, want 100", len(got))
		}
		for _, rec := range got {
			n, k := number(t, rec), key{string(rec.Key), rec.Partition}
			if n <= last[k] || n < next-100 || n >= next {
				t.Errorf("key %s: event %d behind %d", rec.Key, n, last[k])
			}
			last[k] = n
			if first[k] == 0 {
				first[k] = n
			}
			// What was sent to the old topic and may have been stored keeps its
			// partition; nobody can tell that the topic is another one.
			was, is := partitionOf(k.key, old), partitionOf(k.key, partitions)
			if rec.Partition != is && rec.Partition != was {
				t.Errorf("key %s is in partition %d, want %d of %d", rec.Key, rec.Partition, is, partitions)
			}
		}
		for k := range first {
			was, is := key{k.key, partitionOf(k.key, old)}, key{k.key, partitionOf(k.key, partitions)}
			if was != is && last[was] > 0 && first[is] > 0 && last[was] > first[is] {
				t.Errorf("key %s: event %d went to its old partition after event %d had gone to the new one", k.key, last[was], first[is])
			}
		}
		old = partitions
		// From here on every event goes where its key belongs now.
		o.insertMany("order", next, 100, 13)
		r.awaitPublished(uint64(next + 99))
		next += 100
		for _, rec := range o.read("order") {
			if want := partitionOf(string(rec.Key), partitions); number(t, rec) >= next-100 && rec.Partition != want {
				t.Errorf("key %s is in partition %d, want %d of %d", rec.Key, rec.Partition, want, partitions)
			}
		}
	}
	o.awaitConfirmed()
	r.stop()
}

// TestPartitionsAdded: under load a topic gets more partitions. Keys move, and
// yet no event of a key is appended before its predecessors.
func TestPartitionsAdded(t *testing.T) {
	t.Parallel()
	const keys = 101
	o := newOutbox(t, 15)
	name := o.topic("order")
	// With the broker's own clock in the records the order can be seen across
	// partitions.
	testkit.CreateTopicSpec(t, o.brokers, topic.Spec{Name: name, Partitions: 3, Config: map[string]string{"message.timestamp.type": "LogAppendTime"}})
	r := o.start()
	l := o.startLoad("order", 1, 20, keys)
	r.await("events in the old partitions", func(s admin.Status) bool { return s.Published.Events > 600 })
	addPartitions(t, o.brokers, name, 8)
	o.awaitMoved(name)
	l.awaitMore(600)
	written := l.stop()
	o.awaitConfirmed()
	r.awaitReady()
	r.stop()

	type place struct {
		newest, oldest int
		first, last    time.Time
	}
	places := map[string]map[int]*place{}
	seen := map[int]bool{}
	moved := 0
	for _, rec := range o.read("order") {
		n, key := number(t, rec), string(rec.Key)
		if seen[n] {
			t.Errorf("event %d came twice", n)
		}
		seen[n] = true
		if places[key] == nil {
			places[key] = map[int]*place{}
		}
		p := places[key][rec.Partition]
		if p == nil {
			p = &place{oldest: n, first: rec.Time}
			places[key][rec.Partition] = p
		}
		if n <= p.newest {
			t.Errorf("key %s: event %d behind %d", key, n, p.newest)
		}
		p.newest, p.last = n, rec.Time
	}
	if len(seen) != written {
		t.Errorf("%d events arrived, want %d", len(seen), written)
	}
	for key, in := range places {
		before, after := partitionOf(key, 3), partitionOf(key, 8)
		for p := range in {
			if p != before && p != after {
				t.Errorf("key %s is in partition %d, want %d or %d", key, p, before, after)
			}
		}
		if old, young := in[before], in[after]; before != after && old != nil && young != nil {
			moved++
			if young.oldest <= old.newest || young.first.Before(old.last) {
				t.Errorf("key %s: event %d was appended to partition %d at %s, event %d to partition %d at %s", key,
					young.oldest, after, young.first, old.newest, before, old.last)
			}
		}
	}
	if moved == 0 {
		t.Error("no key has moved: the test proves nothing")
	}
}

// awaitMoved waits until a partition that is new has a record.
func (o *outbox) awaitMoved(name string) {
	o.t.Helper()
	testkit.Await(o.t, "records in the new partitions", func() bool {
		ranges, err := topic.Ranges(o.t.Context(), o.brokers, name)
		return err == nil && len(ranges) == 8 && ranges[7].End > 0
	})
}

// TestThousandTopics: a thousand topics are made and written, in little memory.
func TestThousandTopics(t *testing.T) {
	t.Parallel()
	const topics, each = 1000, 5
	cluster := privateKafka(t, kafkaserver.Options{})
	o := newOutboxAt(t, testkit.Postgres(t, kafkaMajor).NewDB(t), cluster.Addr())
	r := o.startBinary(binary(t, true), nil, "--topics-create", "--topics-partitions", "2")
	r.awaitReady()
	o.exec(`insert into `+o.table+` (event_id, aggregate_type, aggregate_id, event_type, payload, occurred_at)
		select gen_random_uuid(), 't' || n % $1::int, 'a', 'Created', jsonb_build_object('n', n), now() from generate_series(0, $2::int) n`, topics, topics*each-1)
	testkit.AwaitWithin(t, 3*time.Minute, "the events of all topics", func() bool {
		s, ok := r.status()
		return ok && s.Published.Events == topics*each
	})
	r.peak(fmt.Sprintf("%d topics", topics), 80)
	o.awaitConfirmed()
	r.stop()

	client := kafkaAdmin(t, o.brokers)
	partition := partitionOf("a", 2)
	ask := map[string][]kafka.OffsetRequest{}
	for i := range topics {
		ask[o.topic(fmt.Sprint("t", i))] = []kafka.OffsetRequest{kafka.LastOffsetOf(partition), kafka.LastOffsetOf(1 - partition)}
	}
	resp, err := client.ListOffsets(testkit.Context(t), &kafka.ListOffsetsRequest{Topics: ask})
	need(t, err)
	if len(resp.Topics) != topics {
		t.Errorf("%d topics, want %d", len(resp.Topics), topics)
	}
	for name, partitions := range resp.Topics {
		for _, p := range partitions {
			want := int64(each)
			if p.Partition != partition {
				want = 0
			}
			if p.Error != nil || p.LastOffset != want {
				t.Errorf("%s partition %d has %d records (%v), want %d", name, p.Partition, p.LastOffset, p.Error, want)
			}
		}
	}
	for _, i := range []int{0, 499, 999} {
		for n, rec := range o.read(fmt.Sprint("t", i)) {
			if want := i + n*topics; number(t, rec) != want {
				t.Errorf("topic %d record %d has n=%d, want %d", i, n, number(t, rec), want)
			}
		}
	}
}
