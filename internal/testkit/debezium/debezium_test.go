package debezium_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/debezium"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestOptionsThatCannotWork(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	connector := map[string]string{"connector.class": "x"}
	for name, c := range map[string]struct {
		opts debezium.Options
		want string
	}{
		"no connector": {debezium.Options{Brokers: []string{"127.0.0.1:1"}}, "Options.Connector"},
		"no brokers":   {debezium.Options{Connector: connector}, "Options.Brokers"},
		"no jars": {
			debezium.Options{Connector: connector, Brokers: []string{"127.0.0.1:1"}, Home: empty},
			"has no debezium-connector-postgres-*.jar",
		},
	} {
		p, err := debezium.Start(t.Context(), c.opts)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Start = %v, %v, want an error with %q", name, p, err, c.want)
		}
	}
}

const table = `create table outboxevent (id uuid primary key default gen_random_uuid(),
	aggregatetype text not null, aggregateid text not null, type text not null, payload jsonb)`

func TestRelaysAcrossAKillAndAStop(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t, 0).NewDB(t)
	kafka := testkit.Kafka(t)
	slot, aggregate := testkit.Unique("dbz"), testkit.Unique("order")
	testkit.CreateTopic(t, kafka.Addr(), "outbox.event."+aggregate, 1)
	testkit.Exec(t, dsn, table, "create publication p for table outboxevent with (publish = 'insert')",
		"select pg_create_logical_replication_slot('"+slot+"', 'pgoutput')")
	connector, err := debezium.Outbox(dsn, slot, "p", "public.outboxevent")
	if err != nil {
		t.Fatal(err)
	}
	ctx, dir := testkit.Context(t), t.TempDir()
	p, err := debezium.Start(ctx, debezium.Options{Connector: connector, Brokers: kafka.Addr(), Dir: dir, Heap: "512m", Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, end := range []func() error{
		func() error { return p.Kill(ctx) },
		func() error { return p.Stop(ctx) },
		func() error { return nil },
	} {
		if err := p.StartAgain(ctx); err != nil {
			t.Fatal(err)
		}
		if err := p.AwaitStreaming(ctx); err != nil {
			t.Fatal(err)
		}
		before := len(testkit.ReadAll(t, kafka.Addr(), "outbox.event."+aggregate))
		testkit.Exec(t, dsn, "insert into outboxevent (aggregatetype, aggregateid, type, payload) values ('"+aggregate+"', '1', 'Created', '{}')")
		testkit.Await(t, "a record", func() bool {
			return len(testkit.ReadAll(t, kafka.Addr(), "outbox.event."+aggregate)) > before
		})
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "offsets")); err != nil {
		t.Errorf("the stopped worker saved no offsets: %v", err)
	}
	if status, err := p.Status(ctx); err != nil || status.State != debezium.StateRunning {
		t.Errorf("Status = %+v, %v, want RUNNING", status, err)
	}
}

func TestAFailedTaskIsSaid(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t, 0).NewDB(t)
	testkit.Exec(t, dsn, table)
	connector, err := debezium.Outbox(dsn, testkit.Unique("dbz"), "missing", "public.outboxevent")
	if err != nil {
		t.Fatal(err)
	}
	p, err := debezium.Start(testkit.Context(t), debezium.Options{Connector: connector, Brokers: testkit.Kafka(t).Addr(), Heap: "512m"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	var failed *debezium.TaskError
	if err := p.AwaitStreaming(testkit.Context(t)); !errors.As(err, &failed) || !strings.Contains(failed.Trace, "ublication") {
		t.Errorf("AwaitStreaming = %v, want a TaskError about the publication", err)
	}
}
