package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/debezium"
	"github.com/walpost/walpost/internal/testkit/fetch"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
)

// startRealDebezium starts Debezium with the connector's file; the test is skipped
// where there is no Java, or no way to get the jars.
func (o *outbox) startRealDebezium(connector, dir string) *debezium.Process {
	o.t.Helper()
	data, err := os.ReadFile(connector)
	if err != nil {
		o.t.Fatal(err)
	}
	var keys map[string]string
	if err := json.Unmarshal(data, &keys); err != nil {
		o.t.Fatal(err)
	}
	p, err := debezium.Start(testkit.Context(o.t), debezium.Options{
		Name: keys["name"], Connector: keys, Brokers: o.brokers, Dir: dir, Heap: "512m", Log: o.t.Logf,
		Worker: map[string]string{"offset.flush.interval.ms": "1000"},
	})
	var noJava *kafkaserver.NoJavaError
	var noJars *fetch.Error
	if errors.As(err, &noJava) || errors.As(err, &noJars) {
		o.t.Skip(err)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() {
		if o.t.Failed() {
			o.t.Logf("log of Debezium:\n%s", p.LogTail())
		}
		if err := p.Close(); err != nil {
			o.t.Error(err)
		}
	})
	if err := p.AwaitStreaming(testkit.Context(o.t)); err != nil {
		o.t.Fatal(err)
	}
	return p
}

// load writes rows from n0 on, until stop, which gives the number of the last.
func (o *outbox) load(n0 int) (stop func() (last int)) {
	o.t.Helper()
	conn := testkit.Connect(o.t, o.dsn)
	ctx, cancel := context.WithCancel(o.t.Context())
	var writer sync.WaitGroup
	n := n0
	writer.Go(func() {
		for ctx.Err() == nil {
			_, err := conn.Exec(o.t.Context(), `insert into `+o.table+` (aggregatetype, aggregateid, type, payload)
				select 'order', (n % 97)::text, 'Created', json_build_object('n', n) from generate_series($1::int, $1 + 9) n`, n)
			if err != nil {
				o.t.Error(err)
				return
			}
			n += 10
		}
	})
	stopped := sync.OnceFunc(func() { cancel(); writer.Wait() })
	o.t.Cleanup(stopped)
	return func() int { stopped(); return n - 1 }
}

// TestSwapWithDebezium: under load, a real Debezium is killed, walpost takes its
// slot over and is killed itself, and hands the slot back.
func TestSwapWithDebezium(t *testing.T) {
	t.Parallel()
	o := bareDebezium(t, testkit.Postgres(t, kafkaMajor).NewDB(t))
	o.createTopic("order")
	connector, worker := o.connectorFiles(nil)
	dir := t.TempDir()
	p := o.startRealDebezium(connector, dir)
	offsets := "--offset-file=" + filepath.Join(dir, "offsets")

	stop := o.load(1)
	o.awaitCount("order", 5_000)
	if err := p.Kill(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	o.awaitSlotFree()
	byDebezium := len(o.read("order"))
	stdout, stderr, code := o.runPlain("debezium", "takeover", connector, "--worker", worker, "--plan", "-o", "json", offsets)
	var plan struct {
		Result string
		Stored struct{ State, Text string } `json:"stored_offset"`
	}
	if err := json.Unmarshal([]byte(stdout), &plan); err != nil || code != 0 || plan.Stored.State != "agrees" && plan.Stored.State != "ahead" {
		t.Errorf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	t.Logf("Debezium published %d; its offset: %s", byDebezium, plan.Stored.Text)

	r := o.takeover(connector, worker, "--settle", "1s", offsets)
	o.awaitCount("order", byDebezium+2_000)
	r.kill()
	r = o.runDebezium(connector, worker)
	o.awaitCount("order", byDebezium+4_000)
	last := stop()
	o.awaitConfirmed()
	r.stop()
	if repeats := checkNumbers(t, o.read("order"), last); repeats != 0 {
		t.Errorf("%d repeats after the takeover", repeats)
	}

	// The stored offset is older than the slot now, and Debezium would fail for it.
	if err := os.Remove(filepath.Join(dir, "offsets")); err != nil {
		t.Fatal(err)
	}
	if err := p.StartAgain(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	if err := p.AwaitStreaming(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	stop = o.load(last + 1)
	o.awaitCount("order", last+3_000)
	last = stop()
	o.awaitCount("order", last)
	repeats := checkNumbers(t, o.read("order"), last)
	t.Logf("handed back: %d repeats of %d", repeats, last)
}
