package proc_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/walpost/walpost/internal/testkit/proc"
)

// ownerEnv makes the test binary an owner of processes that the test kills.
const ownerEnv = "WALPOST_TEST_OWNER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownerEnv); dir != "" {
		own(dir)
	}
	os.Exit(m.Run())
}

// sleeper has a child, as servers have.
func sleeper(dir string, sig syscall.Signal) proc.Spec {
	return proc.Spec{
		Path: "/bin/sh", Args: []string{"-c", "sleep 1000 & wait"}, Env: proc.Env(),
		Log: filepath.Join(dir, "log"), User: proc.Self(), DeathSignal: sig,
	}
}

// own starts a process and a folder, says which, and waits to be killed.
func own(dir string) {
	folder, err := proc.NewDir(context.Background(), "test")
	if err != nil {
		panic(err)
	}
	p, err := proc.Start(sleeper(dir, syscall.SIGKILL))
	if err != nil {
		panic(err)
	}
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		panic(err)
	}
	fmt.Println(p.PID(), folder.Path)
	select {}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestNothingOutlivesAKilledOwner(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerEnv+"="+t.TempDir())
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	first, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // killed
	if err := proc.WaitGone(ctx, []int{pid}); err != nil {
		t.Error(err)
	}
	// Its folder is removed by whoever creates the next one, which may be another
	// test binary of the same run.
	next, err := proc.NewDir(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer next.Remove()
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat of the killed owner's folder = %v, want it gone", err)
	}
	if _, err := os.Stat(next.Path); err != nil {
		t.Error(err)
	}
}

func TestSignalTreeReachesChildren(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	p, err := proc.Start(sleeper(t.TempDir(), syscall.SIGKILL))
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for len(pids) < 2 && ctx.Err() == nil { // the shell needs a moment to fork
		if pids, err = p.SignalTree(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	killed, err := p.SignalTree(syscall.SIGKILL)
	if err != nil || len(killed) != 2 {
		t.Errorf("killed %v, %v, want two processes", killed, err)
	}
	if err := p.Wait(ctx); err != nil {
		t.Error(err)
	}
	if err := proc.WaitGone(ctx, killed); err != nil {
		t.Error(err)
	}
	if p.Err() == nil || p.Running() {
		t.Errorf("a killed process: Err = %v, Running = %v", p.Err(), p.Running())
	}
}

func TestReservedPortsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 50 {
		port, err := proc.ReservePort()
		if err != nil {
			t.Fatal(err)
		}
		defer port.Release()
		if seen[port.Number] {
			t.Fatalf("port %d was given twice", port.Number)
		}
		seen[port.Number] = true
	}
}
