package sink_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/walpost/walpost/sink"
	"github.com/walpost/walpost/sink/sinktest"
)

func TestStdoutConformance(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, func(_ *testing.T, acked func([]sink.Ack)) (sink.Sink, func(*testing.T) []sink.Record) {
		var out bytes.Buffer
		return sink.NewStdout(&out, acked), func(t *testing.T) []sink.Record { return parseLines(t, out.Bytes()) }
	})
}

// parseLines reads back what Stdout has printed.
func parseLines(t *testing.T, lines []byte) []sink.Record {
	t.Helper()
	type header struct {
		Name   string
		Value  *string
		Base64 []byte `json:"value_base64"`
	}
	join := func(s *string, raw []byte) []byte {
		switch {
		case raw != nil:
			return raw
		case s != nil:
			return []byte(*s)
		}
		return nil
	}
	var out []sink.Record
	for line := range bytes.Lines(lines) {
		var l struct {
			Topic       string
			Partition   *int32
			Timestamp   time.Time
			Key         *string
			KeyBase64   []byte `json:"key_base64"`
			Headers     []header
			Value       *string
			ValueBase64 []byte `json:"value_base64"`
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		r := sink.Record{
			Topic: l.Topic, Partition: sink.ByKey, Time: l.Timestamp,
			Key: join(l.Key, l.KeyBase64), Value: join(l.Value, l.ValueBase64),
		}
		if l.Partition != nil {
			r.Partition = *l.Partition
		}
		for _, h := range l.Headers {
			r.Headers = append(r.Headers, sink.Header{Name: h.Name, Value: join(h.Value, h.Base64)})
		}
		out = append(out, r)
	}
	return out
}

func TestKafkaConformance(t *testing.T) {
	t.Parallel()
	for _, compression := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(compression, func(t *testing.T) {
			t.Parallel()
			sinktest.Run(t, func(t *testing.T, acked func([]sink.Ack)) (sink.Sink, func(*testing.T) []sink.Record) {
				c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(4, sinktest.Topic))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(c.Close)
				k, err := sink.New(sink.Options{
					Brokers: c.ListenAddrs(), Compression: compression, LimitBytes: 4 << 20, Acked: acked,
				})
				if err != nil {
					t.Fatal(err)
				}
				return k, func(t *testing.T) []sink.Record { return fetchAll(t, c.ListenAddrs(), 4) }
			})
		})
	}
}

// fetchAll reads the suite's topic.
func fetchAll(t *testing.T, brokers []string, partitions int) []sink.Record {
	t.Helper()
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Transport: transport, Timeout: time.Minute}
	var out []sink.Record
	for p := range partitions {
		next, end := int64(0), int64(1)
		for next < end {
			f, err := client.Fetch(context.Background(), &kafka.FetchRequest{
				Topic: sinktest.Topic, Partition: p, Offset: next, MinBytes: 1, MaxBytes: 8 << 20, MaxWait: time.Millisecond,
			})
			if err != nil || f.Error != nil {
				t.Fatalf("fetch: %v %v", err, f.Error)
			}
			end = f.HighWatermark
			for {
				rec, err := f.Records.ReadRecord()
				if err != nil {
					break
				}
				if rec.Offset < next {
					continue
				}
				next = rec.Offset + 1
				r := sink.Record{Topic: sinktest.Topic, Partition: int32(p), Time: rec.Time}
				r.Key, _ = protocol.ReadAll(rec.Key)
				r.Value, _ = protocol.ReadAll(rec.Value)
				for _, h := range rec.Headers {
					r.Headers = append(r.Headers, sink.Header{Name: h.Key, Value: h.Value})
				}
				out = append(out, r)
			}
		}
	}
	return out
}
