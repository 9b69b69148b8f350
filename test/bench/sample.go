package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// userHZ is the unit of times in /proc/<pid>/stat on every Linux. The kernel
// scales them to the exact run time, so they are as precise as a tick allows.
const userHZ = 100

// parseCPU takes user and system time out of /proc/<pid>/stat. The name of the
// program, in parentheses, may contain anything.
func parseCPU(stat string) (seconds float64, err error) {
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, errors.New("no program name")
	}
	fields := strings.Fields(stat[end+1:])
	const user, system = 11, 12 // fields 14 and 15, counted from the third
	if len(fields) <= system {
		return 0, errors.New("too few fields")
	}
	u, errU := strconv.ParseUint(fields[user], 10, 64)
	s, errS := strconv.ParseUint(fields[system], 10, 64)
	if err := errors.Join(errU, errS); err != nil {
		return 0, err
	}
	return float64(u+s) / userHZ, nil
}

// cpuOf returns the CPU seconds of a running process.
func cpuOf(pid int) (float64, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	seconds, err := parseCPU(string(data))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return seconds, nil
}

// parseField finds "name: value" in a file of /proc.
func parseField(content, name string) (uint64, error) {
	for line := range strings.Lines(content) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			value, _, _ := strings.Cut(strings.TrimSpace(rest), " ") // a unit may follow
			return strconv.ParseUint(value, 10, 64)
		}
	}
	return 0, fmt.Errorf("no field %s", name)
}

func fieldOf(pid int, file, name string) (uint64, error) {
	path := fmt.Sprintf("/proc/%d/%s", pid, file)
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	value, err := parseField(string(data), name)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return value, nil
}

// peakRSS returns the bytes of the largest resident set that a running process
// ever had. (The maximum in its rusage would include ours, from before its exec.)
func peakRSS(pid int) (float64, error) {
	kib, err := fieldOf(pid, "status", "VmHWM")
	return float64(kib) * 1024, err
}

// written returns the bytes that a process has written to files; what it sends
// to a socket by send(2) does not count.
func written(pid int) (uint64, error) { return fieldOf(pid, "io", "wchar") }

// sender samples the walsender of a slot, because its last numbers are gone
// when it ends with its client.
type sender struct {
	stop context.CancelFunc
	done sync.WaitGroup
	cpu  float64 // NaN when it was never seen
}

const walsenderSQL = `select active_pid from pg_replication_slots where slot_name = $1 and active_pid is not null`

// watchSender starts to look for the slot's walsender.
func (r *rig) watchSender(ctx context.Context, slotName string) *sender {
	ctx, stop := context.WithCancel(ctx)
	s := &sender{stop: stop, cpu: nan()}
	s.done.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		pid := 0
		for {
			if pid == 0 {
				_ = r.sql.QueryRow(context.WithoutCancel(ctx), walsenderSQL, slotName).Scan(&pid) // not there yet
			}
			if pid != 0 {
				cpu, err := cpuOf(pid)
				if err != nil {
					return // it has ended
				}
				s.cpu = cpu
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return s
}

// seconds ends the watch and returns the CPU time of the walsender.
func (s *sender) seconds() float64 {
	s.stop()
	s.done.Wait()
	return s.cpu
}
