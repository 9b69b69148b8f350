package sink

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func benchRecord() Record {
	return Record{
		Topic: "t", Partition: ByKey, Key: []byte("aggregate-1234"), Value: bytes.Repeat([]byte("x"), 300), Time: time.UnixMilli(1),
		Headers: []Header{
			{Name: "id", Value: []byte("7b0f1f0e-3f0a-4a57-9df7-0d6f4b8f2f10")}, {Name: "type", Value: []byte("OrderPlaced")},
			{Name: "aggregate_type", Value: []byte("order")}, {Name: "traceparent", Value: bytes.Repeat([]byte("a"), 55)},
		},
	}
}

// BenchmarkSubmit is a record's whole way through the sink to a broker that
// answers at once and keeps nothing.
func BenchmarkSubmit(b *testing.B) {
	for _, partitions := range []int32{1, 12, 48} {
		b.Run(fmt.Sprint(partitions), func(b *testing.B) {
			c := newCluster(b, kfake.NumBrokers(1), kfake.SeedTopics(partitions, "t"))
			c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				resp := req.ResponseKind().(*kmsg.ProduceResponse)
				for _, t := range req.(*kmsg.ProduceRequest).Topics {
					st := kmsg.NewProduceResponseTopic()
					st.Topic = t.Topic
					for _, p := range t.Partitions {
						sp := kmsg.NewProduceResponseTopicPartition()
						sp.Partition = p.Partition
						st.Partitions = append(st.Partitions, sp)
					}
					resp.Topics = append(resp.Topics, st)
				}
				return resp, nil, true
			})
			acked := make(chan int, 1<<16)
			r := newRig(b, c, func(o *Options) {
				o.Acked = func(acks []Ack) {
					n := 0
					for _, a := range acks {
						n += a.N
					}
					acked <- n
				}
			})
			r.timing = usualTiming()
			r.start(b)
			keys := make([][]byte, 10_000)
			for i := range keys {
				keys[i] = fmt.Appendf(nil, "aggregate-%d", i)
			}
			rec := benchRecord()
			done := make(chan struct{})
			go func() {
				defer close(done)
				for n := 0; n < b.N; {
					n += <-acked
				}
			}()
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				rec.Key, rec.Tag.Tx = keys[i%len(keys)], uint32(i/100)
				if err := r.Submit(context.Background(), &rec); err != nil {
					b.Fatal(err)
				}
			}
			<-done
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, compression := range compressions {
		b.Run(compression, func(b *testing.B) {
			records := make([]Record, 1000)
			for i := range records {
				records[i] = benchRecord()
			}
			q := queued(records)
			e, _ := newEncoder(compression)
			var runs []Ack
			b.ReportAllocs()
			for range b.N {
				e.reset(0)
				batch, err := e.encode(q.first(), len(records), 1<<30, "t", producer{}, 0, runs)
				if err != nil {
					b.Fatal(err)
				}
				runs = batch.runs
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
		})
	}
}
