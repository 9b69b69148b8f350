package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Spec says what to start.
type Spec struct {
	Path string
	Args []string // without the program's name
	Env  []string // complete; nothing is inherited
	Log  string   // file that standard output and error are appended to
	User User     // whom to run as
	// DeathSignal is what the process receives when we die. It has to be one
	// that ends the process's own children too.
	DeathSignal syscall.Signal
}

// Process is a running child in a process group of its own.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed by wait, after err is set
	err  error
}

// Start starts a process; it is waited for until it ends.
func Start(spec Spec) (*Process, error) {
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	defer log.Close() // the child has its own copy
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env = spec.Env
	cmd.Dir = "/"
	cmd.Stdout = log
	cmd.Stderr = log
	// A group of its own: Ctrl-C at the terminal reaches us alone, so that we
	// choose how and in which order servers stop.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: spec.User.Credential()}
	setDeathSignal(cmd.SysProcAttr, spec.DeathSignal)

	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	return p, nil
}

func (p *Process) run(started chan<- error) {
	runtime.LockOSThread() // see the package's doc
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

// PID returns the process id, also after the process has ended.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running reports whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Err says how the process ended, nil for status 0; valid after Done.
func (p *Process) Err() error { return p.err }

// Signal sends a signal; to a process that has ended it does nothing.
func (p *Process) Signal(sig syscall.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Wait waits until the process has ended.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("process %d still runs: %w", p.PID(), context.Cause(ctx))
	}
}

// Run runs a command to its end and returns its output, which is also in the
// error when it fails.
func Run(ctx context.Context, user User, env []string, path string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = "/"
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user.Credential()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", path, err, out)
	}
	return string(out), nil
}

// Env is the environment of a server: enough to find programs and nothing that
// could change how it behaves (PGDATA, LANG, KAFKA_OPTS, …).
func Env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
}
