package quickstart

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/walpost/walpost/internal/testkit"
)

// terminal is a shell that a reader types into.
type terminal struct {
	t     *testing.T
	name  string
	shell *exec.Cmd
	stdin io.WriteCloser
	ended chan struct{}

	mu       sync.Mutex
	shown    []string // on stdout and stderr
	typed    int      // blocks that were typed
	finished int      // of those
	stopped  bool     // by Ctrl-C, after which a program may end as it likes

	wanted map[string]int // lines that the page shows, and how often
}

// done is what the shell prints after a block, with the block's exit code.
const done = "the block has ended with "

func openTerminal(t *testing.T, name string) *terminal {
	t.Helper()
	m := &terminal{t: t, name: name, ended: make(chan struct{}), wanted: map[string]int{}}
	m.shell = exec.Command("bash")
	m.shell.Dir = "../.."
	// Everything that it starts is in one group, for Ctrl-C. The admin listener's
	// usual port may be taken by another test.
	m.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	m.shell.Env = append(os.Environ(), "WALPOST_ADMIN_LISTEN=127.0.0.1:0")
	stdin, err := m.shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	m.stdin = stdin
	stdout, err := m.shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := m.shell.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.shell.Start(); err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	readers.Go(func() { m.collect(stdout) })
	readers.Go(func() { m.collect(stderr) })
	go func() {
		readers.Wait()
		_ = m.shell.Wait() // its code is that of the last block, which was looked at
		close(m.ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-m.shell.Process.Pid, syscall.SIGKILL)
		<-m.ended
		if t.Failed() {
			m.mu.Lock()
			defer m.mu.Unlock()
			t.Logf("terminal %s:\n%s", name, strings.Join(m.shown, "\n"))
		}
	})
	return m
}

func (m *terminal) collect(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text := lines.Text()
		m.mu.Lock()
		if code, ok := strings.CutPrefix(text, done); ok {
			m.finished++
			if code != "0" && !m.stopped {
				m.t.Errorf("terminal %s, block %d: exit code %s", m.name, m.finished, code)
			}
		}
		m.shown = append(m.shown, text)
		m.mu.Unlock()
	}
}

// run types a block, when the one before it has ended.
func (m *terminal) run(b block) {
	m.t.Helper()
	m.await("the end of the block before " + b.String())
	m.typed++
	// A reader's shell has job control, in which nothing in the background is
	// stopped by Ctrl-C; this one has none, so Ctrl-C reaches everything.
	if _, err := fmt.Fprintf(m.stdin, "{\n%s}; echo \"%s$?\"\n", b.text, done); err != nil {
		m.t.Fatalf("%s: %v", b, err)
	}
}

// await waits until everything that was typed has ended.
func (m *terminal) await(what string) {
	m.t.Helper()
	testkit.Await(m.t, what, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.finished == m.typed
	})
}

// expect waits for the lines of a block.
func (m *terminal) expect(b block) {
	m.t.Helper()
	for line := range strings.Lines(b.text) {
		m.wanted[strings.TrimRight(line, "\n")]++
	}
	for line, times := range m.wanted {
		testkit.Await(m.t, fmt.Sprintf("%s: %q in terminal %s", b, line, m.name), func() bool {
			if m.t.Failed() { // a block before it has, and what it shows will not come
				m.t.FailNow()
			}
			return m.count(line) >= times
		})
	}
}

func (m *terminal) count(line string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, text := range m.shown {
		if text == line {
			n++
		}
	}
	return n
}

// check says whether a line came too often.
func (m *terminal) check() {
	m.t.Helper()
	for line, times := range m.wanted {
		if n := m.count(line); n != times {
			m.t.Errorf("terminal %s shows %q %d times, and the page %d times", m.name, line, n, times)
		}
	}
}

// interrupt is Ctrl-C, and then the end of the shell.
func (m *terminal) interrupt() {
	m.t.Helper()
	m.mu.Lock()
	m.stopped = true
	m.mu.Unlock()
	if err := syscall.Kill(-m.shell.Process.Pid, syscall.SIGINT); err != nil {
		m.t.Errorf("terminal %s: Ctrl-C: %v", m.name, err)
	}
	_ = m.stdin.Close()
	testkit.Await(m.t, "the end of terminal "+m.name, func() bool {
		select {
		case <-m.ended:
			return true
		default:
			return false
		}
	})
}
