package contract

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/walpost/walpost/internal/testkit"
)

// patience is how long one command may take.
const patience = 90 * time.Second

// process is a running command, in a process group of its own.
type process struct {
	t    *testing.T
	what string
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
}

// Write takes what the process prints.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// startProcess starts a command that is killed when the test ends.
func startProcess(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, what: strings.Join(args, " "), cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.WaitDelay = 5 * time.Second
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the exit code says it
		close(p.done)
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends the whole group with SIGKILL: a launcher may have started the program.
func (p *process) kill() {
	if p.running() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
	}
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// exit waits for the end and says what is wrong if the exit code is another.
func (p *process) exit(want int) error {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(testkit.Context(p.t), patience)
	defer cancel()
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("%s did not end within %v; it printed:\n%s", p.what, patience, p.output())
	}
	if code := p.cmd.ProcessState.ExitCode(); code != want {
		return fmt.Errorf("%s: exit code %d, want %d; it printed:\n%s", p.what, code, want, p.output())
	}
	return nil
}
