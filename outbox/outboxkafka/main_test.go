package outboxkafka

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/outbox"
	"github.com/walpost/walpost/outbox/outboxtest"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// rig is a topic, a database, and what the handler has done.
type rig struct {
	*testing.T
	brokers    []string
	topic      string
	group      string
	partitions int
	db         *outboxtest.Database
	client     *kafka.Client
}

func setup(t *testing.T, partitions int) *rig {
	t.Helper()
	return setupOn(t, testkit.Kafka(t).Addr(), partitions)
}

func setupOn(t *testing.T, brokers []string, partitions int) *rig {
	t.Helper()
	r := &rig{T: t, brokers: brokers, topic: testkit.Unique("orders"), group: testkit.Unique("billing"), partitions: partitions}
	testkit.CreateTopic(t, r.brokers, r.topic, partitions)
	r.db = outboxtest.Open(t, outboxtest.Options{DSN: testkit.Postgres(t, 0).DSN("postgres"), Tables: outbox.SchemaOptions{Parts: outbox.Consumption}})
	if err := r.db.Exec(t.Context(), `create table effects (n bigint generated always as identity, aggregate text, version bigint, event_id uuid)`); err != nil {
		t.Fatal(err)
	}
	transport := &kafka.Transport{MetadataTTL: 100 * time.Millisecond}
	t.Cleanup(transport.CloseIdleConnections)
	r.client = &kafka.Client{Addr: kafka.TCP(r.brokers...), Transport: transport}
	return r
}

// event is a record as walpost publishes it.
func event(partition int, aggregate string, version int64) kafka.Message {
	id := uuid.Must(uuid.NewV7())
	return kafka.Message{
		Partition: partition, Key: []byte(aggregate), Value: []byte(`{}`),
		Headers: []kafka.Header{
			{Key: "id", Value: []byte(id.String())},
			{Key: "aggregate_type", Value: []byte("order")},
			{Key: "event_type", Value: []byte("Moved")},
			{Key: "aggregate_version", Value: []byte(strconv.FormatInt(version, 10))},
		},
	}
}

// publish sends records to the partitions that they name.
func (r *rig) publish(records ...kafka.Message) {
	r.Helper()
	by := map[int][]kafka.Message{}
	for _, m := range records {
		by[m.Partition] = append(by[m.Partition], m)
	}
	for p, messages := range by {
		r.again("publish", func() error {
			var list []kafka.Record // made for each attempt: sending consumes keys and values
			for _, m := range messages {
				list = append(list, kafka.Record{Key: kafka.NewBytes(m.Key), Value: kafka.NewBytes(m.Value), Headers: m.Headers})
			}
			response, err := r.client.Produce(r.Context(), &kafka.ProduceRequest{
				Topic: r.topic, Partition: p, RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(list...),
			})
			if err != nil {
				return err
			}
			return response.Error
		})
	}
}

// again repeats what a broker refuses for a moment: its view of leaders and
// coordinators is not always the newest.
func (r *rig) again(doing string, f func() error) {
	r.Helper()
	var err error
	for range 200 {
		if err = f(); err == nil {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-r.Context().Done():
		}
	}
	if err != nil {
		r.Errorf("%s: %v", doing, err)
	}
}

// some are events of one aggregate per partition, from one version to another.
func (r *rig) some(from, to int64) []kafka.Message {
	var list []kafka.Message
	for v := from; v <= to; v++ {
		for p := range r.partitions {
			list = append(list, event(p, fmt.Sprint("a", p), v))
		}
	}
	return list
}

func effect(ctx context.Context, tx pgx.Tx, m outbox.Message) error {
	_, err := tx.Exec(ctx, `insert into effects (aggregate, version, event_id) values ($1, $2, $3::uuid)`, m.AggregateID, m.Version, m.ID.String())
	return err
}

func (r *rig) consumer(o outbox.ConsumerOptions) *outbox.Consumer {
	return r.consumerOn(r.db, o)
}

func (r *rig) consumerOn(db outbox.Beginner, o outbox.ConsumerOptions) *outbox.Consumer {
	r.Helper()
	o.Name = "billing"
	o.BackoffMin, o.BackoffMax = time.Millisecond, 10*time.Millisecond
	c, err := outbox.NewConsumer(db, o)
	if err != nil {
		r.Fatal(err)
	}
	return c
}

// member is a running Runner.
type member struct {
	*Runner
	rig  *rig
	log  *log
	stop func() // and wait
}

// start runs a member until the test or stop ends it.
func (r *rig) start(o Options) *member {
	r.Helper()
	m := &member{rig: r, log: &log{}}
	o.Brokers, o.Group = r.brokers, r.group
	if o.Topics == nil {
		o.Topics = []string{r.topic}
	}
	if o.Consumer == nil {
		o.Consumer = r.consumer(outbox.ConsumerOptions{})
	}
	if o.Handler == nil {
		o.Handler = effect
	}
	o.CommitEvery = or(o.CommitEvery, 20*time.Millisecond)
	o.SessionTimeout = or(o.SessionTimeout, 6*time.Second)
	o.Log = m.log.logger()
	runner, err := New(o)
	if err != nil {
		r.Fatal(err)
	}
	m.Runner = runner
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	m.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			r.Errorf("Run: %v", err)
		}
		if r.Failed() {
			r.Logf("log of a member:\n%s", m.log)
		}
	})
	r.Cleanup(m.stop)
	return m
}

func (r *rig) scalar(sql string, args ...any) (n int) {
	r.Helper()
	if err := r.db.QueryRow(r.Context(), sql, args...).Scan(&n); err != nil {
		r.Fatal(err)
	}
	return n
}

func (r *rig) awaitEffects(n int) {
	r.Helper()
	testkit.Await(r.T, fmt.Sprint(n, " effects"), func() bool { return r.scalar("select count(*) from effects") >= n })
}

// check says whether each event had its effect once, and in order.
func (r *rig) check(want int) {
	r.Helper()
	n := r.scalar("select count(*) from effects")
	distinct := r.scalar("select count(distinct event_id) from effects")
	disorder := r.scalar(`select count(*) from (select version, lag(version, 1, 0::bigint) over (partition by aggregate order by n) as before from effects) x where version <> before + 1`)
	if n != want || distinct != want || disorder != 0 {
		r.Errorf("%d effects of %d events, %d out of order; want %d", n, distinct, disorder, want)
	}
}

// committed is the group's offset for each partition; -1 is none.
func (r *rig) committed() []int64 {
	r.Helper()
	ask := make([]int, r.partitions)
	for i := range ask {
		ask[i] = i
	}
	response, err := r.client.OffsetFetch(r.Context(), &kafka.OffsetFetchRequest{GroupID: r.group, Topics: map[string][]int{r.topic: ask}})
	if err != nil {
		r.Fatal(err)
	}
	offsets := make([]int64, r.partitions)
	for _, p := range response.Topics[r.topic] {
		offsets[p.Partition] = p.CommittedOffset
	}
	return offsets
}

// log collects what a member logs.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *log) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (l *log) count(text string) int { return bytes.Count([]byte(l.String()), []byte(text)) }

func (m *member) awaitLog(text string) {
	m.rig.Helper()
	testkit.Await(m.rig.T, "the log to say "+text, func() bool { return m.log.count(text) > 0 })
}

func (m *member) owned() int { return len(m.Partitions()) }
