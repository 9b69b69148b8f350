package kafkaserver

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/walpost/walpost/internal/testkit/proc"
	"github.com/walpost/walpost/internal/testkit/proxy"
)

// killTimeout is how long a killed process may take to be gone.
const killTimeout = 10 * time.Second

type broker struct {
	id     int
	java   string
	args   []string
	config string // file
	data   string // folder
	log    string // file
	ports  map[listener]*proc.Port
	proxy  *proxy.Proxy // nil if not proxied

	mu      sync.Mutex
	process *proc.Process // nil before the first start
	frozen  bool
}

func (c *Cluster) newBroker(index int, jvm []string) (*broker, error) {
	name := strconv.Itoa(index)
	b := &broker{
		id:     index + 1,
		java:   c.install.java,
		config: c.path("server" + name + ".properties"),
		data:   c.path("data" + name),
		log:    c.path("broker" + name + ".log"),
		ports:  map[listener]*proc.Port{},
	}
	b.args = append(c.install.jvm(c.opts), jvm...)
	b.args = append(b.args, "kafka.Kafka", b.config)
	for _, l := range c.listeners() {
		port, err := proc.ReservePort()
		if err != nil {
			return nil, err
		}
		b.ports[l] = port
	}
	if c.opts.Proxied {
		p, err := proxy.New(b.addr(plaintext))
		if err != nil {
			return nil, err
		}
		b.proxy = p
	}
	return b, nil
}

func (b *broker) addr(l listener) string {
	return "127.0.0.1:" + strconv.Itoa(b.ports[l].Number)
}

func (b *broker) start() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process != nil && b.process.Running() {
		return nil
	}
	process, err := proc.Start(proc.Spec{
		Path: b.java,
		Args: b.args,
		Env:  proc.Env(),
		Log:  b.log,
		User: proc.Self(),
		// It has no children and its data is of no use to anybody.
		DeathSignal: syscall.SIGKILL,
	})
	if err != nil {
		return err
	}
	b.process, b.frozen = process, false
	return nil
}

// running returns the process if it runs and is not frozen.
func (b *broker) running() *proc.Process {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process == nil || b.frozen || !b.process.Running() {
		return nil
	}
	return b.process
}

// ended says that the broker was started and has ended since.
func (b *broker) ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.process != nil && !b.process.Running()
}

func (b *broker) kill(ctx context.Context) error { return b.signal(ctx, syscall.SIGKILL) }

func (b *broker) term(ctx context.Context) error { return b.signal(ctx, syscall.SIGTERM) }

func (b *broker) signal(ctx context.Context, sig syscall.Signal) error {
	b.mu.Lock()
	process := b.process
	b.mu.Unlock()
	if process == nil {
		return nil
	}
	if err := process.Signal(sig); err != nil {
		return fmt.Errorf("stop broker %d: %w", b.id, err)
	}
	return process.Wait(ctx)
}

func (b *broker) pause() error { return b.freeze(true, syscall.SIGSTOP) }

func (b *broker) resume() error { return b.freeze(false, syscall.SIGCONT) }

func (b *broker) freeze(frozen bool, sig syscall.Signal) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process == nil {
		return nil
	}
	b.frozen = frozen
	return b.process.Signal(sig)
}

func (b *broker) close() error {
	if b.proxy != nil {
		b.proxy.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	err := b.kill(ctx)
	for l, port := range b.ports {
		port.Release()
		delete(b.ports, l)
	}
	return err
}

func (b *broker) logTail() string {
	content, err := os.ReadFile(b.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
