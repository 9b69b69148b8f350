package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/walpost/walpost/internal/testkit/proc"
)

// walpost is the product's binary with a connector's configuration.
type walpost struct {
	binary string
	dir    string
	java   int
	args   []string // more
	port   *proc.Port

	takeover bool // it waits for Debezium to let go of its slot
	process  *proc.Process
}

// reproduce is the flag that some configurations need, as the refusal says.
const (
	reproduce     = "--debezium-reproduce-debug-text"
	reproduceHint = "debezium.reproduce_debug_text"
)

// buildWalpost makes the binary in a folder.
func buildWalpost(ctx context.Context, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	path := filepath.Join(dir, "walpost")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/walpost")
	cmd.Dir = strings.TrimSpace(string(root))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build walpost: %w\n%s", err, out)
	}
	return path, nil
}

// startWalpost starts it in a folder of its own, which holds its configuration and
// its log.
func startWalpost(binary, dir string, java int, connector connectorFile, brokers []string, args ...string) (*walpost, error) {
	w := &walpost{binary: binary, dir: dir, java: java, args: append([]string{"--topics-create"}, args...)}
	return w, w.open(connector, brokers)
}

// open writes the configuration and starts it.
func (w *walpost) open(connector connectorFile, brokers []string) error {
	content, err := json.MarshalIndent(connector, "", "  ")
	if err != nil {
		return err
	}
	worker := "bootstrap.servers=" + strings.Join(brokers, ",") + "\n"
	err = errors.Join(
		os.WriteFile(w.file("connector.json"), content, 0o600),
		os.WriteFile(w.file("worker.properties"), []byte(worker), 0o600),
	)
	if err != nil {
		return err
	}
	if w.port, err = proc.ReservePort(); err != nil {
		return err
	}
	if err := w.start(); err != nil {
		w.port.Release()
		return err
	}
	return nil
}

func (w *walpost) start() error {
	command := []string{"run", "--debezium"}
	if w.takeover {
		command = []string{"debezium", "takeover"}
	}
	var err error
	w.process, err = proc.Start(proc.Spec{
		Path: w.binary,
		Args: slices.Concat(command, []string{
			w.file("connector.json"), "--worker", w.file("worker.properties"), "--debezium-java-version", fmt.Sprint(w.java),
			"--admin-listen", fmt.Sprintf("127.0.0.1:%d", w.port.Number), "--log-format", "json",
		}, w.args),
		Env: proc.Env(), Log: w.file("walpost.log"), User: proc.Self(), DeathSignal: syscall.SIGKILL,
	})
	return err
}

func (w *walpost) file(name string) string { return filepath.Join(w.dir, name) }

func (w *walpost) running() bool { return w.process.Running() }

// stop ends it softly, or hard if that takes too long.
func (w *walpost) stop(ctx context.Context) error {
	if !w.running() {
		return w.process.Err()
	}
	if err := w.process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	soft, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if w.process.Wait(soft) == nil {
		return w.process.Err()
	}
	return errors.Join(errors.New("walpost did not stop in 15s"), w.kill(ctx))
}

func (w *walpost) kill(ctx context.Context) error {
	if !w.running() {
		return nil
	}
	return errors.Join(w.process.Signal(syscall.SIGKILL), w.process.Wait(ctx))
}

func (w *walpost) close(ctx context.Context) error {
	err := w.kill(ctx)
	w.port.Release()
	return err
}

// why it ended: the text of its error with the hint.
func (w *walpost) why() string {
	content, err := os.ReadFile(w.file("walpost.log"))
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range bytes.Lines(content) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '{' && !bytes.HasPrefix(line, []byte("warning")) {
			lines = append(lines, string(line))
		}
	}
	if len(lines) == 0 {
		return "(it says nothing)"
	}
	return strings.Join(lines, " / ")
}

// hold is something that it will not publish: why; that one partition or topic
// does not move, and the others do; and that nothing else is on its way to Kafka.
type hold struct {
	why         string
	lane, still bool
}

// holds says whether it is in front of something that it will not publish.
func (w *walpost) holds(ctx context.Context) (h hold, holds bool) {
	var status struct {
		State  string
		Detail *string
		Hint   *string
		Poison *struct{ Reason string }
		Holds  []struct {
			Class, Reason string
			Detail        *string
			Hint          *string
			Since         time.Time
		}
		InFlight struct{ Events, Partitions int } `json:"in_flight"`
	}
	if err := w.get(ctx, "/status.json", &status); err != nil {
		return h, false // it is starting, or has ended
	}
	stuck := 0
	for _, s := range status.Holds {
		// What passes is tried again for ever, and what is permanent once a minute.
		if s.Class != "passing" && time.Since(s.Since) > 500*time.Millisecond {
			stuck++
			h.why, h.lane = say(s.Reason, s.Detail, s.Hint), true
		}
	}
	if status.Poison != nil {
		h.why = say(status.Poison.Reason, status.Detail, status.Hint)
	}
	h.still = status.InFlight.Events == 0 || status.InFlight.Partitions <= stuck
	return h, stuck > 0 || status.Poison != nil
}

func say(reason string, more ...*string) string {
	for _, m := range more {
		if m != nil && !strings.Contains(reason, *m) {
			reason += "; " + *m
		}
	}
	return reason
}

func (w *walpost) get(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", w.port.Number, path), nil)
	if err != nil {
		return err
	}
	request.Close = true
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}
