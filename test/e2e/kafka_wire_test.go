package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/fetch"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/proc"
)

// TestCompression: with each codec the batches are in fact compressed with it,
// and what is read back is what was written.
func TestCompression(t *testing.T) {
	t.Parallel()
	o := newOutbox(t, 15)
	// One relay after another on the same slot.
	for i, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		name := o.topic(codec)
		testkit.CreateTopic(t, o.brokers, name, 1)
		r := o.start("--kafka-compression", codec)
		o.insertMany(codec, 1, 300, 7)
		r.awaitPublished(300)
		r.stop()
		o.noRepeats(codec, 300)
		resp, err := kafkaAdmin(t, o.brokers).Fetch(testkit.Context(t), &kafka.FetchRequest{Topic: name, MinBytes: 1, MaxBytes: 1 << 20})
		need(t, err)
		need(t, resp.Error)
		stream, ok := resp.Records.(*protocol.RecordStream)
		if !ok || len(stream.Records) == 0 {
			t.Fatalf("%s: fetched %T", codec, resp.Records)
		}
		for _, records := range stream.Records {
			batch, ok := records.(*protocol.RecordBatch)
			if !ok {
				t.Fatalf("%s: a batch is %T", codec, records)
			}
			if got := int(batch.Attributes.Compression()); got != i {
				t.Errorf("%s: a batch has codec %d, want %d", codec, got, i)
			}
			if batch.ProducerID < 0 || batch.BaseSequence < 0 {
				t.Errorf("%s: producer %d, sequence %d: the batch is not protected against repeats", codec, batch.ProducerID, batch.BaseSequence)
			}
		}
	}
}

// TestPartitionsAgreeWithJava: the Java client, run on the same keys, chooses the
// same partitions as the relay.
func TestPartitionsAgreeWithJava(t *testing.T) {
	t.Parallel()
	o := newOutbox(t, kafkaMajor)
	counts := []int{3, 12, 100}
	args := []string{o.brokers[0]}
	for _, n := range counts {
		testkit.CreateTopic(t, o.brokers, o.topic("p"+strconv.Itoa(n)), n)
		java := o.topic("java" + strconv.Itoa(n))
		testkit.CreateTopic(t, o.brokers, java, n)
		args = append(args, java)
	}
	keys := testKeys()
	r := o.start()
	tx, err := o.db.Begin(t.Context())
	need(t, err)
	for _, n := range counts {
		_, err := tx.Exec(t.Context(), `insert into `+o.table+` (event_id, aggregate_type, aggregate_id, event_type, payload, occurred_at)
			select gen_random_uuid(), $1, key, 'Created', '{}', now() from unnest($2::text[]) key`, "p"+strconv.Itoa(n), keys)
		need(t, err)
	}
	need(t, tx.Commit(t.Context()))
	java := javaPartitions(t, keys, args...)
	r.awaitPublished(uint64(len(keys) * len(counts)))
	r.stop()
	for i, n := range counts {
		got := map[string]int{}
		for _, rec := range o.read("p" + strconv.Itoa(n)) {
			got[string(rec.Key)] = rec.Partition
		}
		if len(got) != len(keys) {
			t.Errorf("%d keys arrived, want %d", len(got), len(keys))
		}
		for j, key := range keys {
			if want := java[j*len(counts)+i]; got[key] != want {
				t.Errorf("key %q of %d bytes is in partition %d of %d, Java says %d", key[:min(len(key), 20)], len(key), got[key], n, want)
			}
		}
	}
}

// testKeys are a thousand: each length up to some, UTF-8 of each width, and long
// ones. The empty key cannot come from an outbox.
func testKeys() []string {
	r := rand.New(rand.NewPCG(7, 11)) // the same keys in each run
	runes := []rune("abcXYZ019-_/ éßЖ漢字東京🚚😀")
	seen := map[string]bool{}
	for _, fixed := range []string{"a", "ab", "abc", "abcd", "ключ", "東京", "🚚", strings.Repeat("x", 127), strings.Repeat("y", 128), strings.Repeat("é", 500)} {
		seen[fixed] = true
	}
	for len(seen) < 1000 {
		var key strings.Builder
		for range 1 + r.IntN(1+r.IntN(150)) {
			key.WriteRune(runes[r.IntN(len(runes))])
		}
		seen[key.String()] = true
	}
	keys := make([]string, 0, len(seen))
	for key := range seen {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// javaPartitions runs the Java producer.
func javaPartitions(t *testing.T, keys []string, args ...string) []int {
	t.Helper()
	cache, err := fetch.Open(proc.Self(), t.Logf)
	need(t, err)
	pom, err := os.ReadFile("../../internal/testkit/kafkaserver/pom.xml")
	need(t, err)
	jars, err := cache.Jars(testkit.Context(t), "kafka-"+kafkaserver.Version, pom)
	need(t, err)
	java := "java"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		java = filepath.Join(home, "bin", "java")
	}
	var in, out, errOut bytes.Buffer
	for _, key := range keys {
		fmt.Fprintln(&in, base64.StdEncoding.EncodeToString([]byte(key)))
	}
	cmd := exec.CommandContext(testkit.Context(t), java, append([]string{
		"-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-cp", filepath.Join(jars, "*"), "testdata/Partitions.java",
	}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("the Java producer: %v\n%s", err, &errOut)
	}
	var partitions []int
	for line := range strings.Lines(out.String()) {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		need(t, err)
		partitions = append(partitions, n)
	}
	if want := len(keys) * (len(args) - 1); len(partitions) != want {
		t.Fatalf("%d answers of the Java producer, want %d\n%s", len(partitions), want, &errOut)
	}
	return partitions
}

// output is a buffer that may be read while it is written.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *output) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

func (w *output) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// TestStdout: with sink=stdout each event is a JSON line, and nothing is confirmed:
// it was looked at, not delivered.
func TestStdout(t *testing.T) {
	t.Parallel()
	o := newOutbox(t, kafkaMajor)
	events := []event{newEvent("order", "a-1", 1), newEvent("order", "Zoë 🚚", 2), newEvent("invoice", "a-1", 3)}
	out := &output{}
	r := o.startArgs(out, "run", "--sink", "stdout", "--dsn", o.dsn, "--slot", o.slot, "--publication", o.slot,
		"--topic", o.prefix+".<aggregate_type>", "--admin-listen", "127.0.0.1:0", "--log-format", "json")
	const position = `select confirmed_flush_lsn::text from pg_replication_slots where slot_name = $1`
	var before, after string
	need(t, o.db.QueryRow(t.Context(), position, o.slot).Scan(&before))
	o.insert(events...)
	r.awaitPublished(uint64(len(events)))
	r.stop()
	need(t, o.db.QueryRow(t.Context(), position, o.slot).Scan(&after))
	if before != after {
		t.Errorf("the slot went from %s to %s", before, after)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != len(events) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(events), out)
	}
	for i, e := range events {
		var line struct {
			Topic, Key, Value string
			Partition         *int
			Timestamp         string
			Headers           []struct{ Name, Value string }
		}
		decoder := json.NewDecoder(strings.NewReader(lines[i]))
		decoder.DisallowUnknownFields()
		need(t, decoder.Decode(&line))
		if line.Topic != o.topic(e.aggregateType) || line.Key != e.aggregateID || line.Value != e.payload() || line.Partition != nil {
			t.Errorf("line %d is %s, want %+v", i, lines[i], e)
		}
		if len(line.Headers) == 0 || line.Headers[0].Name != "id" || line.Headers[0].Value != e.id {
			t.Errorf("line %d has headers %v, want id=%s first", i, line.Headers, e.id)
		}
	}
}
