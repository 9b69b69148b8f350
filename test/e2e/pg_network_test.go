package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/pgserver"
	"github.com/walpost/walpost/internal/testkit/proxy"
)

// TestConnectionCut: connections that are reset, everywhere in the stream.
func TestConnectionCut(t *testing.T) {
	t.Parallel()
	o := newOutbox(t, 15)
	o.createTopic("order")
	via, line := o.viaProxy()
	r := via.start()
	w := o.startTraffic("order")
	published := uint64(0)
	flow := func(what string) {
		t.Helper()
		published = r.await("events after "+what, func(s admin.Status) bool { return s.Slot.Streaming && s.Published.Events >= published+20 }).Published.Events
	}
	flow("the start")
	for range 5 {
		line.Cut()
		flow("a cut")
	}
	for _, n := range []int64{1, 97, 1024, 4099, 20_011} {
		accepted := line.Accepted()
		line.DropAfter(n, proxy.ToClient)
		testkit.Await(t, "a new connection", func() bool { return line.Accepted() > accepted })
		flow("a broken message")
	}
	line.Refuse()
	line.Cut()
	r.awaitReason("postgres_unreachable")
	line.Accept()
	flow("a refusal")
	w.stop()
	if repeats := o.checkTraffic("order"); repeats != 0 {
		t.Errorf("%d repeats from a process that stayed up", repeats)
	}
	r.stop()
}

// TestConnectionStalled: the network stands still, in both directions or in one,
// for longer than the server waits. It frees the slot; the relay comes back.
func TestConnectionStalled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		stall func(*proxy.Proxy)
		freed bool // the server misses us
	}{
		{"both", (*proxy.Proxy).Stall, true},
		{"to the server", func(p *proxy.Proxy) { p.StallTo(proxy.ToServer) }, true},
		{"to the client", func(p *proxy.Proxy) { p.StallTo(proxy.ToClient) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOutbox(t, 18)
			o.createTopic("order")
			via, line := o.withParam("options", "-c wal_sender_timeout=2s").viaProxy()
			r := via.start()
			w := o.startTraffic("order")
			r.awaitPublished(20)
			tt.stall(line)
			before := query[int](o, `select count(*) from outbox_events`)
			testkit.Await(t, "traffic that does not arrive", func() bool { return query[int](o, `select count(*) from outbox_events`) > before+100 })
			if tt.freed {
				testkit.AwaitWithin(t, 8*time.Second, "the server to free the slot", func() bool {
					return query[bool](o, `select not active from pg_replication_slots where slot_name = $1`, o.slot)
				})
			}
			if code, _, err := r.get("/livez"); code != 200 || err != nil {
				t.Errorf("livez of a relay that waits: %d, %v", code, err)
			}
			line.Resume()
			w.stop()
			if repeats := o.checkTraffic("order"); repeats != 0 {
				t.Errorf("%d repeats from a process that stayed up", repeats)
			}
			r.awaitReady()
			r.stop()
		})
	}
}

// TestWrongPassword: nobody restarts in a loop, nobody prints it, and what is
// corrected on the server takes effect.
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	const right, wrong = "s3cret-Right", "s3cret-Wrong"
	server := testkit.PrivatePostgres(t, pgserver.Options{Major: 18, FsyncOff: true, Password: right})
	o := newOutboxAt(t, server.DSN("postgres"), testkit.Kafka(t).Addr())
	o.createTopic("order")
	o.exec(`create role relay login replication password '` + right + `'`)
	bad := *o
	bad.dsn = server.DSNAs("postgres", "relay", wrong)

	r := bad.start()
	s := r.awaitReason("postgres_refuses")
	if s.State != "holding" || !strings.Contains(content(text(s.Detail)), "password authentication failed") || !strings.Contains(content(text(s.Hint)), "check the password of role") {
		t.Errorf("state %s, detail %q, hint %q", s.State, content(text(s.Detail)), content(text(s.Hint)))
	}
	if code, body := r.readyz("?standby=ok"); code != 503 || body.Reason != "postgres_refuses" {
		t.Errorf("readyz: %d %+v", code, body)
	}
	for _, args := range [][]string{{"init"}, {"status", "--admin-listen", "off"}} {
		stdout, stderr, code := bad.run(args...)
		lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
		if code != 2 || stdout != "" || len(lines) != 2 || !strings.HasPrefix(lines[0], "error: connect to PostgreSQL at ") ||
			!strings.Contains(lines[0], "(SQLSTATE 28P01)") || !strings.HasPrefix(lines[1], "hint: check the password of role ") {
			t.Errorf("%s: exit %d\n%s%s", args[0], code, stdout, stderr)
		}
		if strings.Contains(stdout+stderr, "s3cret") {
			t.Errorf("%s prints the password:\n%s%s", args[0], stdout, stderr)
		}
	}
	_, body, err := r.get("/status.json")
	if err != nil || strings.Contains(r.logText()+string(body), "s3cret") {
		t.Errorf("the relay prints the password (%v):\n%s\n%s", err, body, r.logText())
	}
	o.insertMany("order", 1, 10, 3)
	o.exec(`alter role relay password '` + wrong + `'`)
	r.awaitPublished(10)
	if repeats := checkNumbers(t, o.read("order"), 10); repeats != 0 {
		t.Errorf("%d repeats", repeats)
	}
	r.stop()
}

// TestUnreachableServer: at the start it is waited for.
func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	o := newOutbox(t, 14)
	o.createTopic("order")
	via, line := o.viaProxy()
	line.Refuse()
	r := via.start()
	r.awaitReason("postgres_unreachable")
	if _, stderr, code := via.run("status", "--admin-listen", "off"); code != 1 || !strings.HasPrefix(stderr, "error: connect to PostgreSQL at ") || !strings.Contains(stderr, "\nhint: ") {
		t.Errorf("status: exit %d\n%s", code, stderr)
	}
	o.insertMany("order", 1, 3, 1)
	line.Accept()
	r.awaitPublished(3)
	r.stop()
}
