package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/semaphore"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/topic"
)

// kafkaMajor is the PostgreSQL of the tests whose subject is Kafka.
const kafkaMajor = 18

// brokersAtOnce bounds the private brokers that run at the same time: each is a
// JVM with some 400 MB.
var brokersAtOnce = semaphore.NewWeighted(4)

// privateKafka starts a cluster for one test when there is room for it.
func privateKafka(t *testing.T, opts kafkaserver.Options) *kafkaserver.Cluster {
	t.Helper()
	n := int64(max(opts.Brokers, 1))
	if err := brokersAtOnce.Acquire(testkit.Context(t), n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { brokersAtOnce.Release(n) }) // after the cluster's own
	cluster := testkit.PrivateKafka(t, opts)
	// Only now can a young broker be told to make topics.
	testkit.Await(t, "a cluster that makes topics", func() bool {
		return topic.Create(testkit.Context(t), cluster.Addr(), topic.Spec{Name: testkit.Unique("ready"), Partitions: 1}) == nil
	})
	return cluster
}

// need ends the test if there is an error.
func need(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kafkaAdmin is a client for what the topic package does not do.
func kafkaAdmin(t *testing.T, brokers []string) *kafka.Client {
	transport := &kafka.Transport{MetadataTTL: 200 * time.Millisecond}
	t.Cleanup(transport.CloseIdleConnections)
	return &kafka.Client{Addr: kafka.TCP(brokers...), Transport: transport, Timeout: 30 * time.Second}
}

// alterTopic sets one setting of a topic.
func alterTopic(t *testing.T, brokers []string, name, key, value string) {
	t.Helper()
	resp, err := kafkaAdmin(t, brokers).IncrementalAlterConfigs(testkit.Context(t), &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: name,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: key, Value: value}},
		}},
	})
	need(t, err)
	for _, r := range resp.Resources {
		need(t, r.Error)
	}
}

// addPartitions raises the number of a topic's partitions.
func addPartitions(t *testing.T, brokers []string, name string, count int) {
	t.Helper()
	resp, err := kafkaAdmin(t, brokers).CreatePartitions(testkit.Context(t), &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: name, Count: int32(count)}},
	})
	need(t, err)
	for _, err := range resp.Errors {
		need(t, err)
	}
}

// partitionOf is where the Java client puts a key.
func partitionOf(key string, partitions int) int {
	list := make([]int, partitions)
	for i := range list {
		list[i] = i
	}
	return kafka.Murmur2Balancer{Consistent: true}.Balance(kafka.Message{Key: []byte(key)}, list...)
}

// keysIn finds so many keys that go to a partition.
func keysIn(partition, partitions, count int) []string {
	var keys []string
	for i := 0; len(keys) < count; i++ {
		if key := "k" + strconv.Itoa(i); partitionOf(key, partitions) == partition {
			keys = append(keys, key)
		}
	}
	return keys
}

// load writes transactions of one aggregate type until it is stopped.
type load struct {
	o             *outbox
	aggregateType string
	stopping      context.CancelFunc
	done          sync.WaitGroup
	mu            sync.Mutex
	written       int
}

// startLoad writes perTx rows each few milliseconds, as insertMany does, from
// n0 on.
func (o *outbox) startLoad(aggregateType string, n0, perTx, aggregates int) *load {
	o.t.Helper()
	ctx, cancel := context.WithCancel(o.t.Context())
	l := &load{o: o, aggregateType: aggregateType, stopping: cancel, written: n0 - 1}
	db := testkit.Connect(o.t, o.dsn)
	o.t.Cleanup(func() { l.stop() })
	l.done.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			l.mu.Lock()
			n := l.written + 1
			l.mu.Unlock()
			// Not under ctx: a statement that is cancelled may have been committed.
			_, err := db.Exec(o.t.Context(), insertManySQL(o.table), aggregateType, aggregates, n, n+perTx-1)
			if err != nil {
				if o.t.Context().Err() == nil {
					o.t.Errorf("insert under load: %v", err)
				}
				return
			}
			l.mu.Lock()
			l.written += perTx
			l.mu.Unlock()
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return l
}

func insertManySQL(table string) string {
	return `insert into ` + table + ` (event_id, aggregate_type, aggregate_id, event_type, payload, occurred_at)
		select gen_random_uuid(), $1, (n % $2)::text, 'Created', jsonb_build_object('n', n, 'pad', repeat('x', 100)), now()
		from generate_series($3::int, $4::int) n`
}

// count is how many have been committed, those before n0 included.
func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written
}

// awaitMore waits until so many more have been committed.
func (l *load) awaitMore(n int) {
	l.o.t.Helper()
	goal := l.count() + n
	testkit.Await(l.o.t, fmt.Sprintf("%d more rows", n), func() bool { return l.count() >= goal })
}

// stop ends it and returns how many were committed.
func (l *load) stop() int {
	l.stopping()
	l.done.Wait()
	return l.count()
}

// checkSuffixes verifies that each partition is the sequence of its events,
// where a start of the relay may have gone back and sent again, in order and
// without a gap, what had been sent before. It returns how often that happened
// in the partition with most.
func checkSuffixes(t *testing.T, records []topic.Record) (back int) {
	t.Helper()
	type partition struct {
		index map[int]int // of the first copy, by n
		at    int         // index of the record before
		back  int
	}
	partitions := map[int]*partition{}
	for _, r := range records {
		p := partitions[r.Partition]
		if p == nil {
			p = &partition{index: map[int]int{}, at: -1}
			partitions[r.Partition] = p
		}
		n := number(t, r)
		i, repeated := p.index[n]
		switch {
		case !repeated && p.at != len(p.index)-1:
			t.Errorf("partition %d offset %d: the new event %d comes in the middle of repeats", r.Partition, r.Offset, n)
			fallthrough
		case !repeated:
			i = len(p.index)
			p.index[n] = i
		case i > p.at+1:
			t.Errorf("partition %d offset %d: repeats leave out %d events before %d", r.Partition, r.Offset, i-p.at-1, n)
		case i <= p.at:
			p.back++
		}
		p.at = i
		back = max(back, p.back)
	}
	return back
}

// noRepeats checks everything of insertMany and that nothing came twice.
func (o *outbox) noRepeats(aggregateType string, count int) {
	o.t.Helper()
	if repeats := checkNumbers(o.t, o.read(aggregateType), count); repeats != 0 {
		o.t.Errorf("%d repeats", repeats)
	}
}

// startArgs runs a command of the binary for as long as the test, with its
// standard output going to out.
func (o *outbox) startArgs(out io.Writer, args ...string) *relay {
	o.t.Helper()
	return o.startCommand(binary(o.t, false), out, nil, args...)
}

func (o *outbox) startCommand(path string, out io.Writer, env []string, args ...string) *relay {
	o.t.Helper()
	r := &relay{t: o.t, cmd: exec.Command(path, args...), exited: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Env = out, append(os.Environ(), env...)
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := r.cmd.StderrPipe()
	need(o.t, err)
	need(o.t, r.cmd.Start())
	go r.collect(stderr)
	o.t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.exited
		if o.t.Failed() {
			o.t.Logf("log of the relay:\n%s", r.logText())
		}
		if strings.Contains(r.logText(), "WARNING: DATA RACE") || strings.Contains(r.logText(), "panic:") {
			o.t.Errorf("data race or panic in the relay:\n%s", r.logText())
		}
	})
	return r
}

// startMapped runs the relay with columns mapped in a file: columns is YAML in
// one line.
func (o *outbox) startMapped(columns string, flags ...string) *relay {
	o.t.Helper()
	file := filepath.Join(o.t.TempDir(), "walpost.yaml")
	text := "postgres:\n  tables:\n    - name: " + o.table + "\n      columns: " + columns + "\n"
	need(o.t, os.WriteFile(file, []byte(text), 0o600))
	table := o.table
	defer func() { o.table = table }()
	o.table = "" // the file names it
	return o.start(append([]string{"--config", file}, flags...)...)
}

// code asks the admin listener for a path's status code and body.
func (r *relay) code(path string) (int, string) {
	r.t.Helper()
	code, body, err := r.get(path)
	need(r.t, err)
	return code, string(body)
}

// probesWhileHolding checks what the probes answer while the relay holds.
func (r *relay) probesWhileHolding(reason string) {
	r.t.Helper()
	if code, body := r.code("/readyz"); code != 503 || !strings.Contains(body, reason) {
		r.t.Errorf("/readyz: %d %q, want 503 with %s", code, body, reason)
	}
	if code, body := r.code("/livez"); code != 200 {
		r.t.Errorf("/livez: %d %q, want 200", code, body)
	}
}

// metric is the value of a series, 0 if there is none.
func (r *relay) metric(series string) float64 {
	r.t.Helper()
	_, body := r.code("/metrics")
	pattern := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + `(?:\{[^}]*\})? (\S+)$`)
	total := 0.0
	for _, m := range pattern.FindAllStringSubmatch(body, -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		need(r.t, err)
		total += v
	}
	return total
}

// memory is a line of the kernel's account of the process, in MB.
func (r *relay) memory(line string) float64 {
	r.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	need(r.t, err)
	m := regexp.MustCompile(`(?m)^` + line + `:\s+(\d+) kB$`).FindSubmatch(text)
	if m == nil {
		r.t.Fatalf("no %s in %s", line, text)
	}
	kB, err := strconv.Atoi(string(m[1]))
	need(r.t, err)
	return float64(kB) * 1024 / 1e6
}

// peak logs and checks the most memory that the process ever had.
func (r *relay) peak(what string, limit float64) {
	r.t.Helper()
	peak := r.memory("VmHWM")
	r.t.Logf("%s: peak RSS %.1f MB", what, peak)
	if peak > limit {
		r.t.Errorf("%s: peak RSS %.1f MB is above %.0f MB", what, peak, limit)
	}
}

// confirmedLSN is what the slot has confirmed.
func (o *outbox) confirmedLSN() (lsn string) {
	o.t.Helper()
	err := o.db.QueryRow(o.t.Context(), `select confirmed_flush_lsn::text from pg_replication_slots where slot_name = $1`, o.slot).Scan(&lsn)
	need(o.t, err)
	return lsn
}

// confirmedBelow verifies that a transaction whose commit record begins at lsn is
// not confirmed. That the WAL below its commit record is may happen: a slow insert
// leaves time for a keepalive there, and the server skips only commits that begin
// below the confirmed position (SnapBuildXactNeedsSkip).
func (o *outbox) confirmedBelow(lsn string) {
	o.t.Helper()
	confirmed := o.confirmedLSN()
	var ok bool
	need(o.t, o.db.QueryRow(o.t.Context(), `select $1::pg_lsn <= $2::pg_lsn`, confirmed, lsn).Scan(&ok))
	if !ok {
		o.t.Errorf("confirmed %s, but the event that committed at %s is not published", confirmed, lsn)
	}
}

// walNow is the end of the WAL: what commits later is above it.
func (o *outbox) walNow() (lsn string) {
	o.t.Helper()
	need(o.t, o.db.QueryRow(o.t.Context(), `select pg_current_wal_insert_lsn()::text`).Scan(&lsn))
	return lsn
}

// value is what a status has, or the empty string.
func value(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// holdOf finds the hold of a topic with that reason.
func holdOf(s admin.Status, topicName, reason string) (admin.Hold, bool) {
	for _, h := range s.Holds {
		if value(h.Topic) == topicName && h.Reason == reason {
			return h, true
		}
	}
	return admin.Hold{}, false
}

// awaitInSync waits until each partition of a topic has so many replicas in
// sync.
func awaitInSync(t *testing.T, cluster *kafkaserver.Cluster, name string, replicas int) {
	t.Helper()
	client := kafkaAdmin(t, cluster.DirectAddr())
	testkit.Await(t, "replicas in sync", func() bool {
		// Makes the client ask anew.
		if _, err := client.CreateTopics(testkit.Context(t), &kafka.CreateTopicsRequest{ValidateOnly: true}); err != nil {
			return false
		}
		resp, err := client.Metadata(testkit.Context(t), &kafka.MetadataRequest{Topics: []string{name}})
		if err != nil || len(resp.Topics) != 1 || resp.Topics[0].Error != nil || len(resp.Topics[0].Partitions) == 0 {
			return false
		}
		for _, p := range resp.Topics[0].Partitions {
			if len(p.Isr) < replicas || p.Error != nil {
				return false
			}
		}
		return true
	})
}
