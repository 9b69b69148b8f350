package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/failpoint"
	"github.com/walpost/walpost/internal/testkit"
)

// failpoints is the program with the failpoints in it.
func failpoints(t *testing.T) string {
	t.Helper()
	return testkit.Program(t, "cmd/walpost", append([]string{"-tags=failpoint"}, testkit.RaceFlag()...)...)
}

// trial is an outbox under load, relayed by one process after another that has a
// point armed.
type trial struct {
	*outbox
	load *load
}

// trialAggregates share the load; a transaction has events of several.
const trialAggregates = 31

// newTrial starts with a transaction that needs many requests' worth of turns,
// then small ones until it is judged.
func newTrial(t *testing.T) *trial {
	t.Helper()
	o := newOutbox(t, kafkaMajor)
	o.createTopic("order")
	o.insertMany("order", 1, 500, trialAggregates)
	return &trial{o, o.startLoad("order", 501, 7, trialAggregates)}
}

// armed starts a process with a point armed; "" arms nothing.
func (f *trial) armed(spec string, args ...any) *relay {
	f.t.Helper()
	path := failpoints(f.t)
	return f.startBinary(path, []string{failpoint.Env + "=" + fmt.Sprintf(spec, args...)})
}

// leaveTail has a predecessor die with events in Kafka that neither the slot nor
// the checkpoint knows of.
func (f *trial) leaveTail() {
	f.t.Helper()
	f.armed("sink.after-settle=crash@12").died("sink.after-settle")
}

// prepare does what it takes for the next process to come to the point.
func (f *trial) prepare(p failpoint.Point) {
	f.t.Helper()
	if p.Reach == failpoint.Recovering {
		f.leaveTail()
	}
}

// provoke has a process that is at work come to the point.
func (f *trial) provoke(p failpoint.Point, r *relay) {
	f.t.Helper()
	if p.Reach == failpoint.Stopping {
		r.await("events", func(s admin.Status) bool { return s.Published.Events > 0 })
		r.signal(syscall.SIGTERM)
	}
}

// judge ends the load, has a process without failpoints deliver the rest, and
// verifies that Kafka has every event once, and in order.
func (f *trial) judge() {
	f.t.Helper()
	f.finish(f.start())
}

func (f *trial) finish(r *relay) {
	f.t.Helper()
	r.await("the stream", func(s admin.Status) bool { return s.Slot.Streaming })
	f.load.awaitMore(100) // it flows again, and is not only made up for
	written := f.load.stop()
	f.awaitConfirmed()
	r.stop()
	f.noRepeats("order", written)
}

// at says whether the process has come to the point.
func (r *relay) at(point string) bool {
	return strings.Contains(r.logText(), "failpoint "+point+": ")
}

func (r *relay) awaitAt(point string) {
	r.t.Helper()
	testkit.Await(r.t, "arrival at "+point, func() bool {
		if !r.running() && !r.at(point) {
			r.t.Fatalf("the relay has ended (%v) before it came to %s", r.cmd.ProcessState, point)
		}
		return r.at(point)
	})
}

// died waits for the crash at the point, and for nothing else.
func (r *relay) died(point string) {
	r.t.Helper()
	testkit.Await(r.t, "the crash at "+point, func() bool { return !r.running() })
	status, ok := r.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		r.t.Fatalf("the relay ended otherwise than by a crash at %s: %v", point, r.cmd.ProcessState)
	}
	if n := strings.Count(r.logText(), "failpoint "+point+": crash at hit "); n != 1 {
		r.t.Fatalf("the relay was killed, and came to %s %d times", point, n)
	}
}

// works waits until the process has delivered new events.
func (r *relay) works() {
	r.t.Helper()
	s := r.await("a status", func(admin.Status) bool { return true })
	r.await("events behind the fault", func(now admin.Status) bool { return now.Published.Events >= s.Published.Events+100 })
}

// TestFailpointCrash: the relay dies at every point there is. Its successor dies
// there too, some hits later if it comes that far, and the one after that
// delivers what is left: nothing is lost, doubled or out of order.
func TestFailpointCrash(t *testing.T) {
	t.Parallel()
	const later = 4
	for _, p := range failpoint.Points() {
		if p.Reach == failpoint.Snapshotting {
			continue // TestSnapshotKilled
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			f := newTrial(t)
			f.prepare(p)
			r := f.armed("%s=crash@1", p.Name)
			f.provoke(p, r)
			r.died(p.Name)

			r = f.armed("%s=crash@%d", p.Name, later)
			done := false
			testkit.Await(t, "another crash, or events", func() bool {
				s, ok := r.status()
				done = ok && s.Published.Events >= 300
				return done || !r.running()
			})
			if done {
				_ = r.cmd.Process.Kill() // it may have died there at this very moment
				r.wait()
			} else {
				r.died(p.Name)
			}
			f.judge()
		})
	}
}

// TestFailpointFail: each step that can fail does so once, one after another, and
// the same process goes on. Then it is killed: it must not have kept something
// for itself that its successor needs.
func TestFailpointFail(t *testing.T) {
	t.Parallel()
	for _, reach := range []failpoint.Reach{failpoint.Running, failpoint.Recovering, failpoint.Stopping} {
		for _, hit := range []int{1, 4} {
			var armed []string
			for _, p := range failpoint.Points() {
				// Most of what begins a session happens once.
				if p.Fails && p.Reach == reach && (hit == 1 || slices.Contains(repeated, p.Name)) {
					armed = append(armed, p.Name)
				}
			}
			if len(armed) == 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s at hit %d", strings.Join(armed, " "), hit), func(t *testing.T) {
				t.Parallel()
				f := newTrial(t)
				p := failpoint.Point{Reach: reach}
				f.prepare(p)
				r := f.armed("%s=fail@%d", strings.Join(armed, fmt.Sprintf("=fail@%d;", hit)), hit)
				f.provoke(p, r)
				for _, name := range armed {
					r.awaitAt(name)
				}
				if reach == failpoint.Stopping {
					r.wait()
				} else {
					r.works()
					r.kill()
				}
				f.judge()
			})
		}
	}
}

// repeated are points that a process comes to again and again, and where another
// hit than the first is another case: the first checkpoint makes partitions
// known, the first requests meet topics that are new.
var repeated = []string{
	"checkpoint.before-save", "checkpoint.after-save", "sink.before-send", "sink.after-send", "sink.in-tail",
	"slot.before-status", "slot.after-status",
}

// TestFailpointStall: the process hangs at a point, and is killed there, or goes
// on as if nothing had been.
func TestFailpointStall(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		point  string
		hit    int
		tail   bool
		killed bool
	}{
		{"sink.before-send", 3, false, true},   // received, and must not be confirmed
		{"sink.before-settle", 3, false, true}, // Kafka has it, and nobody knows
		{"sink.fence-added", 1, true, true},    // a transaction stays open
		{"checkpoint.before-save", 3, false, true},
		{"slot.before-status", 3, false, true},
		{"sink.after-settle", 3, false, false},
		{"sink.before-register", 1, false, false},
		{"sink.in-tail", 5, true, false},
		{"checkpoint.before-save", 3, false, false},
		{"slot.before-status", 3, false, false},
	} {
		t.Run(fmt.Sprintf("%s killed=%v", test.point, test.killed), func(t *testing.T) {
			t.Parallel()
			f := newTrial(t)
			if test.tail {
				f.leaveTail()
			}
			file := newFile(t)
			r := f.armed("%s=stall:%s@%d", test.point, file, test.hit)
			r.awaitAt(test.point)
			f.load.awaitMore(200) // it is received meanwhile, and the server is told where we are
			if test.killed {
				r.kill()
				f.judge()
				return
			}
			need(t, os.Remove(file))
			f.finish(r)
		})
	}
}

// TestFailpointZombie: the process is frozen at the point where it is about to
// write, and another one takes the slot. When that one has just looked at what is
// there, the first wakes up. What it was about to write must be refused, also
// where its successor has not written yet; it ends, or stands back.
func TestFailpointZombie(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		point string
		hit   int
		tail  bool
	}{
		{"sink.before-send", 5, false},
		{"sink.before-register", 1, false},
		{"sink.after-register", 1, false},
		{"checkpoint.before-save", 2, false},
		{"sink.fence-begun", 1, true},
		{"sink.fence-added", 1, true},
		{"sink.fence-done", 1, true},
		{"relay.recovered", 1, true},
	} {
		t.Run(test.point, func(t *testing.T) {
			t.Parallel()
			f := newTrial(t)
			if test.tail {
				f.leaveTail()
			}
			stall := newFile(t)
			first := f.armed("%s=stall:%s@%d", test.point, stall, test.hit)
			first.awaitAt(test.point)
			first.signal(syscall.SIGSTOP)
			f.exec(`select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1`, f.slot)
			recovered := newFile(t)
			second := f.armed("relay.recovered=stall:%s", recovered)
			second.awaitAt("relay.recovered")

			need(t, os.Remove(stall))
			first.signal(syscall.SIGCONT)
			testkit.Await(t, "the end or the retreat of the frozen instance", func() bool {
				s, ok := first.status()
				return !first.running() || ok && s.State == "waiting_for_slot" && s.InFlight.Events == 0
			})
			if first.running() {
				first.kill()
			} else if code := first.wait(); code != 5 {
				t.Errorf("the frozen instance ended with code %d, want 5", code)
			}
			need(t, os.Remove(recovered))
			f.finish(second)
		})
	}
}

// newFile makes an empty file, which a stall waits for the end of.
func newFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stall")
	need(t, os.WriteFile(file, nil, 0o600))
	return file
}

// TestFailpointUnknown: a point that does not exist ends the program.
func TestFailpointUnknown(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the program: run without -short")
	}
	cmd := exec.Command(failpoints(t), "version")
	cmd.Env = append(os.Environ(), failpoint.Env+"=sink.after-snd=crash")
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 2 {
		t.Errorf("exit code %d (%v), want 2", code, err)
	}
	for _, want := range []string{`error: WALPOST_FAILPOINTS: "sink.after-snd=crash": there is no point "sink.after-snd"`, "hint: ", "sink.after-send"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("without %q:\n%s", want, out)
		}
	}
}
