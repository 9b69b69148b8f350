package testkit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestPostgresGivesEachTestADatabase(t *testing.T) {
	t.Parallel()
	pg := testkit.Postgres(t, 0)
	var database, slot string
	t.Run("use", func(t *testing.T) {
		dsn := pg.NewDB(t)
		slot = testkit.Unique("slot")
		testkit.Exec(t, dsn,
			"create table t (id int)",
			"select pg_create_logical_replication_slot('"+slot+"', 'pgoutput')")
		conn := testkit.Connect(t, dsn)
		if err := conn.QueryRow(t.Context(), "select current_database()").Scan(&database); err != nil {
			t.Fatal(err)
		}
	})
	conn := testkit.Connect(t, pg.DSN("postgres"))
	var databases, slots int
	err := conn.QueryRow(t.Context(), `select
		(select count(*) from pg_database where datname = $1),
		(select count(*) from pg_replication_slots where slot_name = $2)`, database, slot).Scan(&databases, &slots)
	if err != nil || database == "" || databases != 0 || slots != 0 {
		t.Errorf("database %q: %d databases and %d slots are left, error %v", database, databases, slots, err)
	}
	if again := testkit.Postgres(t, 0); again != pg {
		t.Error("a second server was started")
	}
}

func TestKafkaWriteAndReadBack(t *testing.T) {
	t.Parallel()
	cluster := testkit.Kafka(t)
	name := testkit.Unique("topic")
	testkit.CreateTopic(t, cluster.Addr(), name, 3)
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	writer := &kafka.Writer{Addr: kafka.TCP(cluster.Addr()...), Topic: name, Transport: transport, BatchTimeout: time.Millisecond, RequiredAcks: kafka.RequireAll}
	messages := make([]kafka.Message, 1000)
	for i := range messages {
		messages[i] = kafka.Message{Key: fmt.Appendf(nil, "k%d", i%7), Value: fmt.Append(nil, i)}
	}
	if err := writer.WriteMessages(testkit.Context(t), messages...); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range testkit.ReadAll(t, cluster.Addr(), name) {
		seen[string(r.Value)] = true
	}
	if len(seen) != len(messages) {
		t.Errorf("read %d values back, want %d", len(seen), len(messages))
	}
}

func TestProxiedBrokersAdvertiseTheProxy(t *testing.T) {
	t.Parallel()
	cluster := testkit.PrivateKafka(t, kafkaserver.Options{Proxied: true})
	name := testkit.Unique("topic")
	testkit.CreateTopic(t, cluster.Addr(), name, 1)
	before := cluster.Proxy(0).Accepted()
	if before == 0 {
		t.Error("the topic was not created through the proxy")
	}
	testkit.ReadAll(t, cluster.DirectAddr(), name)
	if got := cluster.Proxy(0).Accepted(); got != before {
		t.Errorf("the direct address led to %d connections through the proxy", got-before)
	}
	if cluster.Addr()[0] != cluster.Proxy(0).Addr() {
		t.Errorf("Addr = %v, want the proxy's", cluster.Addr())
	}
}

func TestUniqueIsAnIdentifier(t *testing.T) {
	t.Parallel()
	long := testkit.Unique(strings.Repeat("Some/Test", 20))
	if len(long) != 63 || strings.ToLower(long) != long || strings.Contains(long, "/") {
		t.Errorf("Unique = %q", long)
	}
	if first, second := testkit.Unique("a"), testkit.Unique("a"); first == second {
		t.Errorf("Unique returned %q twice", first)
	}
}
