package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/outbox"
)

// memberVariable says that this process is a member of a group, and of which.
const memberVariable = "FRANZ_MEMBER"

func TestMain(m *testing.M) {
	if os.Getenv(memberVariable) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := runMember(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testkit.Main(m)
}

// job is what a member is told.
type job struct {
	DSN, Topic, Group string
	Brokers           []string
}

func (j job) worker(pool *pgxpool.Pool, log *slog.Logger) (*worker, error) {
	consumer, err := outbox.NewConsumer(pool, outbox.ConsumerOptions{Name: j.Group})
	if err != nil {
		return nil, err
	}
	return newWorker(options{
		brokers: j.Brokers, group: j.Group, topics: []string{j.Topic}, consumer: consumer, handler: note, log: log,
		kafka: []kgo.Opt{kgo.SessionTimeout(6 * time.Second), kgo.HeartbeatInterval(500 * time.Millisecond)},
	})
}

func runMember(ctx context.Context) error {
	var j job
	if err := json.Unmarshal([]byte(os.Getenv(memberVariable)), &j); err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, j.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	w, err := j.worker(pool, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	return w.run(ctx)
}

const partitions = 4

// rig is a topic and a database.
type rig struct {
	*testing.T
	job
	pool     *pgxpool.Pool
	producer *kgo.Client
}

func setup(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, job: job{
		DSN: testkit.Postgres(t, 0).NewDB(t), Brokers: testkit.Kafka(t).Addr(),
		Topic: testkit.Unique("orders"), Group: testkit.Unique("history"),
	}}
	testkit.CreateTopic(t, r.Brokers, r.Topic, partitions)
	var err error
	r.pool, err = pgxpool.New(testkit.Context(t), r.DSN)
	r.need(err)
	t.Cleanup(r.pool.Close)
	r.need(migrate(testkit.Context(t), r.pool))
	r.producer, err = kgo.NewClient(kgo.SeedBrokers(r.Brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	r.need(err)
	t.Cleanup(r.producer.Close)
	return r
}

func (r *rig) need(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// event is a record as walpost publishes it.
func (r *rig) event(partition int32, order string, version int64) *kgo.Record {
	header := func(k, v string) kgo.RecordHeader { return kgo.RecordHeader{Key: k, Value: []byte(v)} }
	return &kgo.Record{
		Topic: r.Topic, Partition: partition, Key: []byte(order), Value: []byte(`{}`),
		Headers: []kgo.RecordHeader{
			header("id", uuid.Must(uuid.NewV7()).String()), header("aggregate_type", "order"),
			header("event_type", "OrderMoved"), header("aggregate_version", strconv.FormatInt(version, 10)),
		},
	}
}

// publish publishes versions of some orders per partition.
func (r *rig) publish(from, to int64) {
	r.Helper()
	var records []*kgo.Record
	for v := from; v <= to; v++ {
		for p := range int32(partitions) {
			for _, o := range []string{"a", "b"} {
				records = append(records, r.event(p, fmt.Sprint(o, p), v))
			}
		}
	}
	r.need(r.producer.ProduceSync(testkit.Context(r.T), records...).FirstErr())
}

// awaitEffects waits until there are so many.
func (r *rig) awaitEffects(n int) {
	r.Helper()
	testkit.Await(r.T, fmt.Sprintf("%d effects", n), func() bool {
		var have int
		err := r.pool.QueryRow(testkit.Context(r.T), `select count(*) from history`).Scan(&have)
		return err == nil && have >= n
	})
}

// check says whether each order has the versions up to last, once and in order.
func (r *rig) check(last int64) {
	r.Helper()
	rows, err := r.pool.Query(testkit.Context(r.T), `select order_id, version from history order by n`)
	r.need(err)
	newest := map[string]int64{}
	var order string
	var version int64
	_, err = pgx.ForEachRow(rows, []any{&order, &version}, func() error {
		if version != newest[order]+1 {
			r.Errorf("order %s: version %d follows %d", order, version, newest[order])
		}
		newest[order] = version
		return nil
	})
	r.need(err)
	if len(newest) != 2*partitions {
		r.Errorf("%d orders", len(newest))
	}
	for order, v := range newest {
		if v != last {
			r.Errorf("order %s ends with version %d, want %d", order, v, last)
		}
	}
}

// committed is the group's offset of each partition.
func (r *rig) committed() (offsets [partitions]int64) {
	r.Helper()
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(r.Brokers...), Transport: transport}
	response, err := client.OffsetFetch(testkit.Context(r.T), &kafka.OffsetFetchRequest{
		GroupID: r.Group, Topics: map[string][]int{r.Topic: {0, 1, 2, 3}},
	})
	r.need(err)
	for _, p := range response.Topics[r.Topic] {
		r.need(p.Error)
		offsets[p.Partition] = p.CommittedOffset
	}
	return offsets
}

// member is a process of its own.
type member struct {
	rig  *rig
	cmd  *exec.Cmd
	wait func() error
}

func (r *rig) start() *member {
	r.Helper()
	text, err := json.Marshal(r.job)
	r.need(err)
	m := &member{rig: r, cmd: exec.Command(os.Args[0])}
	m.cmd.Env = append(os.Environ(), memberVariable+"="+string(text))
	var log bytes.Buffer // read when the process has ended
	m.cmd.Stdout, m.cmd.Stderr = &log, &log
	r.need(m.cmd.Start())
	m.wait = sync.OnceValue(m.cmd.Wait)
	r.Cleanup(func() {
		_ = m.cmd.Process.Kill()
		_ = m.wait() // stop has looked at it
		if r.Failed() || bytes.Contains(log.Bytes(), []byte("DATA RACE")) {
			r.Errorf("log of a member:\n%s", &log)
		}
	})
	return m
}

func (m *member) kill() {
	m.rig.Helper()
	m.rig.need(m.cmd.Process.Kill())
	_ = m.wait() // it says that it was killed
}

// stop ends it with SIGTERM and demands a clean end.
func (m *member) stop() {
	m.rig.Helper()
	m.rig.need(m.cmd.Process.Signal(syscall.SIGTERM))
	m.rig.need(m.wait())
}

// TestTwoMembersAndACrash: every event has its effect once and in order, although
// a member is killed and others come and go.
func TestTwoMembersAndACrash(t *testing.T) {
	t.Parallel()
	r := setup(t)
	const last = 200
	first, second := r.start(), r.start()
	r.publish(1, last/4)
	r.awaitEffects(20)
	first.kill()
	r.publish(last/4+1, last/2)
	third := r.start()
	r.publish(last/2+1, 3*last/4)
	r.awaitEffects(2 * partitions * last / 2)
	second.stop()
	r.publish(3*last/4+1, last)
	r.awaitEffects(2 * partitions * last)
	third.stop()
	r.check(last)
	if got, want := r.committed(), [partitions]int64{2 * last, 2 * last, 2 * last, 2 * last}; got != want {
		t.Errorf("committed %v, want %v", got, want)
	}
}

// TestOneRecordKeepsUpItsPartitionAlone: what cannot be dealt with is not skipped,
// and the other partitions go on.
func TestOneRecordKeepsUpItsPartitionAlone(t *testing.T) {
	t.Parallel()
	r := setup(t)
	foreign := &kgo.Record{Topic: r.Topic, Partition: 2, Value: []byte("not an event")}
	r.need(r.producer.ProduceSync(testkit.Context(t), r.event(2, "before", 1), foreign, r.event(2, "behind", 1)).FirstErr())
	for _, p := range []int32{0, 1, 3} {
		r.need(r.producer.ProduceSync(testkit.Context(t), r.event(p, fmt.Sprint("of ", p), 1)).FirstErr())
	}
	var refusals refusals
	w, err := r.job.worker(r.pool, slog.New(slog.NewTextHandler(&refusals, &slog.HandlerOptions{Level: slog.LevelError})))
	r.need(err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1) // one value, by run
	go func() { ended <- w.run(ctx) }()
	// It came back after a pause, so it was not skipped.
	testkit.Await(t, "the record to be refused twice", func() bool { return refusals.count() >= 2 })
	r.awaitEffects(4)
	cancel()
	r.need(<-ended)
	var behind int
	r.need(r.pool.QueryRow(t.Context(), `select count(*) from history where order_id = 'behind'`).Scan(&behind))
	if behind != 0 {
		t.Error("the event behind it was applied")
	}
	if got, want := r.committed(), [partitions]int64{1, 1, 1, 1}; got != want {
		t.Errorf("committed %v, want %v", got, want)
	}
}

// refusals counts lines of a log.
type refusals struct {
	mu sync.Mutex
	n  int
}

func (r *refusals) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	return len(p), nil
}

func (r *refusals) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}
