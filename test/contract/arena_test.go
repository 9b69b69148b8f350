package contract

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/topic"
	"github.com/walpost/walpost/outbox"
)

const (
	accounts   = 7
	partitions = 3
)

// arena is what one example is put into: a database, a topic and a group that
// nobody else uses.
type arena struct {
	t       *testing.T
	example command
	url     string // as the examples get it
	dsn     string
	brokers []string
	name    string // of slot, publication, consumer and group
	topic   string
	db      *pgx.Conn
	kafka   *kgo.Client
}

func newArena(t *testing.T, e command) *arena {
	t.Helper()
	dsn := testkit.Postgres(t, 0).NewDB(t)
	name := testkit.Unique("contract")
	a := &arena{
		t: t, example: e, dsn: dsn, url: asURL(t, dsn), brokers: testkit.Kafka(t).Addr(),
		name: name, topic: name + ".account", db: testkit.Connect(t, dsn),
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(a.brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), // as walpost; some clients have no other
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	a.kafka = client

	a.walpost("init", "--create-table").must(0)
	if _, err := outbox.Migrate(t.Context(), a.db, outbox.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.exec(`create table account (id text primary key, balance bigint not null default 0, version bigint not null default 0)`)
	a.exec(`create table account_view (id text primary key, balance bigint not null, events bigint not null)`)
	a.exec(`insert into account (id) select 'acct-' || i from generate_series(0, $1 - 1) i`, accounts)
	testkit.CreateTopic(t, a.brokers, a.topic, partitions)
	return a
}

// asURL is the connection string in the form that every language's driver knows.
func asURL(t *testing.T, dsn string) string {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u := url.URL{
		Scheme: "postgres", Host: net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))),
		Path: "/" + config.Database, User: url.User(config.User), RawQuery: "sslmode=disable",
	}
	if config.Password != "" {
		u.User = url.UserPassword(config.User, config.Password)
	}
	return u.String()
}

// must fails the test if the process does not end like this: it is not the
// example's.
func (p *process) must(code int) {
	p.t.Helper()
	if err := p.exit(code); err != nil {
		p.t.Fatal(err)
	}
}

// walpost starts the real program.
func (a *arena) walpost(args ...string) *process {
	a.t.Helper()
	all := append([]string{program(a.t, "./cmd/walpost")}, args...)
	return startProcess(a.t, nil, append(all,
		"--dsn", a.dsn, "--slot", a.name, "--publication", a.name,
		"--brokers", strings.Join(a.brokers, ","), "--topic", a.name+".<aggregate_type>")...)
}

// start starts the example.
func (a *arena) start(env []string, args ...string) *process {
	a.t.Helper()
	all := append([]string{
		"DATABASE_URL=" + a.url,
		"KAFKA_BROKERS=" + strings.Join(a.brokers, ","),
		"TOPIC=" + a.topic,
		"CONSUMER=" + a.name,
	}, a.example.env...)
	return startProcess(a.t, append(all, env...), append(append([]string{}, a.example.run...), args...)...)
}

func (a *arena) exec(sql string, args ...any) {
	a.t.Helper()
	if _, err := a.db.Exec(a.t.Context(), sql, args...); err != nil {
		a.t.Fatalf("%s: %v", sql, err)
	}
}

// number runs a query for one number.
func (a *arena) number(sql string, args ...any) (n int) {
	a.t.Helper()
	if err := a.db.QueryRow(a.t.Context(), sql, args...).Scan(&n); err != nil {
		a.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// relay lets walpost publish what is in the outbox, and stops it.
func (a *arena) relay() {
	a.t.Helper()
	events := a.number(`select count(*) from outbox_events`)
	run := a.walpost("run", "--admin-listen", "127.0.0.1:0")
	testkit.AwaitWithin(a.t, patience, fmt.Sprintf("%d published events", events), func() bool {
		if !run.running() {
			a.t.Fatalf("walpost has ended:\n%s", run.output())
		}
		count, err := topic.Count(a.t.Context(), a.brokers, a.topic)
		return err == nil && count >= int64(events)
	})
	if err := run.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		a.t.Fatal(err)
	}
	run.must(0)
}

// repeat appends records to the topic once more, each to its partition.
func (a *arena) repeat(records []topic.Record) {
	a.t.Helper()
	var again []*kgo.Record
	for _, r := range records {
		record := &kgo.Record{Topic: a.topic, Partition: int32(r.Partition), Key: r.Key, Value: r.Value, Timestamp: r.Time}
		for _, h := range r.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		again = append(again, record)
	}
	if err := a.kafka.ProduceSync(a.t.Context(), again...).FirstErr(); err != nil {
		a.t.Fatalf("append to the topic: %v", err)
	}
}

func (a *arena) records() []topic.Record {
	a.t.Helper()
	return testkit.ReadAll(a.t, a.brokers, a.topic)
}
