package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
)

// rights are what keeps a restart from repeating events.
type rights struct {
	transactionalID bool // WRITE on the transactional id
	checkpoint      bool // the tables in PostgreSQL
	read            bool // READ on the topics
}

// TestRights: each of the rights is denied, and the relay is killed in the middle
// of a large transaction and of many small ones. Whatever is missing, nothing is
// lost and the first copies are in order; what comes twice is counted, and the
// relay says in its status, in its log and in "walpost status" which protection
// is off, and why.
func TestRights(t *testing.T) {
	t.Parallel()
	cluster := privateKafka(t, kafkaserver.Options{SASL: true, Authorizer: true})
	for _, test := range []struct {
		name    string
		granted rights
		off     string // the protection that is off
		because string // of its reason
		logged  string
		repeats bool // whether they must come, not whether they may
	}{
		{name: "all granted", granted: rights{true, true, true}},
		{"no transactional id", rights{false, true, true}, "fence", "Transactional ID", "no fence against predecessors", false},
		{"no checkpoint", rights{true, false, true}, "checkpoint", "permission denied", "no checkpoint:", true},
		{"no read", rights{true, true, false}, "tail", "Topic Authorization Failed", "end of a partition not read", true},
	} {
		// One after the other: they share a broker, and compare what they count.
		t.Run(test.name, func(t *testing.T) {
			repeats, o, r := killUnderRights(t, cluster, test.granted)
			s := r.await("nothing in flight", func(s admin.Status) bool { return s.InFlight.Events == 0 })
			t.Logf("%d repeats; the last relay published %d events and found %d in Kafka", repeats, s.Published.Events, s.Ignored["already_in_kafka"])
			switch {
			case test.off == "" && repeats != 0:
				t.Errorf("%d repeats", repeats)
			case test.repeats && repeats == 0:
				t.Error("no repeats: nothing was in flight, or what is said to be off is not")
			}
			saysWhatIsOff(t, o, r, s, test.off, test.because, test.logged)
			r.stop()
		})
	}
}

// saysWhatIsOff verifies that one protection is off, and the others are not.
func saysWhatIsOff(t *testing.T, o *outbox, r *relay, s admin.Status, off, because, logged string) {
	t.Helper()
	stdout, stderr, code := o.run("status", "--admin-listen", r.admin)
	if code != 0 && code != 3 {
		t.Errorf("walpost status: exit %d\n%s", code, stderr)
	}
	for name, why := range map[string]*string{"fence": s.Protection.Fence, "tail": s.Protection.Tail, "checkpoint": s.Protection.Checkpoint} {
		shown := false
		for line := range strings.Lines(stdout) {
			shown = shown || strings.HasPrefix(line, "at-least-once") && strings.Contains(line, name+" off")
		}
		if name != off {
			if why != nil || shown {
				t.Errorf("%s is said to be off: %q\n%s", name, value(why), stdout)
			}
			continue
		}
		if !strings.Contains(value(why), because) {
			t.Errorf("/status.json: %s off: %q, want something of %q", name, value(why), because)
		}
		if !shown || !strings.Contains(stdout, because) {
			t.Errorf("walpost status does not show that %s is off because of %q:\n%s", name, because, stdout)
		}
	}
	for _, warning := range []string{"no fence against predecessors", "no checkpoint:", "end of a partition not read"} {
		if got := strings.Contains(r.logText(), warning); got != (warning == logged) {
			t.Errorf("the log says %q: %v", warning, got)
		}
	}
}

// killUnderRights kills a relay that has only these rights several times, and
// returns how many events came twice, the outbox as the relay sees it, and the
// last relay.
func killUnderRights(t *testing.T, cluster *kafkaserver.Cluster, granted rights) (repeats int, seen *outbox, last *relay) {
	t.Helper()
	const large, kills = 30_000, 3
	pg := testkit.Postgres(t, kafkaMajor)
	o := newOutboxAt(t, pg.NewDB(t), cluster.Addr())
	name := o.createTopic("order")
	principal := "User:" + kafkaserver.User
	allow(t, cluster, principal, name, kafka.ACLOperationTypeWrite)
	if granted.read {
		allow(t, cluster, principal, name, kafka.ACLOperationTypeRead)
	}
	if granted.transactionalID {
		id := "walpost-" + query[string](o, `select system_identifier::text from pg_control_system()`) + "-" + o.slot
		allowOn(t, cluster, kafka.ResourceTypeTransactionalID, principal, id, kafka.ACLOperationTypeWrite)
	}
	role := testkit.Unique("relay")
	o.exec(`create role ` + role + ` login replication password 'secret'`)
	grants := []string{`grant usage on schema walpost to ` + role}
	if granted.checkpoint {
		grants = append(grants, `grant select, insert, update, delete on walpost.checkpoint, walpost.checkpoint_offset to `+role)
	}
	for _, sql := range grants {
		o.exec(sql)
	}
	dropRole := o.dsn
	t.Cleanup(func() {
		execAfter(t, dropRole, `drop owned by `+role)
		execAfter(t, dropRole, `drop role `+role)
	})
	limited := *o
	limited.dsn = pg.DSNAs(query[string](o, `select current_database()`), role, "secret")
	password := filepath.Join(t.TempDir(), "password")
	need(t, os.WriteFile(password, []byte(kafkaserver.Password), 0o600))
	start := func() *relay {
		return limited.startAt(cluster.SASLAddr(), "--kafka-sasl-mechanism", "SCRAM-SHA-256", "--kafka-sasl-username", kafkaserver.User,
			"--kafka-sasl-password-file", password)
	}
	// What is delivered of a transaction that is not complete cannot be confirmed:
	// after a kill it is there, and comes again from PostgreSQL.
	r := start()
	r.awaitReady()
	o.insertMany("order", 1, large, 997)
	for _, at := range []int{large / 5, large / 2} {
		o.awaitCount("order", at)
		r.kill()
		r = start()
	}
	o.awaitConfirmed()
	// Small ones: most of what is delivered is confirmed soon.
	l := o.startLoad("order", large+1, 20, 997)
	for range kills {
		l.awaitMore(400)
		r.kill()
		r = start()
	}
	l.awaitMore(400)
	written := l.stop()
	o.awaitConfirmed()
	return checkNumbers(t, o.read("order"), written), &limited, r
}
