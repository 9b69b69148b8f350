package proc

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

type entry struct {
	parent int
	zombie bool
}

// SignalTree sends a signal to the process and to all its descendants, parents
// first (a stopped parent forks no more), and returns whom it was sent to.
//
// The group is not enough: PostgreSQL's children call setsid.
func (p *Process) SignalTree(sig syscall.Signal) ([]int, error) {
	if !p.Running() {
		return nil, nil
	}
	pids := []int{p.PID()}
	if sig == syscall.SIGKILL {
		// Or children born between the reading and the killing would survive.
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			return nil, err
		}
	} else if err := p.Signal(sig); err != nil {
		return nil, err
	}
	processes := table()
	for i := 0; i < len(pids); i++ {
		for pid, e := range processes {
			if e.parent == pids[i] && !e.zombie {
				pids = append(pids, pid)
			}
		}
	}
	var errs []error
	for _, pid := range pids[1:] {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("signal process %d: %w", pid, err))
		}
	}
	if sig == syscall.SIGKILL {
		errs = append(errs, p.Signal(sig))
	}
	return pids, errors.Join(errs...)
}

// WaitGone waits until none of the processes runs any more. A zombie counts as
// gone: it holds no memory, file or port.
func WaitGone(ctx context.Context, pids []int) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		processes, left := table(), 0
		for _, pid := range pids {
			if e, ok := processes[pid]; ok && !e.zombie {
				left = pid
			}
		}
		if left == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("process %d still runs: %w", left, context.Cause(ctx))
		}
	}
}
