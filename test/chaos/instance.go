package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// instance is a "walpost run" that is started again whenever it ends, as a
// container would be.
type instance struct {
	name     string
	binary   string
	args     []string
	logFile  string
	complain func(format string, args ...any)
	left     func(ctx context.Context, name string) // notes what a process left behind

	mu      sync.Mutex
	cmd     *exec.Cmd
	ended   chan struct{} // closed when cmd has ended
	wanted  bool
	starts  int
	codes   map[int]int
	waiting sync.WaitGroup
}

func newInstance(name string, b *bench) (*instance, error) {
	addr, err := b.recorder.listen(name)
	if err != nil {
		return nil, err
	}
	return &instance{
		name: name, binary: b.servers.binary, logFile: filepath.Join(b.dir, name+".log"),
		complain: b.complain, left: b.left, codes: map[int]int{},
		args: []string{
			"run", "--dsn", b.servers.pg.DSNVia(addr, database, "postgres", "") + "&wal_sender_timeout=4000&connect_timeout=5",
			"--slot", slotName, "--publication", slotName,
			"--brokers", strings.Join(b.servers.kafka.Addr(), ","), "--topic", topicOf + "<aggregate_type>",
			"--kafka-request-timeout", "3s", "--poll-interval", "2s", "--drain-timeout", "10s",
			"--admin-listen", "off", "--log-format", "json",
		},
	}, nil
}

// start runs it until stop is called.
func (i *instance) start() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wanted = true
	return i.launch()
}

// launch starts a process; i.mu is held.
func (i *instance) launch() error {
	if i.cmd != nil {
		return nil
	}
	log, err := os.OpenFile(i.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	cmd := exec.Command(i.binary, i.args...)
	cmd.Dir = filepath.Dir(i.logFile)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return errors.Join(err, log.Close())
	}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, log.Close())
	}
	fmt.Fprintf(log, "=== %s started as process %d\n", time.Now().UTC().Format(time.RFC3339Nano), cmd.Process.Pid)
	i.cmd, i.ended = cmd, make(chan struct{})
	i.starts++
	i.waiting.Go(func() { i.wait(cmd, i.ended, stderr, log) })
	return nil
}

// wait collects the log, and starts the next process when this one has ended.
func (i *instance) wait(cmd *exec.Cmd, ended chan struct{}, stderr io.Reader, log *os.File) {
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		fmt.Fprintln(log, line)
		for _, bad := range []string{"panic:", "DATA RACE", "unexplained sequence error", "gap in the stream"} {
			if strings.Contains(line, bad) {
				i.complain("%s said: %s", i.name, line)
			}
		}
	}
	_ = cmd.Wait()
	code := cmd.ProcessState.ExitCode()
	fmt.Fprintf(log, "=== %s process %d ended: %s\n", time.Now().UTC().Format(time.RFC3339Nano), cmd.Process.Pid, cmd.ProcessState)
	_ = log.Close()
	i.mu.Lock()
	i.codes[code]++
	i.cmd = nil
	close(ended)
	if code == 4 || code == 2 {
		i.complain("%s gave up with exit code %d", i.name, code)
		i.wanted = false
	}
	wanted := i.wanted
	i.mu.Unlock()
	looking, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	i.left(looking, i.name)
	if !wanted {
		return
	}
	time.Sleep(200 * time.Millisecond) // as an orchestrator would
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.wanted {
		if err := i.launch(); err != nil {
			i.complain("start %s: %v", i.name, err)
		}
	}
}

// signal sends to the running process, if there is one, and returns what is
// closed when that has ended.
func (i *instance) signal(s syscall.Signal) (ended <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cmd == nil {
		done := make(chan struct{})
		close(done)
		return done
	}
	_ = i.cmd.Process.Signal(s)
	return i.ended
}

// endedWith is how often it ended with an exit code.
func (i *instance) endedWith(code int) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.codes[code]
}

// stop ends it, softly if it goes.
func (i *instance) stop(ctx context.Context, s syscall.Signal) {
	i.mu.Lock()
	i.wanted = false
	i.mu.Unlock()
	ended := i.signal(s)
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		<-i.signal(syscall.SIGKILL)
	case <-ctx.Done():
		<-i.signal(syscall.SIGKILL)
	}
	i.waiting.Wait()
}

// tail of the log.
func (i *instance) tail(n int) string {
	content, err := os.ReadFile(i.logFile)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
