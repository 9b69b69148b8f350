package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/walpost/walpost/internal/testkit/topic"
)

// Latency is what an event waits between commit and Kafka at a steady rate: of
// single-row transactions up to 1,000 a second, of 1,000 larger ones above.
//
// It begins with the server's commit timestamp, which is taken before the commit
// record is flushed to disk, and ends with the broker's append time. Both clocks
// are this machine's. The append time is cut to a millisecond by Kafka; half a
// millisecond is added, so a single value is right to ± 0.5 ms.
type Latency struct {
	Rate       int     `json:"events_per_s"`
	Seconds    float64 `json:"seconds"`
	Events     int     `json:"events"`
	P50        float64 `json:"p50_ms"`
	P95        float64 `json:"p95_ms"`
	P99        float64 `json:"p99_ms"`
	Max        float64 `json:"max_ms"`
	InsertP50  float64 `json:"insert_p50_ms"` // what the application's own insert took
	InsertP99  float64 `json:"insert_p99_ms"`
	Slip       float64 `json:"schedule_slip_max_ms"` // how late the load was at worst
	CPUPercent float64 `json:"relay_cpu_percent"`    // of one core
	// ReaderCPU is pg_recvlogical's at the same rate, which only reads; null if there
	// is none.
	ReaderCPU *float64 `json:"reader_cpu_percent,omitempty"`
	PeakRSSMB float64  `json:"peak_rss_mb"`
}

const (
	latencyRate     = 1000 // events a second, and transactions a second at most
	latencySessions = 4
	latencyWarmUp   = 10 * time.Second // until the broker has compiled what it runs
	readerTime      = 10 * time.Second
)

func (l *Latency) print(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "\nlatency at %s events/s in transactions of %d from %d sessions for %.0f s, server's commit timestamp to broker's append time (same clock, ± 0.5 ms)\n",
		number(float64(l.Rate), 0), rowsOf(l.Rate), latencySessions, l.Seconds); err != nil {
		return err
	}
	t := table{}
	t.add("events", "p50 ms", "p95 ms", "p99 ms", "max ms", "insert p50 ms", "insert p99 ms", "load late by ms", "relay CPU % of a core", "pg_recvlogical CPU %", "peak RSS MB")
	t.add(number(float64(l.Events), 0), number(l.P50, 1), number(l.P95, 1), number(l.P99, 1), number(l.Max, 1),
		number(l.InsertP50, 1), number(l.InsertP99, 1), number(l.Slip, 1), number(l.CPUPercent, 1), optional(l.ReaderCPU, 1), number(l.PeakRSSMB, 1))
	return t.print(w)
}

// parseRates reads a list of rates.
func parseRates(list string) (rates []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		rate, err := strconv.Atoi(text)
		if err != nil || rate < 1 || rate > latencyRate && rate%latencyRate != 0 {
			return nil, fmt.Errorf("%q is not a rate: it is 1 to %d, or a multiple of that", text, latencyRate)
		}
		if slices.Contains(rates, rate) {
			return nil, fmt.Errorf("%d comes twice", rate)
		}
		rates = append(rates, rate)
	}
	return rates, nil
}

// rowsOf is how many rows a transaction has at a rate.
func rowsOf(rate int) int { return max(rate/latencyRate, 1) }

func (r *rig) latency(ctx context.Context, duration time.Duration, rate int) (*Latency, error) {
	slotName := fmt.Sprintf("bench_latency_%d", rate)
	topicName := fmt.Sprintf("bench.latency.%d", rate)
	measured := fmt.Sprintf("Measured%d", rate)
	if err := r.createSlot(ctx, slotName); err != nil {
		return nil, err
	}
	if err := r.offsets.create(ctx, topic.Spec{
		Name: topicName, Partitions: partitions, Config: map[string]string{"message.timestamp.type": "LogAppendTime"},
	}); err != nil {
		return nil, err
	}
	w, err := r.startWalpost(ctx, slotName, topicName)
	if err != nil {
		return nil, err
	}
	defer w.close()
	warm, err := r.load(ctx, "WarmUp", latencyWarmUp, rate)
	if err != nil {
		return nil, err
	}
	before, err := cpuOf(w.PID())
	if err != nil {
		return nil, err
	}
	start := time.Now()
	load, err := r.load(ctx, measured, duration, rate)
	if err != nil {
		return nil, err
	}
	seconds := time.Since(start).Seconds()
	var d Drain
	if err := w.usage(&d); err != nil {
		return nil, err
	}
	if _, err := r.offsets.await(ctx, topicName, int64((len(warm.inserts)+len(load.inserts))*rowsOf(rate)), w.child, 10*time.Millisecond); err != nil {
		return nil, err
	}
	if err := w.finishProfile(ctx); err != nil {
		return nil, err
	}
	if err := w.stop(ctx); err != nil {
		return nil, err
	}
	waits, err := r.waits(ctx, topicName, measured)
	if err != nil {
		return nil, err
	}
	if want := len(load.inserts) * rowsOf(rate); len(waits) != want {
		return nil, fmt.Errorf("%d events measured, want %d", len(waits), want)
	}
	slices.Sort(waits)
	slices.Sort(load.inserts)
	if err := r.dropSlots(ctx, slotName); err != nil {
		return nil, err
	}
	reader, err := r.readerCPU(ctx, rate)
	if err != nil {
		return nil, err
	}
	return &Latency{
		Rate: rate, Seconds: seconds, Events: len(waits),
		P50: percentile(waits, 50), P95: percentile(waits, 95), P99: percentile(waits, 99), Max: waits[len(waits)-1],
		InsertP50: percentile(load.inserts, 50), InsertP99: percentile(load.inserts, 99), Slip: load.slip,
		CPUPercent: (d.CPU - before) / seconds * 100, ReaderCPU: reader, PeakRSSMB: d.rssMB(),
	}, nil
}

// readerCPU is what pg_recvlogical needs, in percent of a core, to read the same
// stream and write it to /dev/null: what is left of a relay without Kafka.
func (r *rig) readerCPU(ctx context.Context, rate int) (*float64, error) {
	if r.receiver == "" {
		return nil, nil
	}
	slotName := fmt.Sprintf("bench_reader_%d", rate)
	if err := r.createSlot(ctx, slotName); err != nil {
		return nil, err
	}
	c, err := r.startReceiver(slotName)
	if err != nil {
		return nil, err
	}
	defer c.kill()
	if _, err := r.load(ctx, "WarmUp", time.Second, rate); err != nil {
		return nil, err
	}
	before, err := cpuOf(c.PID())
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if _, err := r.load(ctx, "Read", readerTime, rate); err != nil {
		return nil, err
	}
	seconds := time.Since(start).Seconds()
	after, err := cpuOf(c.PID())
	if err != nil {
		return nil, errors.Join(err, c.ended())
	}
	c.kill()
	percent := (after - before) / seconds * 100
	return &percent, r.dropSlots(ctx, slotName)
}

// loaded tells how the load went, in milliseconds.
type loaded struct {
	inserts []float64
	slip    float64
}

const insertSQL = `
insert into outbox_events (event_id, aggregate_type, aggregate_id, event_type, payload, occurred_at)
select gen_random_uuid(), 'Bench', 'customer-' || g % 10000, $2,
       jsonb_build_object('seq', g, 'order', md5(g::text), 'customer', md5((g % 10000)::text),
         'amount', 12.5, 'currency', 'EUR', 'status', 'placed', 'note', repeat('x', 100)), clock_timestamp()
  from generate_series($1::int, $1::int + $3::int - 1) g`

// load inserts at the fixed rate. The schedule is open: a slow insert delays its
// session, but the events of the time lost are still written, at once.
func (r *rig) load(ctx context.Context, eventType string, duration time.Duration, rate int) (loaded, error) {
	var mu sync.Mutex
	var all loaded
	rows := rowsOf(rate)
	interval := time.Second * time.Duration(rows) / time.Duration(rate)
	total := int(duration / interval)
	conns := make([]*pgx.Conn, latencySessions)
	for i := range conns {
		conn, err := pgx.Connect(ctx, r.pg.DSN(database))
		if err != nil {
			return all, err
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		if _, err := conn.Prepare(ctx, insertSQL, insertSQL); err != nil {
			return all, err
		}
		conns[i] = conn
	}
	start := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for session, conn := range conns {
		group.Go(func() error {
			var own loaded
			timer := time.NewTimer(0)
			defer timer.Stop()
			for i := session; i < total; i += latencySessions {
				due := start.Add(time.Duration(i) * interval)
				timer.Reset(time.Until(due))
				select {
				case <-timer.C:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				begun := time.Now()
				if _, err := conn.Exec(ctx, insertSQL, i*rows, eventType, rows); err != nil {
					return err
				}
				own.inserts = append(own.inserts, millis(time.Since(begun)))
				own.slip = max(own.slip, millis(begun.Sub(due)))
			}
			mu.Lock()
			defer mu.Unlock()
			all.inserts = append(all.inserts, own.inserts...)
			all.slip = max(all.slip, own.slip)
			return nil
		})
	}
	return all, group.Wait()
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

const commitsSQL = `
select event_id::text, pg_xact_commit_timestamp(xmin) from outbox_events where event_type = $1`

// waits returns the latency of each event of a type in milliseconds.
func (r *rig) waits(ctx context.Context, topicName, eventType string) ([]float64, error) {
	commits := make(map[string]time.Time)
	rows, err := r.sql.Query(ctx, commitsSQL, eventType)
	if err != nil {
		return nil, err
	}
	var id string
	var at time.Time
	if _, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error { commits[id] = at; return nil }); err != nil {
		return nil, err
	}
	var waits []float64
	err = r.read(ctx, topicName, func(record *kgo.Record) {
		for _, h := range record.Headers {
			if h.Key != "id" {
				continue
			}
			if commit, ok := commits[string(h.Value)]; ok { // otherwise of the warm-up
				delete(commits, string(h.Value))
				waits = append(waits, millis(record.Timestamp.Sub(commit))+0.5)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if len(commits) > 0 {
		return nil, fmt.Errorf("%d events did not arrive", len(commits))
	}
	return waits, nil
}

// read reads a topic to its end. It is franz-go that reads because it knows of
// append times: kafka-go gives the times that the producer had set.
func (r *rig) read(ctx context.Context, topicName string, each func(*kgo.Record)) error {
	left, err := r.offsets.count(ctx, topicName)
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(r.cluster.Addr()...), kgo.ConsumeTopics(topicName),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.KeepControlRecords()) // which count as offsets
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for left > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		var fault error
		fetches.EachRecord(func(record *kgo.Record) {
			left--
			if record.Attrs.IsControl() {
				return
			}
			if record.Attrs.TimestampType() != 1 {
				fault = errors.New("the broker did not set append times")
			}
			each(record)
		})
		if fault != nil {
			return fault
		}
	}
	return nil
}
