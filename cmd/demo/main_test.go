package main

import (
	"bytes"
	"context"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/walpost/walpost/internal/demo"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/internal/testkit/topic"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// output is a stdout that tells when a text has been written to it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	want string
	seen func()
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.text.Write(p)
	if o.seen != nil && strings.Contains(o.text.String(), o.want) {
		o.seen()
	}
	return n, err
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func needServers(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a PostgreSQL server; -short runs the pure tests only")
	}
}

// gone says that the server which the demo started does not listen any more.
func gone(t *testing.T, stderr string) {
	t.Helper()
	match := regexp.MustCompile(`PostgreSQL .* on port (\d+)`).FindStringSubmatch(stderr)
	if match == nil {
		t.Fatalf("no port in %q", stderr)
	}
	if conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", match[1])); err == nil {
		conn.Close()
		t.Errorf("the server on port %s is still there", match[1])
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	needServers(t)
	var stdout, stderr output
	if code := run(t.Context(), []string{"--events", "500"}, &stdout, &stderr); code != 0 {
		t.Errorf("exit code %d", code)
	}
	t.Logf("%s\n%s", &stderr, &stdout)
	for _, want := range []string{"committed     500 events", "read back     500 records", "missing       0\n", "\nOK\n"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in the result", want)
		}
	}
	gone(t, stderr.String())
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	needServers(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stdout, stderr := output{want: "order_paid", seen: cancel}, output{}
	if code := run(ctx, nil, &stdout, &stderr); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := stderr.String(); strings.Contains(got, "error") || !strings.Contains(got, "committed") {
		t.Errorf("got %s", got)
	}
	gone(t, stderr.String())

	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	stdout, stderr = output{}, output{want: "committing", seen: cancel}
	if code := run(ctx, []string{"--events", "1000000"}, &stdout, &stderr); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if got, want := stderr.String(), "\nerror: "+errInterrupted.Error()+"\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got %s", got)
	}
	gone(t, stderr.String())
}

// On servers of somebody else nothing of theirs is touched, and nothing of ours
// stays, also when it breaks off.
func TestExternal(t *testing.T) {
	t.Parallel()
	needServers(t)
	server, err := pgserver.Start(t.Context(), pgserver.Options{FsyncOff: true, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "outbox.event.order"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	conn, err := pgx.Connect(t.Context(), server.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), "create table outbox_events (x int); create table orders (x int)"); err != nil {
		t.Fatal(err)
	}
	contents := func() []string {
		rows, err := conn.Query(t.Context(), `
			select 'schema ' || nspname from pg_namespace where nspname !~ '^pg_'
			union all select 'table ' || oid::regclass from pg_class where relkind = 'r' and relnamespace::regnamespace::text !~ '^(pg_|information_schema)'
			union all select 'publication ' || pubname from pg_publication
			union all select 'slot ' || slot_name from pg_replication_slots
			union all select 'function ' || oid::regprocedure from pg_proc where pronamespace::regnamespace::text !~ '^(pg_|information_schema)'
			order by 1`)
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		topics, err := topic.List(t.Context(), cluster.ListenAddrs())
		if err != nil {
			t.Fatal(err)
		}
		return append(list, topics...)
	}
	before := contents()
	args := []string{"--events", "300", "--dsn", server.DSN("postgres"), "--brokers", strings.Join(cluster.ListenAddrs(), ",")}
	var stdout, stderr output
	if code := run(t.Context(), args, &stdout, &stderr); code != 0 {
		t.Errorf("exit code %d: %s%s", code, &stdout, &stderr)
	}
	if diff := cmp.Diff(before, contents()); diff != "" {
		t.Errorf("left behind (-before +after):\n%s", diff)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	args[1] = "1000000"
	stdout, stderr = output{}, output{want: "committing", seen: cancel}
	if code := run(ctx, args, &stdout, &stderr); code != 1 {
		t.Errorf("exit code %d: %s%s", code, &stdout, &stderr)
	}
	if diff := cmp.Diff(before, contents()); diff != "" {
		t.Errorf("left behind by an interrupted run (-before +after):\n%s", diff)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	const see = "hint: see \"go run ./cmd/demo --help\"\n"
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"now"}, "error: demo takes no argument, got \"now\"\n" + see},
		{[]string{"--evnts", "5"}, "error: unknown flag: --evnts\n" + see},
		{[]string{"--events", "-1"}, "error: --events: -1 is less than 0\nhint: name the number of events to commit\n"},
		{[]string{"--serve", "--events", "5"}, "error: --serve and --events are both set\nhint: keep one of them: --serve writes no events\n"},
		{[]string{"--serve", "--brokers", "kafka:9092"}, "error: --serve starts servers, and --dsn and --brokers name some that run\nhint: leave out --serve, or --dsn and --brokers\n"},
		{[]string{"--kafka", "real"}, "error: --kafka: unknown value \"real\"\nhint: use fake or maven\n"},
		{[]string{"--kafka", "maven", "--brokers", "a:1"}, "error: --kafka and --brokers are both set\nhint: keep one of them\n"},
		{
			[]string{"--dsn", "mysql://u:secret@h/d"},
			"error: --dsn: the DSN cannot be read: it does not begin with postgres://\n" +
				"hint: write it as \"postgres://user@host:5432/database?sslmode=verify-full\" or \"host=… dbname=… user=…\"; " +
				"in a URL, escape : / ? # @ of a password as %3A %2F %3F %23 %40\n",
		},
	} {
		var stdout, stderr output
		if code := run(t.Context(), tc.args, &stdout, &stderr); code != 2 {
			t.Errorf("%v: exit code %d", tc.args, code)
		}
		if got := stdout.String() + stderr.String(); got != tc.want {
			t.Errorf("%v:\ngot  %s\nwant %s", tc.args, got, tc.want)
		}
	}
	var stdout, stderr output
	if code := run(t.Context(), []string{"--help"}, &stdout, &stderr); code != 0 || stderr.String() != "" {
		t.Errorf("--help: exit code %d, %s", code, &stderr)
	}
	for _, flag := range []string{"--events N", "--dsn", "--brokers", "--kafka", "--verbose", "--serve"} {
		if !strings.Contains(stdout.String(), flag) {
			t.Errorf("no %s in the help:\n%s", flag, &stdout)
		}
	}
}

// A failed check is exit code 1, with the faults in the table.
func TestReportFails(t *testing.T) {
	t.Parallel()
	var stdout output
	d := &demonstration{opt: &options{}, stdout: &stdout, service: demo.New(demo.Options{Schema: "public"})}
	err := d.report(demo.Check(nil, nil, []topic.Record{{Key: []byte("k")}}), 1)
	if err == nil || !strings.Contains(stdout.String(), "foreign       1, first: event \"\" with key \"k\"") || !strings.HasSuffix(stdout.String(), "FAILED\n") {
		t.Errorf("got %v\n%s", err, &stdout)
	}
}
