package debezium

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/walpost/walpost/internal/testkit/fetch"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/proc"
)

var (
	//go:embed pom.xml
	pom []byte
	//go:embed log4j2.properties
	log4j []byte
)

// killTimeout is how long a killed process may take to be gone.
const killTimeout = 10 * time.Second

// Process is a Connect worker with one connector. Its methods may be called from
// any goroutine.
type Process struct {
	opts Options
	java string
	jars string
	path string    // the folder
	dir  *proc.Dir // nil if the caller's
	port *proc.Port

	mu      sync.Mutex
	process *proc.Process
	logFrom int64 // where the log of this start begins
}

// Start starts a worker and returns when it runs; the task may not yet, see
// AwaitStreaming.
func Start(ctx context.Context, opts Options) (*Process, error) {
	p, err := start(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("start Debezium: %w", err)
	}
	return p, nil
}

func start(ctx context.Context, opts Options) (*Process, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	p := &Process{opts: opts}
	if err := p.prepare(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if err := p.StartAgain(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Process) prepare(ctx context.Context) error {
	var err error
	if p.java, err = kafkaserver.FindJava(); err != nil {
		return err
	}
	if p.jars, err = Jars(ctx, p.opts.Home, p.opts.Log); err != nil {
		return err
	}
	if p.path = p.opts.Dir; p.path == "" {
		if p.dir, err = proc.NewDir(ctx, "debezium"); err != nil {
			return err
		}
		p.path = p.dir.Path
	}
	// The process does not run in our working directory.
	if p.path, err = filepath.Abs(p.path); err != nil {
		return err
	}
	if err := os.MkdirAll(p.path, 0o700); err != nil {
		return err
	}
	if p.port, err = proc.ReservePort(); err != nil {
		return err
	}
	connector, err := json.MarshalIndent(map[string]any{"name": p.opts.Name, "config": p.opts.Connector}, "", "  ")
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"log4j2.properties": log4j,
		"worker.properties": []byte(p.opts.worker(p.file("offsets"), p.port.Number)),
		"connector.json":    connector,
	} {
		if err := os.WriteFile(p.file(name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Jars returns the folder of jars: home if it is given and has a connector in it,
// else what Maven resolves from the pom, once. It lets a caller download before
// the clock runs.
func Jars(ctx context.Context, home string, log func(string, ...any)) (string, error) {
	if home == "" {
		cache, err := fetch.Open(proc.Self(), log)
		if err != nil {
			return "", err
		}
		return cache.Jars(ctx, "debezium-"+Version, pom)
	}
	for _, pattern := range []string{"debezium-connector-postgres-*.jar", "connect-runtime-*.jar"} {
		found, err := filepath.Glob(filepath.Join(home, pattern))
		if err != nil {
			return "", err
		}
		if len(found) == 0 {
			return "", fmt.Errorf("%s has no %s: put the jars of Connect and of the connector into one folder", home, pattern)
		}
	}
	return filepath.Abs(home)
}

func (p *Process) file(name string) string { return filepath.Join(p.path, name) }

// StartAgain starts the killed or stopped worker with its old offsets and returns
// when it runs; a running one is left alone.
func (p *Process) StartAgain(ctx context.Context) error {
	p.mu.Lock()
	if p.process != nil && p.process.Running() {
		p.mu.Unlock()
		return nil
	}
	if info, err := os.Stat(p.LogPath()); err == nil {
		p.logFrom = info.Size()
	}
	process, err := proc.Start(proc.Spec{
		Path: p.java,
		// The flags of Kafka's own start script.
		Args: []string{
			"-Xmx" + p.opts.Heap, "-Xms256m", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
			"-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true",
			"-XX:-UsePerfData", // leaves files in the temporary directory
			"-Dlog4j2.configurationFile=" + p.file("log4j2.properties"),
			"-cp", filepath.Join(p.jars, "*"),
			"org.apache.kafka.connect.cli.ConnectStandalone", p.file("worker.properties"), p.file("connector.json"),
		},
		Env:         proc.Env(),
		Log:         p.LogPath(),
		User:        proc.Self(),
		DeathSignal: syscall.SIGKILL,
	})
	if err == nil {
		p.process = process
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return p.await(ctx, func() (bool, error) { return strings.Contains(p.logOfThisStart(), "Kafka Connect started"), nil })
}

// PID returns the JVM's process id, 0 before the first start.
func (p *Process) PID() int {
	if process := p.current(); process != nil {
		return process.PID()
	}
	return 0
}

// Running reports whether the worker has not ended.
func (p *Process) Running() bool {
	process := p.current()
	return process != nil && process.Running()
}

// Done returns a channel that is closed when the worker of the last start has
// ended.
func (p *Process) Done() <-chan struct{} { return p.current().Done() }

func (p *Process) current() *proc.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

// LogPath returns the log file, which all starts append to.
func (p *Process) LogPath() string { return p.file("connect.log") }

// LogTail returns the last lines of the log.
func (p *Process) LogTail() string {
	content, err := os.ReadFile(p.LogPath())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

func (p *Process) logOfThisStart() string {
	p.mu.Lock()
	from := p.logFrom
	p.mu.Unlock()
	content, err := os.ReadFile(p.LogPath())
	if err != nil || int64(len(content)) < from {
		return ""
	}
	return string(content[from:])
}

// Pause freezes the worker; its connections stay open.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume lets a frozen worker go on.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(sig syscall.Signal) error {
	process := p.current()
	if process == nil {
		return nil
	}
	return process.Signal(sig)
}

// Kill kills the worker with SIGKILL and returns when it is gone.
func (p *Process) Kill(ctx context.Context) error { return p.end(ctx, syscall.SIGKILL) }

// Stop stops the worker in an orderly way (SIGTERM), which saves offsets, and
// returns when it is gone. When ctx ends first, the worker goes on stopping.
func (p *Process) Stop(ctx context.Context) error { return p.end(ctx, syscall.SIGTERM) }

func (p *Process) end(ctx context.Context, sig syscall.Signal) error {
	process := p.current()
	if process == nil {
		return nil
	}
	if err := process.Signal(sig); err != nil {
		return fmt.Errorf("stop Debezium: %w", err)
	}
	return process.Wait(ctx)
}

// Close kills the worker and deletes its folder if that is a temporary one.
func (p *Process) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	err := p.Kill(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.port != nil {
		p.port.Release()
		p.port = nil
	}
	if p.dir != nil {
		err = errors.Join(err, p.dir.Remove())
		p.dir = nil
	}
	return err
}
