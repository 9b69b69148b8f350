package testkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/walpost/walpost/internal/testkit/kafkaserver"
)

// stopTimeout is how long servers may take to go at the end.
const stopTimeout = 30 * time.Second

// suite is what the tests of one binary share. There is one per process, since a
// test function has no other way to reach what TestMain made.
var suite = &servers{
	postgres: map[int]*shared[*PG]{},
	kafka:    map[int]*shared[*kafkaserver.Cluster]{},
}

type servers struct {
	mu       sync.Mutex
	main     bool // Main runs, so what is shared will be closed
	postgres map[int]*shared[*PG]
	kafka    map[int]*shared[*kafkaserver.Cluster]
	closers  []func() error
	used     []string
}

// shared is started by the first test that asks. Others wait for it, and get
// its error too: the second attempt would hardly be better.
type shared[T any] struct {
	once  sync.Once
	value T
	err   error
}

func (s *shared[T]) get(start func() (T, error)) (T, error) {
	s.once.Do(func() { s.value, s.err = start() })
	return s.value, s.err
}

// Main runs the tests of a package and exits. Each option says of a goroutine
// that it may be left, and should come with a reason.
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
func Main(m *testing.M, leaks ...goleak.Option) {
	os.Exit(run(m, leaks))
}

func run(m *testing.M, leaks []goleak.Option) int {
	suite.mu.Lock()
	suite.main = true
	suite.mu.Unlock()

	signals := make(chan os.Signal, 1) // closed below, after Stop
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		if _, ok := <-signals; ok {
			// Tests are in the middle of things; what they started privately dies
			// with us, and its data goes with the next run.
			_ = suite.close()
			os.Exit(130)
		}
	})

	code := m.Run()
	signal.Stop(signals)
	close(signals)
	watcher.Wait()

	if err := suite.close(); err != nil {
		fmt.Fprintln(os.Stderr, "testkit:", err)
		code = max(code, 1)
	}
	suite.report(os.Stdout)
	if code == 0 {
		if err := goleak.Find(leaks...); err != nil {
			fmt.Fprintln(os.Stderr, "testkit: goroutines are left after the tests:", err)
			code = 1
		}
	}
	return code
}

func (s *servers) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, f := range s.closers {
		errs = append(errs, f())
	}
	s.closers = nil
	return errors.Join(errs...)
}

func (s *servers) onClose(f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, f)
}

// use notes a server for the report.
func (s *servers) use(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.used {
		if known == name {
			return
		}
	}
	s.used = append(s.used, name)
}

// report says which servers were used.
func (s *servers) report(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if file := os.Getenv("WALPOST_TEST_LOG"); file != "" && len(s.used) > 0 {
		log, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			fmt.Fprintln(os.Stderr, "testkit:", err)
		} else {
			defer log.Close()
			w = io.MultiWriter(w, log)
		}
	}
	binary := filepath.Base(os.Args[0])
	for _, name := range s.used {
		fmt.Fprintf(w, "testkit: %s used %s\n", binary, name)
	}
}

// needServers is the first line of everything that hands out a server.
func needServers(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs real servers: run without -short")
	}
}

// needMain guards shared servers, which nobody would close without Main.
func needMain(t testing.TB) {
	t.Helper()
	suite.mu.Lock()
	defer suite.mu.Unlock()
	if !suite.main {
		t.Fatal("the package needs a TestMain that calls testkit.Main: it closes the shared servers")
	}
}

// fatal fails a test for want of a server, with what to do about it.
func fatal(t testing.TB, err error) {
	t.Helper()
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		t.Fatalf("%v\n%s (or run with -short: the tests without servers)", err, hinted.Hint())
	}
	t.Fatal(err)
}

// stopContext is for cleaning up, when the test's own context has ended.
func stopContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), stopTimeout)
}
