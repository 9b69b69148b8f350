package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/testkit"
)

// relay is a running "walpost run".
type relay struct {
	t      *testing.T
	cmd    *exec.Cmd
	exited chan struct{}

	mu    sync.Mutex
	log   []string
	admin string // address of the admin listener; empty until it is known
}

// start runs the relay with more flags; a later flag wins. It is killed when
// the test ends, and its log is shown if the test failed.
func (o *outbox) start(flags ...string) *relay {
	o.t.Helper()
	return o.startBinary(binary(o.t, false), nil, flags...)
}

func (o *outbox) startBinary(path string, env []string, flags ...string) *relay {
	o.t.Helper()
	args := append([]string{"run"}, o.flags()...)
	args = append(append(args, "--admin-listen", "127.0.0.1:0", "--log-format", "json"), flags...)
	r := &relay{t: o.t, cmd: exec.Command(path, args...), exited: make(chan struct{})}
	r.cmd.Env = append(os.Environ(), env...)
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := r.cmd.StderrPipe()
	if err != nil {
		o.t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	go r.collect(stderr)
	o.t.Cleanup(func() {
		_ = r.cmd.Process.Signal(syscall.SIGCONT)
		_ = r.cmd.Process.Kill()
		<-r.exited
		if o.t.Failed() {
			o.t.Logf("log of the relay:\n%s", r.logText())
		}
		if strings.Contains(r.logText(), "WARNING: DATA RACE") || strings.Contains(r.logText(), "panic:") {
			o.t.Errorf("data race or panic in the relay:\n%s", r.logText())
		}
	})
	return r
}

func (r *relay) collect(stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Msg, Address string }
		_ = json.Unmarshal(lines.Bytes(), &line)
		r.mu.Lock()
		r.log = append(r.log, lines.Text())
		if line.Msg == "admin listener" {
			r.admin = line.Address
		}
		r.mu.Unlock()
	}
	_ = r.cmd.Wait()
	close(r.exited)
}

func (r *relay) logText() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.log, "\n")
}

func (r *relay) running() bool {
	select {
	case <-r.exited:
		return false
	default:
		return true
	}
}

// wait waits for the end and returns the exit code, -1 after a signal.
func (r *relay) wait() int {
	r.t.Helper()
	testkit.Await(r.t, "end of the relay", func() bool { return !r.running() })
	return r.cmd.ProcessState.ExitCode()
}

func (r *relay) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// kill ends the relay with SIGKILL.
func (r *relay) kill() {
	r.t.Helper()
	r.signal(syscall.SIGKILL)
	r.wait()
}

// stop ends it with SIGTERM and demands a clean end.
func (r *relay) stop() {
	r.t.Helper()
	r.signal(syscall.SIGTERM)
	if code := r.wait(); code != 0 {
		r.t.Fatalf("exit code %d after SIGTERM", code)
	}
}

// client for the admin listener; connections are not kept, so that nothing of
// them is left when the tests end.
var client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// get asks the admin listener.
func (r *relay) get(path string) (code int, body []byte, err error) {
	r.mu.Lock()
	addr := r.admin
	r.mu.Unlock()
	if addr == "" {
		return 0, nil, fmt.Errorf("the admin listener is not up yet")
	}
	response, err := client.Get("http://" + addr + path)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// status is the newest status; ok is false while there is none.
func (r *relay) status() (s admin.Status, ok bool) {
	code, body, err := r.get("/status.json")
	if err != nil || code != 200 || json.Unmarshal(body, &s) != nil {
		return s, false
	}
	return s, true
}

// await waits until the status is as wanted.
func (r *relay) await(what string, cond func(s admin.Status) bool) admin.Status {
	r.t.Helper()
	var last admin.Status
	testkit.Await(r.t, what, func() bool {
		if !r.running() {
			r.t.Fatalf("the relay has ended (%v) while waiting for: %s", r.cmd.ProcessState, what)
		}
		s, ok := r.status()
		last = s
		return ok && cond(s)
	})
	return last
}

func (r *relay) awaitReady() {
	r.t.Helper()
	r.await("readiness", func(s admin.Status) bool { return s.Ready })
}

// awaitPublished waits until this process has published n events and has none
// in flight.
func (r *relay) awaitPublished(n uint64) {
	r.t.Helper()
	r.await(fmt.Sprintf("%d published events", n), func(s admin.Status) bool {
		return s.Published.Events >= n && s.InFlight.Events == 0
	})
}

// reason waits until the relay is not ready for this reason.
func (r *relay) awaitReason(reason string) admin.Status {
	r.t.Helper()
	return r.await("reason "+reason, func(s admin.Status) bool {
		return !s.Ready && s.Reason != nil && *s.Reason == reason
	})
}
